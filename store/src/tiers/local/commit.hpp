// The commit protocol: commit.md says why each step is there.
#pragma once

#include "tiers/local/layout.hpp"

namespace warmgraph::store {

/// Makes `target` hold exactly `bytes`, or leaves it unchanged. Makes the folder when it is missing or gets removed.
[[nodiscard]] Result<void> commit(FileSystem& files, const Path& target, ByteView bytes, Modes modes,
                                  Durability durability = Durability::synced);

} // namespace warmgraph::store
