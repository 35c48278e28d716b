#include "json_keys.hpp"

#include <nlohmann/json.hpp>

#include "describe.hpp"

namespace warmgraph::cachefmt {
namespace {

void put_slot(Json& object, const Slot& slot, const Graph& graph)
{
    object["kind"] = slot.kind == SlotKind::region ? "region" : "scalar";
    object["target"] = slot.target;
    object["offset"] = slot.offset;
    object["width"] = slot.width;
    object["addend"] = slot.addend;
    object["text"] = to_text(slot, graph);
}

} // namespace

void set_text(Json& object, const char* key, std::string_view text) { object[key] = text; }
void set_number(Json& object, const char* key, std::uint64_t number) { object[key] = number; }
void set_signed(Json& object, const char* key, std::int64_t number) { object[key] = number; }
void set_flag(Json& object, const char* key, bool flag) { object[key] = flag; }
void set_null(Json& object, const char* key) { object[key] = nullptr; }
void set_numbers(Json& object, const char* key, std::span<const std::uint32_t> numbers) { object[key] = numbers; }

void set_name(Json& object, const char* key, const std::vector<std::string>& names, std::uint32_t index)
{
    object[key] = index < names.size() ? Json(names[index]) : Json(nullptr);
}

void set_slot(Json& object, const char* key, const Slot& slot, const Graph& graph)
{
    put_slot(set_object(object, key), slot, graph);
}

void set_slots(Json& object, const char* key, const std::vector<Slot>& slots, const Graph& graph)
{
    set_list(object, key, slots, [&](Json& item, const Slot& slot) { put_slot(item, slot, graph); });
}

Json& set_object(Json& object, const char* key) { return object[key] = Json::object(); }
Json& set_array(Json& object, const char* key) { return object[key] = Json::array(); }
Json& append_object(Json& array) { return array.emplace_back(Json::object()); }

} // namespace warmgraph::cachefmt
