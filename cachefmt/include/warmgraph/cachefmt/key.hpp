// The key of an entry: a model with its configuration, a rank, a function, its guards. Names from outside become path
// components only after a check here.
#pragma once

#include <array>
#include <compare>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "warmgraph/base/error.hpp"
#include "warmgraph/base/sha256.hpp"

namespace warmgraph::cachefmt {

/// Names the folder of a function: cache_dir/model_info/rank/function.
struct FunctionKey {
    std::string model_info; ///< "TinyLlama_static_clgraphcache_1a2b3c4d"
    std::string rank;       ///< "world1global_rank0"
    std::string function;   ///< "decode"
    auto operator<=>(const FunctionKey&) const = default;
};

/// Names an entry. The entry's digest covers its key, so that a file copied to another key is refused.
struct EntryKey {
    FunctionKey function;
    Digest guards_digest; ///< guards_digest() of the entry's guards; also the file's name
    auto operator<=>(const EntryKey&) const = default;
};

/// The position of this process in its job.
struct Rank {
    int world_size = 1;
    int global_rank = 0;
    std::optional<int> tp_rank{}, pp_rank{};
};

/// Names of cache folders for other kinds of artifacts, beside those of models.
inline constexpr std::array<std::string_view, 7> k_reserved_folders{"images",   "quarantine", "autotune", "profile",
                                                                    "compiled", "torch",      "remotes"};

/// Accepts 1-128 bytes of [A-Za-z0-9._-], not starting with '.' or '-'. invalid_argument names the broken rule, e.g.
/// "function name 'a/b' has '/' at byte 1: use letters, digits, '.', '_' and '-'". `what` is "function name".
[[nodiscard]] Result<void> check_name(std::string_view what, std::string_view name);

/// Checks that the three names have the library's form: a model_info, a rank's folder, a function's name.
/// invalid_argument names the wrong name.
[[nodiscard]] Result<void> check_key(const FunctionKey& function);

/// Returns `<Model>_<dynamic|static>_<cudagraphcache|clgraphcache>_<hash>`; the hash has 12 hex digits and covers model
/// and configuration. Only the `backend` "cuda" gives "cudagraphcache". REQUIRES: check_name(model) holds.
[[nodiscard]] std::string model_info(std::string_view model, std::string_view backend, std::string_view shape_mode,
                                     const std::map<std::string, std::string>& config);
/// Returns the model_info for each kind of backend.
[[nodiscard]] std::array<std::string, 2> model_infos(std::string_view model, std::string_view shape_mode,
                                                     const std::map<std::string, std::string>& config);
[[nodiscard]] bool is_model_info(std::string_view name) noexcept;
/// Returns the model's name in a model_info, or the whole text if it is not a model_info.
[[nodiscard]] std::string_view model_of(std::string_view model_info) noexcept;

/// Returns e.g. "world8global_rank3", with "_tp_rank1" and "_pp_rank0" appended if these ranks are set.
[[nodiscard]] std::string folder_name(const Rank& rank);
[[nodiscard]] bool is_rank_folder(std::string_view name) noexcept;

} // namespace warmgraph::cachefmt
