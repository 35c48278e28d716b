// What every subcommand is given, and what its outcome means to the shell.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include <nlohmann/json.hpp>

#include "terminal.hpp"
#include "warmgraph/base/clock.hpp"
#include "warmgraph/base/error.hpp"
#include "warmgraph/base/file_system.hpp"
#include "warmgraph/store/local_store.hpp"

namespace warmgraph::tool {

using Json = nlohmann::ordered_json;

/// Exit statuses, as in --help and docs/command.md.
enum Exit : int {
    k_ok = 0,
    k_found_wrong = 1, ///< damage, a miss, a problem, or nothing by that name
    k_usage = 2,
    k_no_cache = 3, ///< the cache folder cannot be used
};

enum class Output : std::uint8_t { text, json };

struct Context {
    std::filesystem::path cache_dir; ///< absolute
    Output output = Output::text;
    Style style;
    FileSystem& files;
    Clock& clock;
};

/// Files of keys; empty: the environment's.
struct SigningFiles {
    std::string key{};      ///< to sign with
    std::string accepted{}; ///< keys that are accepted beside it
};
/// Those keys and the environment's, and whether the environment requires a signature.
[[nodiscard]] Result<cachefmt::Trust> trust_of(const SigningFiles& files);
/// $WARMGRAPH_TRUSTED_OWNERS.
[[nodiscard]] Result<std::vector<std::uint32_t>> trusted_owners();

/// As it was made (CacheOptions::share_with_group): its group may write it. Of one that all may write, the set-group-id
/// bit tells.
[[nodiscard]] bool is_shared(const FileInfo& folder) noexcept;

/// nullptr where the folder does not exist or is empty: no subcommand makes a folder or marks one.
[[nodiscard]] Result<std::unique_ptr<store::LocalStore>> open_store(
    const Context& context, store::StoreMode access = store::StoreMode::read_only,
    const std::optional<cachefmt::Trust>& trust = {});

/// Made and marked where it is missing or empty: for what fills a cache.
[[nodiscard]] Result<std::unique_ptr<store::LocalStore>> open_store_to_fill(const Context& context,
                                                                            const cachefmt::Trust& trust);

/// As a program opens it: what cannot be written is read (LocalStore::why_read_only).
[[nodiscard]] Result<std::unique_ptr<store::LocalStore>> open_store_as_programs_do(const Context& context);

/// A path on its way to a terminal.
[[nodiscard]] std::string path_text(const std::filesystem::path& path);

/// One document on standard output, in ASCII. Bytes that are no UTF-8 become U+FFFD.
void print(const Json& document);
/// REQUIRES: what comes from outside went through printable().
void print(const std::string& text);
/// invalid_argument: a file's bytes and the JSON document would be one stream.
[[nodiscard]] Result<void> check_output(const Context& context, const std::string& file);

/// Reports on standard error (and as a document with --json) and gives the exit status that fits.
[[nodiscard]] int report_failure(Output output, const Error& error);

/// "no cache folder at /x: nothing was recorded yet, or give --cache-dir"; or that the folder is empty
[[nodiscard]] std::string no_folder_text(const Context& context);

} // namespace warmgraph::tool
