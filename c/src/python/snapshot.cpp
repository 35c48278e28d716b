#include "snapshot.hpp"

#include <algorithm>
#include <span>

#include "held_modules.hpp"

namespace warmgraph::python {

namespace {

bool hold_the_same(const Api& api, const wg_snapshot& snapshot)
{
    const std::span dicts(snapshot.dicts, snapshot.dict_count);
    const std::span modules(snapshot.modules, snapshot.module_count);
    return std::ranges::all_of(dicts,
                               [&](const wg_dict_look& one) {
                                   return holds_the_same(api.dict_next, one.dict, one.pairs, one.count);
                               }) &&
           std::ranges::all_of(modules, [](const wg_modules* one) { return one->held.are_dicts_same(); });
}

bool are_dicts_same(const Api& api, wg_snapshot& snapshot)
{
    if (snapshot.is_told == 0) return hold_the_same(api, snapshot);
    const std::uint64_t now = dict_events(); // of before the look
    if (snapshot.has_seen != 0 && snapshot.seen == now) return true;
    if (!hold_the_same(api, snapshot)) return false;
    snapshot.has_seen = 1;
    snapshot.seen = now;
    return true;
}

bool is_same(const Api& api, const wg_dict_item_look& one)
{
    Object* const now = api.dict_get(one.dict, one.key);
    if (now == nullptr) api.clear_error(); // a key without a hash, or none of it
    return now == one.value;
}

bool is_same(const Api& api, const wg_list_look& one)
{
    if (api.list_size(one.list) != static_cast<std::ptrdiff_t>(one.count)) return false;
    for (std::uint64_t i = 0; i < one.count; ++i)
        if (api.list_get(one.list, static_cast<std::ptrdiff_t>(i)) != one.items[i]) return false;
    return true;
}

bool is_same(const Api& api, const wg_object_look& one)
{
    return Api::kind_of(one.object) == one.kind && (one.dict == nullptr || api.attributes_of(one.object) == one.dict);
}

bool is_same(const Api& api, const wg_attribute_look& one)
{
    Object* const now = api.attribute(one.object, one.name);
    if (now == nullptr)
        api.clear_error();
    else
        api.release(now); // whoever looks holds the one that it was
    return now == one.value;
}

template <class Look>
bool are_same(const Api& api, const Look* looks, std::uint64_t count)
{
    return std::all_of(looks, looks + count, [&](const Look& one) { return is_same(api, one); });
}

} // namespace

bool is_as_it_was(const Api& api, wg_snapshot& snapshot)
{
    const std::span modules(snapshot.modules, snapshot.module_count);
    return are_dicts_same(api, snapshot) && are_same(api, snapshot.items, snapshot.item_count) &&
           are_same(api, snapshot.lists, snapshot.list_count) &&
           are_same(api, snapshot.objects, snapshot.object_count) &&
           are_same(api, snapshot.attributes, snapshot.attribute_count) &&
           std::ranges::all_of(modules, [](const wg_modules* one) { return one->held.are_objects_same(); });
}

std::uint64_t& dict_events()
{
    static std::uint64_t events = 0;
    return events;
}

} // namespace warmgraph::python
