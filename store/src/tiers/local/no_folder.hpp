// A file system for a cache without a folder: empty and read-only. All entries come from the layers.
#pragma once

#include <memory>

#include "warmgraph/base/file_system.hpp"

namespace warmgraph::store {

[[nodiscard]] std::unique_ptr<FileSystem> no_folder();

} // namespace warmgraph::store
