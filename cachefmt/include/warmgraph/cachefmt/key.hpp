// What names an entry: a model with its configuration, a rank, a function, its guards. Names that come from outside
// become path components only after a check here.
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

/// Names an entry. The digest of an entry covers it, so that an entry copied under another key is refused.
struct EntryKey {
    FunctionKey function;
    Digest guards_digest; ///< guards_digest() of the entry's guards; also the file's name
    auto operator<=>(const EntryKey&) const = default;
};

/// Which process of a job this is.
struct Rank {
    int world_size = 1;
    int global_rank = 0;
    std::optional<int> tp_rank{}, pp_rank{};
};

/// Folders of a cache beside those of models: other kinds of artifacts.
inline constexpr std::array<std::string_view, 6> k_reserved_folders{"images",  "quarantine", "autotune",
                                                                    "profile", "compiled",   "torch"};

/// Accepts 1-128 bytes of [A-Za-z0-9._-], not starting with '.' or '-'. invalid_argument says which rule broke, e.g.
/// "function name 'a/b' has '/' at byte 1: use letters, digits, '.', '_' and '-'". `what` is "function name".
[[nodiscard]] Result<void> check_name(std::string_view what, std::string_view name);

/// Are these three names as the library makes them: a model_info, a rank's folder, a function's name? invalid_argument
/// says which is not.
[[nodiscard]] Result<void> check_key(const FunctionKey& function);

/// `<Model>_<dynamic|static>_<cudagraphcache|clgraphcache>_<hash>`: 12 hex digits over model and configuration.
/// `backend` is "cuda" or anything else. REQUIRES: check_name(model) holds.
[[nodiscard]] std::string model_info(std::string_view model, std::string_view backend, std::string_view shape_mode,
                                     const std::map<std::string, std::string>& config);
/// The same of every backend.
[[nodiscard]] std::array<std::string, 2> model_infos(std::string_view model, std::string_view shape_mode,
                                                     const std::map<std::string, std::string>& config);
[[nodiscard]] bool is_model_info(std::string_view name) noexcept;
/// The model's name in a model_info, or the whole text when it is no model_info.
[[nodiscard]] std::string_view model_of(std::string_view model_info) noexcept;

/// "world8global_rank3", then "_tp_rank1" and "_pp_rank0" where given.
[[nodiscard]] std::string folder_name(const Rank& rank);
[[nodiscard]] bool is_rank_folder(std::string_view name) noexcept;

} // namespace warmgraph::cachefmt
