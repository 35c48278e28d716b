// A cache's settings. They are fixed when the cache is opened, so they are read without a lock.
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

/// The name under which a tag (CacheOptions::cache_key_tag) stands among the facts that make a key.
inline constexpr const char* k_key_tag = "cache_key_tag";

struct CacheSettings {
    CacheOptions options; ///< the program's options without the keys, which are in `trust`. The tag is in `config`, too
    cachefmt::Trust trust;
    cachefmt::Rank rank;
    Policy policy = Policy::read_write;
    store::KindSet kinds; ///< kinds of artifacts that are switched on
    guards::Relaxation relaxation;
    bool verifies_first = false;    ///< whether the first use of each restored graph is verified
    std::uint64_t verify_every = 0; ///< each Nth replayed call is verified; 0: no replayed call is verified
    std::string directory;
    std::string disabled_reason; ///< why caching is off; empty if caching works

    /// False if signatures are required and the cache has no key to sign with: entries of this cache would then be
    /// useless.
    [[nodiscard]] bool may_publish() const noexcept { return !trust.require || trust.sign_with; }
    /// Whether calls with this policy may look for entries if there is a store.
    [[nodiscard]] bool looks_for_entries(Policy by) const noexcept
    {
        return kinds.contains(store::ArtifactKind::entries) && by != Policy::off && by != Policy::refresh;
    }
    /// Returns the folder of this model on a backend. Thread-safe; computed once per backend, because each function
    /// needs it.
    [[nodiscard]] std::string model_info(std::string_view backend) const;
    [[nodiscard]] std::string_view shape_mode() const noexcept;
    [[nodiscard]] cachefmt::FunctionKey key(const std::string& function, const backends::Device& device) const;

private:
    mutable std::mutex m_mutex; ///< guards the other members
    mutable std::map<std::string, std::string, std::less<>> m_models;
};

} // namespace warmgraph
