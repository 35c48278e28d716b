// A folder that is not there, as a file system: it is empty, and nothing can be written. For a cache whose entries all lie in
// layers below the folder.
#pragma once

#include <memory>

#include "warmgraph/base/file_system.hpp"

namespace warmgraph::store {

[[nodiscard]] std::unique_ptr<FileSystem> no_folder();

} // namespace warmgraph::store
