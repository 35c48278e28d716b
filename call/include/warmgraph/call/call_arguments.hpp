// The arguments of one call at a time: reads them, keeps them until the call is answered, and binds them to a graph.
#pragma once

#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "warmgraph/call/argument_reader.hpp"
#include "warmgraph/call/declaration.hpp"
#include "warmgraph/replay/executable.hpp"

namespace warmgraph {

/// One thread at a time may use an object. The object does not access the device.
class CallArguments {
public:
    explicit CallArguments(std::shared_ptr<const Declaration> declaration);

    /// Reads the arguments of a call. Throws the errors of ArgumentReader.
    void read(std::span<const Arg> args);
    /// Reads the arguments of a caller's capture like those of a call, into frame() or into another frame.
    void read(const NativeCapture& capture, const Adoption& adoption, Frame& into);
    void read(const NativeCapture& capture, const Adoption& adoption) { read(capture, adoption, m_frame); }
    /// Throws invalid_argument if `state` is not a state, or if the memory has another size.
    void bind(std::string_view state, const MemoryRef& memory);

    /// The frame of the last read.
    [[nodiscard]] const Frame& frame() const noexcept { return m_frame; }
    /// After a change of the frame, changed_tensors() must not be used before the next read.
    [[nodiscard]] Frame& frame() noexcept { return m_frame; }
    /// As ArgumentReader::changed_tensors().
    [[nodiscard]] guards::ChangedTensors changed_tensors() const noexcept { return m_reader.changed_tensors(); }
    [[nodiscard]] const std::vector<MemoryRef>& default_memory() const noexcept { return m_reader.default_memory(); }
    /// Returns the bindings of the last read for a graph with `regions` regions. The reference is valid until the next
    /// call of this function.
    [[nodiscard]] const replay::Bindings& bindings(std::size_t regions);

private:
    std::shared_ptr<const Declaration> m_declaration;
    ArgumentReader m_reader;
    Frame m_frame;
    replay::Bindings m_bindings;
};

} // namespace warmgraph
