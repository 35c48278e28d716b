// Names that come from outside become path components only here.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "warmgraph/base/error.hpp"
#include "warmgraph/cachefmt/entry.hpp"

namespace warmgraph::store {

/// Accepts 1-128 bytes of [A-Za-z0-9._-], not starting with '.' or '-'. invalid_argument says which rule broke, e.g.
/// "function name 'a/b' has '/' at byte 1: use letters, digits, '.', '_' and '-'". `what` is "function name".
[[nodiscard]] Result<void> check_name(std::string_view what, std::string_view name);

/// Are these three names as the library makes them: a model_info, a rank's folder, a function's name? invalid_argument
/// says which is not.
[[nodiscard]] Result<void> check_key(const cachefmt::FunctionKey& function);

/// `<Model>_<dynamic|static>_<cudagraphcache|clgraphcache>_<hash>`: 12 hex digits over model and configuration.
/// `backend` is "cuda" or anything else. REQUIRES: check_name(model) holds.
[[nodiscard]] std::string model_info(std::string_view model, std::string_view backend, std::string_view shape_mode,
                                     const std::map<std::string, std::string>& config);

/// The model's name in a model_info, or the whole text when it is no model_info.
[[nodiscard]] std::string_view model_of(std::string_view model_info) noexcept;

} // namespace warmgraph::store
