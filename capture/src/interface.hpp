// A function's declared interface, and a call's arguments read against it.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "warmgraph/base/error.hpp"
#include "warmgraph/cachefmt/graph.hpp"
#include "warmgraph/guards/call_guard.hpp"
#include "warmgraph/warmgraph.hpp"

namespace warmgraph {

/// An input, output or state, in this order: the first regions of every graph of the function.
struct RegionDecl {
    std::string name;
    cachefmt::RegionKind kind = cachefmt::RegionKind::input;
    DType dtype = DType::u8;
    std::vector<std::int64_t> sizes;
    MemoryRef memory; ///< states: where it is unless a call says otherwise
};

/// Inclusive bounds of a scalar, as bits of its type. Without a declared range: the whole type.
struct ScalarRange {
    std::uint64_t low = 0, high = 0;
};

/// Objects of the driver's by name and handle.
using NamedHandles = std::vector<std::pair<std::string, std::uint64_t>>;

/// What graphs share with work outside them.
struct DeclaredHandles {
    NamedHandles events{};     ///< CUevent
    NamedHandles semaphores{}; ///< CUexternalSemaphore
};

struct Interface {
    std::vector<RegionDecl> regions;
    std::vector<std::string> region_names;
    std::vector<ScalarDecl> scalars;
    std::vector<ScalarRange> ranges; ///< of scalars
    std::vector<ScalarDecl> values;

    /// Checks names (distinct, no path or control characters), shapes and types.
    [[nodiscard]] static Result<Interface> from(const Spec& spec);
    /// "1 input, 1 output, 1 state, 38 weights; scalar position i32 [0, 255]": a guard fact. The kinds in the order of the
    /// tensors, whose names are guarded beside it.
    [[nodiscard]] std::string text() const;
    [[nodiscard]] std::optional<std::size_t> region(std::string_view name) const noexcept;
};

/// A call's arguments by position. Reused from call to call, so that a steady call allocates nothing.
struct Frame {
    std::vector<guards::TensorArg> tensors; ///< as Interface::regions
    std::vector<MemoryRef> memory;          ///< the same
    std::vector<std::uint64_t> scalars, values;
    std::uint64_t filled = 0; ///< ArgumentReader's own: which of its reads filled this; 0 for none
};

/// How the device names memory: DeviceLimits::flat_addresses.
enum class Addressing : std::uint8_t { by_base, flat };

class ArgumentReader {
public:
    ArgumentReader(const Interface& interface, std::uint16_t device, Addressing addressing);

    /// Fills `frame`. Errors name the argument, what was expected, and the cure.
    [[nodiscard]] Result<void> read(std::span<const Arg> args, Frame& frame);
    /// Where each region is unless a call says otherwise: null but for states.
    [[nodiscard]] const std::vector<MemoryRef>& default_memory() const noexcept { return m_defaults.memory; }
    void bind_state(std::size_t region, const MemoryRef& memory) noexcept;

private:
    enum class What : std::uint8_t { region, scalar, value };
    struct Binding {
        std::string_view name;
        What what;
        std::size_t index;
    };
    [[nodiscard]] std::size_t find(std::string_view name, std::size_t hint) const noexcept;
    [[nodiscard]] Result<void> read_one(const Binding& binding, const Arg& arg, Frame& frame);
    [[nodiscard]] Result<void> read_region(std::size_t index, const Arg& arg, Frame& frame);
    [[nodiscard]] bool has_default(const Binding& binding) const noexcept;
    enum class Reset : std::uint8_t { all, given };
    [[nodiscard]] Reset reset(Frame& frame);
    [[nodiscard]] Result<void> read_all(std::span<const Arg> args, Frame& frame);
    [[nodiscard]] Result<void> check_given() const;
    [[nodiscard]] Result<void> check_memory(const Frame& frame, std::size_t region) const;

    const Interface& m_interface;
    Addressing m_addressing;
    std::vector<Binding> m_bindings; ///< in declaration order
    Frame m_defaults;                ///< declared shapes and state addresses
    std::vector<std::uint8_t> m_seen;
    std::vector<std::size_t> m_given; ///< regions, by the last read
    std::uint64_t m_filled = 0;       ///< the last read that succeeded, unless defaults changed since
};

/// The sizes of a tensor as a vector.
[[nodiscard]] std::vector<std::int64_t> sizes_of(const guards::TensorArg& tensor);

} // namespace warmgraph
