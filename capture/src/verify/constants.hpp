// Memory whose contents an entry stores: constants that a function declares, and libraries' own tables.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "verify/module_state.hpp"
#include "warmgraph/backends/bulk_memory.hpp"
#include "warmgraph/capture/interface.hpp"
#include "warmgraph/replay/executable.hpp"

namespace warmgraph {

struct Captures;

class Constants {
public:
    /// `most`: limit for all constants together, in bytes.
    Constants(std::shared_ptr<backends::Device> device, std::vector<NamedMemory> declared, std::uint64_t most);

    /// Adds `allocations` as constants "constant 0", ... if an entry can carry them: they overlap no memory of the call
    /// (`in_use`), hold no address, and fit the limit. why_not() gives the reasons why other allocations were left out.
    [[nodiscard]] Result<void> keep(std::span<const MemoryRef> allocations, std::span<const MemoryRef> in_use);
    /// Why keep() left allocations out, as the end of a sentence; empty if it left nothing out.
    [[nodiscard]] const std::string& why_not() const noexcept { return m_why_not; }
    [[nodiscard]] const std::vector<NamedMemory>& all() const noexcept { return m_all; }

    /// Call this before the function, or its graph, runs. not_recordable: the constants exceed the limit, or a constant
    /// may hold an address. `in_use`: memory of the call.
    [[nodiscard]] Result<void> look_before(const Interface& interface, std::span<const MemoryRef> in_use);
    /// Call this after the function, or its graph, ran. Fails with not_recordable, which names the constant, if the run
    /// changed a constant.
    [[nodiscard]] Result<void> check_unchanged() const;
    /// Calls keep() with all memory that two captures and their modules' variables point to. Sets Captures::constants.
    [[nodiscard]] Result<void> find(const Interface& interface, Captures& captures,
                                    std::span<const MemoryRef> also_in_use);
    /// Returns the live allocations that words of module variables point into, without constants and `in_use`.
    [[nodiscard]] std::vector<MemoryRef> allocations_in(const ModuleState& state,
                                                        std::span<const MemoryRef> in_use) const;
    /// Prepares `state` for storing: addresses in constants that keep() added become slots, which every process fills
    /// with its own addresses. `first_region`: the first constant's index in the graph.
    [[nodiscard]] ModuleState relocated(ModuleState state, std::size_t first_region) const;
    /// Sets the digests of the graph's constants; returns their contents without duplicates.
    [[nodiscard]] Result<std::vector<std::pair<Digest, Bytes>>> read_into(cachefmt::Graph& graph) const;
    /// Returns the contents of memory that an entry stores in addition, with their digest; nullopt if these bytes
    /// exceed the limit.
    [[nodiscard]] Result<std::optional<std::pair<Digest, Bytes>>> contents_of(const MemoryRef& memory);
    /// Call this after trials of a restored graph. Fails with verification_failed, which names the constant, if the
    /// graph wrote to a constant.
    [[nodiscard]] Result<void> check_restored(const replay::Executable& executable) const;

private:
    enum class Declared : std::uint8_t { no, yes };
    [[nodiscard]] bool is_open_to_host(const MemoryRef& memory, Declared declared) const;
    [[nodiscard]] Result<std::string> address_in(const MemoryRef& memory, std::span<const MemoryRef> in_use) const;

    std::shared_ptr<backends::Device> m_device;
    std::vector<NamedMemory> m_all; ///< all constants, the declared constants first
    std::size_t m_declared = 0;
    std::uint64_t m_most = 0;
    std::uint64_t m_other_bytes = 0; ///< number of bytes that contents_of() returned
    std::string m_why_not;
    std::vector<backends::Fingerprint> m_before;
};

} // namespace warmgraph
