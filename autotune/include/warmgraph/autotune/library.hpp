// Tuned configurations in a tier: found, put, and none of them believed for its name.
//
// Thread-safe where the tier is. A failure costs a tuning, never a result: it is an Error for the caller to count.
#pragma once

#include <optional>
#include <string>

#include "warmgraph/autotune/best_config.hpp"
#include "warmgraph/autotune/module_configs.hpp"
#include "warmgraph/store/tier.hpp"

namespace warmgraph::autotune {

class Library {
public:
    /// `tier` must outlive the library.
    explicit Library(store::Tier& tier) noexcept : m_tier(tier) {}

    /// The last that was written whole; nullopt: there is none. corrupt and stale: it is a miss, and the next put()
    /// replaces it.
    [[nodiscard]] Result<std::optional<BestConfig>> find(const Digest& key) const;
    [[nodiscard]] Result<void> put(const BestConfig& best);
    [[nodiscard]] Result<void> remove(const Digest& key);

    // --- those of one module, the same way
    [[nodiscard]] Result<std::optional<ModuleConfigs>> find_module(const Digest& key) const;
    [[nodiscard]] Result<void> put_module(const ModuleConfigs& module);

private:
    store::Tier& m_tier;
};

} // namespace warmgraph::autotune
