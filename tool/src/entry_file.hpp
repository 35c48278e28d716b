// Reads an entry's file directly, because LocalStore::entry() would note a use and move a damaged entry away.
#pragma once

#include "context.hpp"
#include "warmgraph/cachefmt/entry.hpp"

namespace warmgraph::tool {

/// Returns `<root>/<model_info>/<rank>/<function>/<digest>.wg`.
[[nodiscard]] std::filesystem::path path_of(const std::filesystem::path& root, const cachefmt::EntryKey& key);

/// Returns the whole entry, verified. not_found: the file does not exist. Errors name the path.
[[nodiscard]] Result<cachefmt::Entry> read_entry(const Context& context, const std::filesystem::path& path,
                                                 const cachefmt::EntryKey& key);

} // namespace warmgraph::tool
