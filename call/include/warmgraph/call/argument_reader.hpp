// Reads a call's arguments and checks them against the function's declaration.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "warmgraph/capture/interface.hpp"
#include "warmgraph/guards/call_guard.hpp"
#include "warmgraph/warmgraph.hpp"

namespace warmgraph {

/// Returns the interface that the Spec declares. Checks names (distinct, no path or control characters), shapes and
/// types.
[[nodiscard]] Result<Interface> interface_of(const Spec& spec);

/// Checks that the number's type is allowed for scalars.
[[nodiscard]] Result<void> check_number(std::string_view name, const Number& number);

/// How the device addresses memory (DeviceLimits::flat_addresses).
enum class Addressing : std::uint8_t { by_base, flat };

class ArgumentReader {
public:
    ArgumentReader(const Interface& interface, std::uint16_t device, Addressing addressing);

    /// Fills `frame`. Errors name the argument, the expected value, and the cure.
    [[nodiscard]] Result<void> read(std::span<const Arg> args, Frame& frame);
    /// The memory of each region for calls that do not pass other memory. It is null except for states.
    [[nodiscard]] const std::vector<MemoryRef>& default_memory() const noexcept { return m_defaults.memory; }
    void bind_state(std::size_t region, const MemoryRef& memory);
    /// Identifies the last successful read, until its frame is changed. Two frames with equal Others differ only in the
    /// regions that Others lists.
    [[nodiscard]] guards::ChangedTensors changed_tensors() const noexcept { return {m_defaults_number, m_given}; }

private:
    enum class ArgumentKind : std::uint8_t { region, scalar, value };
    struct Binding {
        std::string_view name;
        ArgumentKind what;
        std::size_t index;
    };
    [[nodiscard]] std::size_t find(std::string_view name, std::size_t hint) const noexcept;
    [[nodiscard]] Result<void> read_one(const Binding& binding, const Arg& arg, Frame& frame);
    [[nodiscard]] Result<void> read_region(std::size_t index, const Arg& arg, Frame& frame);
    [[nodiscard]] bool has_default(const Binding& binding) const noexcept;
    void list_needed();
    enum class Reset : std::uint8_t { all, given };
    [[nodiscard]] Reset reset(Frame& frame);
    [[nodiscard]] Result<void> read_all(std::span<const Arg> args, Frame& frame);
    [[nodiscard]] Result<void> check_given() const;
    [[nodiscard]] Result<void> check_memory(const Frame& frame, std::size_t region) const;

    const Interface& m_interface;
    Addressing m_addressing;
    std::vector<Binding> m_bindings;     ///< in the order of the declaration
    Frame m_defaults;                    ///< frame with the declared shapes and the addresses of states
    std::vector<std::size_t> m_needed;   ///< bindings without a default
    std::uint64_t m_defaults_number = 1; ///< number of changes of the defaults
    std::vector<std::uint8_t> m_seen;
    std::vector<std::size_t> m_given; ///< regions that the arguments of the last read named
    std::uint64_t m_filled = 0;       ///< number of the last successful read; also changes when the defaults change
};

} // namespace warmgraph
