// An entry restored by warmgraph through its public interface, in a process that knows the function's declaration and nothing
// else of the entry: reading it ahead would warm up what is to be measured.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include <nlohmann/json.hpp>

#include "stored_entry.hpp"

namespace warmgraph::bench {

/// Why no process without the function's own code can have the entry's guards; nothing where one can.
[[nodiscard]] std::optional<std::string> why_not_loadable(const StoredEntry& stored);

/// The same entry and images in a new folder, under guards that Cache::load can have: a version in place of the code's build id,
/// no digests of programs' sources. Returns its key.
[[nodiscard]] cachefmt::EntryKey copy_loadable(const StoredEntry& stored, const std::filesystem::path& cache_dir);

/// What a program that calls the function would have in its source: options, Spec, shapes, and how its memory lies.
[[nodiscard]] nlohmann::json describe_call(const cachefmt::Entry& entry, const std::filesystem::path& cache_dir);

/// In this process: opens the device, allocates, then from opening the cache to the first result. std::runtime_error (or what the
/// library throws) where the call was not replayed.
[[nodiscard]] nlohmann::json restore_through_facade(const nlohmann::json& call);

} // namespace warmgraph::bench
