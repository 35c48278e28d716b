// The commit protocol: commit.md says why each step is there.
#pragma once

#include "tiers/local/layout.hpp"

namespace warmgraph::store {

/// Makes `target` hold exactly `bytes`, or leaves it as it was. Makes the folder when it is missing, also when somebody
/// removes it meanwhile.
[[nodiscard]] Result<void> commit(FileSystem& files, const Path& target, ByteView bytes, Modes modes,
                                  Durability durability = Durability::synced);

} // namespace warmgraph::store
