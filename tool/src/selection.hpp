// Finds the functions that a user's text like "tiny-llama/decode" means.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "context.hpp"
#include "warmgraph/cachefmt/entry.hpp"
#include "warmgraph/store/local_store.hpp"

namespace warmgraph::tool {

/// Whether `name` is the folder's name or the model's name.
[[nodiscard]] bool is_model(std::string_view model_info, std::string_view name);

/// Returns "model_info/rank/function", the form on disk and in the log.
[[nodiscard]] std::string full_name(const cachefmt::FunctionKey& key);

/// Finds one function. `name`: model/function or model/rank/function; the model is a name or a model_info folder.
/// not_found lists the functions; invalid_argument: several fit, with their full names.
[[nodiscard]] Result<cachefmt::FunctionKey> select(const std::vector<cachefmt::FunctionKey>& functions,
                                                   std::string_view name);

/// Does the same for an open store. If `store` is null, not_found names the missing folder.
[[nodiscard]] Result<cachefmt::FunctionKey> select(const Context& context, const store::LocalStore* store,
                                                   std::string_view name);

/// The functions that a model, model/function or model/rank/function names; all when `name` is nullopt. not_found lists
/// the functions; invalid_argument: not a valid name.
[[nodiscard]] Result<std::vector<cachefmt::FunctionKey>> choose(const std::vector<cachefmt::FunctionKey>& functions,
                                                                const std::optional<std::string>& name);

/// Does the same for an open store. `store` is null when there is no folder.
[[nodiscard]] Result<std::vector<cachefmt::FunctionKey>> choose(const Context& context, const store::LocalStore* store,
                                                                const std::optional<std::string>& name);

/// Returns "model" and "model/function" of each function, sorted, without duplicates.
[[nodiscard]] std::vector<std::string> names_of(const std::vector<cachefmt::FunctionKey>& functions);

/// The request for `clear`. `function` is the value of --func: function, model/function or model/rank/function.
/// invalid_argument for anything else, and when `model` and a name with a model are both given.
[[nodiscard]] Result<store::ClearRequest> request_of(const std::optional<std::string>& model,
                                                     const std::optional<std::string>& function);

/// The error not_found when the given names fit no function; lists the functions.
[[nodiscard]] Error fits_nothing(const std::vector<cachefmt::FunctionKey>& functions,
                                 const store::ClearRequest& request);

/// The key of a file at <...>/<model_info>/<rank>/<function>/<digest>.wg, from its path.
[[nodiscard]] Result<cachefmt::EntryKey> key_of_path(const std::filesystem::path& path);

} // namespace warmgraph::tool
