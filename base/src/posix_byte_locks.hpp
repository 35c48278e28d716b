// Locks on byte ranges, made with Linux's open file description locks.
#pragma once

#include "posix_files.hpp"

namespace warmgraph::posix {

[[nodiscard]] Result<std::unique_ptr<ByteLocks>> open_byte_locks_at(const NameInFolder& place,
                                                                    std::optional<std::uint32_t> mode);

} // namespace warmgraph::posix
