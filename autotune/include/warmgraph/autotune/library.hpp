// Tuned configurations in tiers: found, put, and none of them believed for its name.
//
// Thread-safe where the tiers are. A failure costs a tuning, never a result: it is an Error for the caller to count.
#pragma once

#include <optional>
#include <string>

#include "warmgraph/autotune/best_config.hpp"
#include "warmgraph/autotune/module_configs.hpp"
#include "warmgraph/store/layered.hpp"

namespace warmgraph::autotune {

class Library {
public:
    /// `tier` must outlive the library.
    explicit Library(store::Tier& tier) : m_tiers{&tier} {}
    /// The first is written, those below it are only read: what the first does not have, or not whole, is looked for there.
    /// REQUIRES: there is a first. They outlive the library.
    explicit Library(store::Tiers tiers) noexcept : m_tiers(std::move(tiers)) {}

    /// The last that was written whole; nullopt: there is none. corrupt and stale: it is a miss, and the next put()
    /// replaces it; what is wrong in a tier below is not asked for again.
    [[nodiscard]] Result<std::optional<BestConfig>> find(const Digest& key) const;
    [[nodiscard]] Result<void> put(const BestConfig& best);
    /// From the first tier. Those below do not give it any more in this process.
    [[nodiscard]] Result<void> remove(const Digest& key);

    // --- those of one module, the same way
    [[nodiscard]] Result<std::optional<ModuleConfigs>> find_module(const Digest& key) const;
    [[nodiscard]] Result<void> put_module(const ModuleConfigs& module);

private:
    store::Tiers m_tiers;
};

} // namespace warmgraph::autotune
