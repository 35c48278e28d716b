// Memory whose contents an entry carries: constants that a function declares, and what a library keeps for itself.
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
    /// `most`: bytes of all together.
    Constants(std::shared_ptr<backends::Device> device, std::vector<NamedMemory> declared, std::uint64_t most);

    /// Those of `allocations` that an entry can carry become constants "constant 0", ...: none overlaps memory of the
    /// call (`in_use`), holds an address, or is more than there is room for. Why others are none: why_not().
    [[nodiscard]] Result<void> keep(std::span<const MemoryRef> allocations, std::span<const MemoryRef> in_use);
    /// The end of a sentence; empty where nothing was left out.
    [[nodiscard]] const std::string& why_not() const noexcept { return m_why_not; }
    [[nodiscard]] const std::vector<NamedMemory>& all() const noexcept { return m_all; }

    /// Before the function, or its graph, runs. not_recordable: more than may be kept, an address in one (`in_use`:
    /// memory of the call; unless the interface says that there is none).
    [[nodiscard]] Result<void> look_before(const Interface& interface, std::span<const MemoryRef> in_use);
    /// After it ran: not_recordable names one that it changed.
    [[nodiscard]] Result<void> check_unchanged() const;
    /// keep() with all that two captures and their modules' variables have addresses of. Sets Captures::constants.
    [[nodiscard]] Result<void> find(const Interface& interface, Captures& captures,
                                    std::span<const MemoryRef> also_in_use);
    /// Live allocations that words of module variables point into, none of them in a constant or in `in_use`.
    [[nodiscard]] std::vector<MemoryRef> allocations_in(const ModuleState& state,
                                                        std::span<const MemoryRef> in_use) const;
    /// `state` as it is stored: words that are addresses in constants become slots, which every process fills with its
    /// own. Those of allocations that keep() added, that is. `first_region`: the first constant's index in the graph.
    [[nodiscard]] ModuleState relocated(ModuleState state, std::size_t first_region) const;
    /// Sets the digests of the graph's constants; gives their contents, each once.
    [[nodiscard]] Result<std::vector<std::pair<Digest, Bytes>>> read_into(cachefmt::Graph& graph) const;
    /// What an entry may carry besides, with its digest; nullopt where that would be more than is kept.
    [[nodiscard]] Result<std::optional<std::pair<Digest, Bytes>>> contents_of(const MemoryRef& memory);
    /// After trials of a restored graph: verification_failed names one that it wrote.
    [[nodiscard]] Result<void> check_restored(const replay::Executable& executable) const;

private:
    enum class Declared : std::uint8_t { no, yes };
    [[nodiscard]] bool is_open_to_host(const MemoryRef& memory, Declared declared) const;
    [[nodiscard]] Result<std::string> address_in(const MemoryRef& memory, std::span<const MemoryRef> in_use) const;

    std::shared_ptr<backends::Device> m_device;
    std::vector<NamedMemory> m_all; ///< declared ones first
    std::size_t m_declared = 0;
    std::uint64_t m_most = 0;
    std::uint64_t m_other_bytes = 0; ///< of contents_of
    std::string m_why_not;
    std::vector<backends::Fingerprint> m_before;
};

} // namespace warmgraph
