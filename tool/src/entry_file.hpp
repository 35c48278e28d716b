// An entry's file, read by itself: LocalStore::entry() would count a use and move a damaged entry away.
#pragma once

#include "context.hpp"
#include "warmgraph/cachefmt/entry.hpp"

namespace warmgraph::tool {

/// `<root>/<model_info>/<rank>/<function>/<digest>.wg`
[[nodiscard]] std::filesystem::path path_of(const std::filesystem::path& root, const cachefmt::EntryKey& key);

/// The whole entry, verified. not_found: no such file; errors name the path.
[[nodiscard]] Result<cachefmt::Entry> read_entry(const Context& context, const std::filesystem::path& path,
                                                 const cachefmt::EntryKey& key);

} // namespace warmgraph::tool
