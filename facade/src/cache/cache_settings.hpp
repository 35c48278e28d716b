// What a cache was opened with: fixed from then on, so that it is read without a lock.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "warmgraph/backends/device.hpp"
#include "warmgraph/cachefmt/key.hpp"
#include "warmgraph/guards/evaluate.hpp"
#include "warmgraph/ranks/launcher.hpp"
#include "warmgraph/store/local_store.hpp"
#include "warmgraph/warmgraph.hpp"

namespace warmgraph {

struct CacheSettings {
    CacheOptions options; ///< without the keys, which `trust` has
    cachefmt::Trust trust;
    cachefmt::Rank rank;
    Policy policy = Policy::read_write;
    store::KindSet kinds; ///< that are switched on
    guards::Relaxation relaxation;
    bool verifies_first = false;    ///< the first use of each restored graph
    std::uint64_t verify_every = 0; ///< each Nth call that is replayed; 0: none
    std::string directory;
    std::string disabled_reason; ///< why caching is off; empty where it works

    /// False where nobody who asks for signatures, as it does itself, would use what it publishes.
    [[nodiscard]] bool may_publish() const noexcept { return !trust.require || trust.sign_with; }
    /// Whether an entry may be looked for, where there is a store.
    [[nodiscard]] bool looks_for_entries(Policy by) const noexcept
    {
        return kinds.contains(store::ArtifactKind::entries) && by != Policy::off && by != Policy::refresh;
    }
    /// The folder of this model on a backend. Thread-safe: computed once for each, as every function asks.
    [[nodiscard]] std::string model_info(std::string_view backend) const;
    [[nodiscard]] std::string_view shape_mode() const noexcept;
    [[nodiscard]] cachefmt::FunctionKey key(const std::string& function, const backends::Device& device) const;

private:
    mutable std::mutex m_mutex; ///< guards the rest
    mutable std::map<std::string, std::string, std::less<>> m_models;
};

} // namespace warmgraph
