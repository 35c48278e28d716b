#include "snapshot.hpp"

#include <algorithm>
#include <cstddef>

namespace warmgraph::python {

namespace {

bool is_same(const Api& api, const wg_dict_look& one)
{
    std::ptrdiff_t position = 0;
    std::size_t at = 0;
    for (Object *key = nullptr, *value = nullptr; api.dict_next(one.dict, &position, &key, &value) != 0; ++at)
        if (at == one.count || key != one.pairs[2 * at] || value != one.pairs[2 * at + 1]) return false;
    return at == one.count;
}

bool is_same(const Api& api, const wg_dict_item_look& one)
{
    Object* const now = api.dict_get(one.dict, one.key);
    if (now == nullptr) api.clear_error(); // the key is not there, or cannot be hashed
    return now == one.value;
}

bool is_same(const Api& api, const wg_list_look& one)
{
    if (api.list_size(one.list) != static_cast<std::ptrdiff_t>(one.count)) return false;
    for (std::uint64_t i = 0; i < one.count; ++i)
        if (api.list_get(one.list, static_cast<std::ptrdiff_t>(i)) != one.items[i]) return false;
    return true;
}

bool has_dict(const Api& api, wg_object_look& one)
{
    if (one.place == nullptr && api.attributes_place != nullptr) {
        Object** const place = api.attributes_place(one.object);
        if (place != nullptr && *place == one.dict) one.place = place;
    }
    return one.place != nullptr ? *one.place == one.dict : api.attributes_of(one.object) == one.dict;
}

bool is_same(const Api& api, wg_object_look& one)
{
    return Api::kind_of(one.object) == one.kind && (one.dict == nullptr || has_dict(api, one));
}

bool is_same(const Api& api, const wg_attribute_look& one)
{
    Object* const now = api.attribute(one.object, one.name);
    if (now == nullptr)
        api.clear_error();
    else
        api.release(now); // the caller holds a reference to the recorded object
    return now == one.value;
}

template <class Row>
bool are_same(const Api& api, Row* looks, std::uint64_t count)
{
    return std::all_of(looks, looks + count, [&](Row& one) { return is_same(api, one); });
}

bool are_dicts_same(const Api& api, wg_snapshot& snapshot)
{
    const auto hold_the_same = [&] { return are_same(api, snapshot.dicts, snapshot.dict_count); };
    if (snapshot.is_told == 0) return hold_the_same();
    const std::uint64_t now = dict_events(); // read before the comparison, so that a change meanwhile is seen next time
    if (snapshot.has_seen != 0 && snapshot.seen == now) return true;
    if (!hold_the_same()) return false;
    snapshot.has_seen = 1;
    snapshot.seen = now;
    return true;
}

bool are_objects_same(const Api& api, const wg_snapshot& snapshot)
{
    constexpr std::uint64_t k_ahead = 8;
    for (std::uint64_t i = 0; i < snapshot.object_count; ++i) {
        if (i + k_ahead < snapshot.object_count) {
            __builtin_prefetch(snapshot.objects[i + k_ahead].object);
            __builtin_prefetch(static_cast<const void*>(snapshot.objects[i + k_ahead].place));
        }
        if (!is_same(api, snapshot.objects[i])) return false;
    }
    return true;
}

} // namespace

bool is_as_it_was(const Api& api, wg_snapshot& snapshot)
{
    return are_dicts_same(api, snapshot) && are_same(api, snapshot.items, snapshot.item_count) &&
           are_same(api, snapshot.lists, snapshot.list_count) && are_objects_same(api, snapshot) &&
           are_same(api, snapshot.attributes, snapshot.attribute_count);
}

std::uint64_t& dict_events()
{
    static std::uint64_t events = 0;
    return events;
}

} // namespace warmgraph::python
