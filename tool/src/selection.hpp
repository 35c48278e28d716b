// Which function a user means by "tiny-llama/decode".
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "context.hpp"
#include "warmgraph/cachefmt/entry.hpp"
#include "warmgraph/store/local_store.hpp"

namespace warmgraph::tool {

/// The folder itself, or the model's name.
[[nodiscard]] bool is_model(std::string_view model_info, std::string_view name);

/// "model_info/rank/function", as it is on disk and as the log names it.
[[nodiscard]] std::string full_name(const cachefmt::FunctionKey& key);

/// `name`: model/function or model/rank/function, where model is a name or a model_info folder. not_found lists what
/// there is; invalid_argument where several fit, with their full names.
[[nodiscard]] Result<cachefmt::FunctionKey> select(const std::vector<cachefmt::FunctionKey>& functions,
                                                   std::string_view name);

/// The same of an open store; not_found names the folder where there is none (null).
[[nodiscard]] Result<cachefmt::FunctionKey> select(const Context& context, const store::LocalStore* store,
                                                   std::string_view name);

/// Those that a model, model/function or model/rank/function names; all where nothing is named. not_found lists what
/// there is, invalid_argument says that it is no name.
[[nodiscard]] Result<std::vector<cachefmt::FunctionKey>> choose(const std::vector<cachefmt::FunctionKey>& functions,
                                                                const std::optional<std::string>& name);

/// The same of an open store (null: none).
[[nodiscard]] Result<std::vector<cachefmt::FunctionKey>> choose(const Context& context, const store::LocalStore* store,
                                                                const std::optional<std::string>& name);

/// "model" and "model/function" of each, sorted, once.
[[nodiscard]] std::vector<std::string> names_of(const std::vector<cachefmt::FunctionKey>& functions);

/// What `clear` takes for --func: function, model/function or model/rank/function. invalid_argument for anything else, and
/// where --model is given besides a name with a model.
[[nodiscard]] Result<store::ClearRequest> request_of(const std::optional<std::string>& model,
                                                     const std::optional<std::string>& function);

/// not_found: the names that were given fit no function; lists what there is.
[[nodiscard]] Error fits_nothing(const std::vector<cachefmt::FunctionKey>& functions,
                                 const store::ClearRequest& request);

/// The key that a file at <...>/<model_info>/<rank>/<function>/<digest>.wg must have.
[[nodiscard]] Result<cachefmt::EntryKey> key_of_path(const std::filesystem::path& path);

} // namespace warmgraph::tool
