// Puts remotes below a cache folder.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "warmgraph/remote/remote_tier.hpp"
#include "warmgraph/store/local_store.hpp"

namespace warmgraph::remote {

/// Makes the tier of each setting and adds it to `store` below what is there, in this order. Without `allow_unsigned` only
/// objects with a signature that `trust` accepts are used, whatever trust.require says. A remote that cannot be used (no
/// libcurl) is a warning, and is left out. Connects to nothing. `store` must outlive the tiers' calls.
[[nodiscard]] std::vector<std::shared_ptr<RemoteTier>> attach(store::LocalStore& store,
                                                              const std::vector<Settings>& settings,
                                                              const cachefmt::Trust& trust);
/// The same for a tier that is there already. `options`: label, read_only, max_bytes, and in trust.require whether objects
/// without an accepted signature are left.
[[nodiscard]] std::shared_ptr<RemoteTier> attach(store::LocalStore& store, std::unique_ptr<store::Tier> backend,
                                                 RemoteOptions options);

/// RemoteOptions of a setting.
[[nodiscard]] RemoteOptions options_of(const Settings& settings, const cachefmt::Trust& trust);

} // namespace warmgraph::remote
