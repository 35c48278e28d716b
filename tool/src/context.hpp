// The common input of all subcommands, and their exit statuses.
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
    k_found_wrong = 1, ///< damage, a miss, a problem, or an unknown name
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

/// Key files; empty: use the environment's keys.
struct SigningFiles {
    std::string key{};      ///< key to sign with
    std::string accepted{}; ///< further accepted keys
};
/// The trust from these keys and the environment, which also says whether signatures are required.
[[nodiscard]] Result<cachefmt::Trust> trust_of(const SigningFiles& files);
/// Reads $WARMGRAPH_TRUSTED_OWNERS.
[[nodiscard]] Result<std::vector<std::uint32_t>> trusted_owners();

/// Whether CacheOptions::share_with_group made the folder: group-writable; if all may write, with the set-group-id bit.
[[nodiscard]] bool is_shared(const FileInfo& folder) noexcept;

/// Returns nullptr when the folder does not exist or is empty. A subcommand never makes or marks a folder.
[[nodiscard]] Result<std::unique_ptr<store::LocalStore>> open_store(
    const Context& context, store::StoreMode access = store::StoreMode::read_only,
    const std::optional<cachefmt::Trust>& trust = {});

/// Opens a folder to fill it: makes and marks it when it is missing or empty.
[[nodiscard]] Result<std::unique_ptr<store::LocalStore>> open_store_to_fill(const Context& context,
                                                                            const cachefmt::Trust& trust);

/// Opens the folder like a program does: read-only if it cannot be written (LocalStore::why_read_only).
[[nodiscard]] Result<std::unique_ptr<store::LocalStore>> open_store_as_programs_do(const Context& context);

/// The path as text that is safe for a terminal.
[[nodiscard]] std::string path_text(const std::filesystem::path& path);

/// Prints one document on standard output, in ASCII. Bytes that are not UTF-8 become U+FFFD.
void print(const Json& document);
/// REQUIRES: foreign text was passed through printable().
void print(const std::string& text);
/// invalid_argument: the file and the JSON document would both go to standard output.
[[nodiscard]] Result<void> check_output(const Context& context, const std::string& file);

/// Reports on standard error (with --json also as a document) and returns the exit status.
[[nodiscard]] int report_failure(Output output, const Error& error);

/// Returns "no cache folder at /x: nothing was recorded yet, or give --cache-dir", or a text that the folder is empty.
[[nodiscard]] std::string no_folder_text(const Context& context);

} // namespace warmgraph::tool
