// The arguments of one call at a time: read, kept until the call is answered, and bound to a graph.
#pragma once

#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "warmgraph/call/argument_reader.hpp"
#include "warmgraph/call/declaration.hpp"
#include "warmgraph/replay/executable.hpp"

namespace warmgraph {

/// One thread at a time. Touches nothing of the device.
class CallArguments {
public:
    explicit CallArguments(std::shared_ptr<const Declaration> declaration);

    /// Throws what ArgumentReader refuses.
    void read(std::span<const Arg> args);
    /// A capture of somebody else's, as if it were a call; into frame() or another one.
    void read(const NativeCapture& capture, const Adoption& adoption, Frame& into);
    void read(const NativeCapture& capture, const Adoption& adoption) { read(capture, adoption, m_frame); }
    /// Throws invalid_argument for what is no state, or has another size.
    void bind(std::string_view state, const MemoryRef& memory);

    /// Of the last read.
    [[nodiscard]] const Frame& frame() const noexcept { return m_frame; }
    /// Whoever changes it asks for no others() before the next read.
    [[nodiscard]] Frame& frame() noexcept { return m_frame; }
    /// As ArgumentReader's.
    [[nodiscard]] guards::Others others() const noexcept { return m_reader.others(); }
    [[nodiscard]] const std::vector<MemoryRef>& default_memory() const noexcept { return m_reader.default_memory(); }
    /// Those of the last read, for a graph with so many regions. Valid until the next call of it.
    [[nodiscard]] const replay::Bindings& bindings(std::size_t regions);

private:
    std::shared_ptr<const Declaration> m_declaration;
    ArgumentReader m_reader;
    Frame m_frame;
    replay::Bindings m_bindings;
};

} // namespace warmgraph
