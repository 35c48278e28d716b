// Sets keys of a JSON object, for sources that do not include the JSON library (which takes 3 s to compile).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "warmgraph/cachefmt/graph.hpp"

namespace warmgraph::cachefmt {

using Json = nlohmann::ordered_json;

void set_text(Json& object, const char* key, std::string_view text);
void set_number(Json& object, const char* key, std::uint64_t number);
void set_signed(Json& object, const char* key, std::int64_t number);
void set_flag(Json& object, const char* key, bool flag);
void set_null(Json& object, const char* key);
void set_numbers(Json& object, const char* key, std::span<const std::uint32_t> numbers);
/// Sets names[index], or null if the index is out of range.
void set_name(Json& object, const char* key, const std::vector<std::string>& names, std::uint32_t index);
void set_slot(Json& object, const char* key, const Slot& slot, const Graph& graph);
void set_slots(Json& object, const char* key, const std::vector<Slot>& slots, const Graph& graph);

/// Adds an empty object. The reference is valid until a key of `object` is set.
[[nodiscard]] Json& set_object(Json& object, const char* key);
/// Adds an empty array. The reference is valid until a key of `object` is set.
[[nodiscard]] Json& set_array(Json& object, const char* key);
/// Appends an empty object. The reference is valid until the next append.
[[nodiscard]] Json& append_object(Json& array);

/// Adds an array of objects; `set_one` sets the keys of each.
template <class Range, class Set>
void set_list(Json& object, const char* key, const Range& range, Set set_one)
{
    Json& array = set_array(object, key);
    for (const auto& item : range) set_one(append_object(array), item);
}

} // namespace warmgraph::cachefmt
