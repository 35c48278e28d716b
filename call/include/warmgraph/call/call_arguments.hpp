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

/// One thread at a time uses it. It does not access the device.
class CallArguments {
public:
    explicit CallArguments(std::shared_ptr<const Declaration> declaration);

    /// Throws the errors of ArgumentReader.
    void read(std::span<const Arg> args);
    /// Reads a caller's capture as if it were a call; into frame() or another frame.
    void read(const NativeCapture& capture, const Adoption& adoption, Frame& into);
    void read(const NativeCapture& capture, const Adoption& adoption) { read(capture, adoption, m_frame); }
    /// Throws invalid_argument: it is not a state, or has another size.
    void bind(std::string_view state, const MemoryRef& memory);

    /// The frame of the last read.
    [[nodiscard]] const Frame& frame() const noexcept { return m_frame; }
    /// After a change of the frame, others() must not be used before the next read.
    [[nodiscard]] Frame& frame() noexcept { return m_frame; }
    /// As ArgumentReader::others().
    [[nodiscard]] guards::Others others() const noexcept { return m_reader.others(); }
    [[nodiscard]] const std::vector<MemoryRef>& default_memory() const noexcept { return m_reader.default_memory(); }
    /// The last read's bindings for a graph with this many regions. Valid until the next call of this function.
    [[nodiscard]] const replay::Bindings& bindings(std::size_t regions);

private:
    std::shared_ptr<const Declaration> m_declaration;
    ArgumentReader m_reader;
    Frame m_frame;
    replay::Bindings m_bindings;
};

} // namespace warmgraph
