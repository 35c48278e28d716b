#include "held_modules.hpp"

#include <algorithm>

namespace warmgraph::python {

void HeldModules::add_object(Object* object, Object* dict, Object* kind)
{
    Object** place = m_api.attributes_place == nullptr ? nullptr : m_api.attributes_place(object);
    if (place != nullptr && *place != dict) place = nullptr;
    m_owners.push_back({object, dict, kind, place});
}

Object** HeldModules::room_for(std::size_t count)
{
    return static_cast<Object**>(m_memory.allocate(count * sizeof(Object*), alignof(Object*)));
}

void HeldModules::add_dict(Object* dict, std::span<const Pair> pairs)
{
    Object** const held = room_for(2 * pairs.size());
    for (std::size_t i = 0; i < pairs.size(); ++i) {
        held[2 * i] = pairs[i].key;
        held[2 * i + 1] = pairs[i].value;
    }
    m_dicts.push_back({dict, held, pairs.size()});
}

void HeldModules::add_list(Object* list, std::span<Object* const> items)
{
    Object** const held = room_for(items.size());
    std::ranges::copy(items, held);
    m_lists.push_back({list, held, items.size()});
}

bool HeldModules::are_dicts_same() const
{
    return std::ranges::all_of(
        m_dicts, [this](const Dict& one) { return holds_the_same(m_api.dict_next, one.dict, one.pairs, one.count); });
}

bool HeldModules::are_objects_same() const
{
    constexpr std::size_t k_ahead = 8;
    for (std::size_t i = 0; i < m_owners.size(); ++i) {
        if (i + k_ahead < m_owners.size()) {
            __builtin_prefetch(m_owners[i + k_ahead].object);
            __builtin_prefetch(static_cast<const void*>(m_owners[i + k_ahead].place));
        }
        if (!is_same(m_owners[i])) return false;
    }
    return std::ranges::all_of(m_lists, [this](const List& one) { return is_same(one); });
}

bool HeldModules::is_same(const Owner& owner) const
{
    if (Api::kind_of(owner.object) != owner.kind) return false;
    return owner.place != nullptr ? *owner.place == owner.dict : m_api.attributes_of(owner.object) == owner.dict;
}

bool HeldModules::is_same(const List& list) const
{
    if (m_api.list_size(list.list) != static_cast<std::ptrdiff_t>(list.count)) return false;
    for (std::size_t i = 0; i < list.count; ++i)
        if (m_api.list_get(list.list, static_cast<std::ptrdiff_t>(i)) != list.items[i]) return false;
    return true;
}

int HeldModules::watch(int (*tell)(int, Object*), int watcher) const
{
    for (const Dict& one : m_dicts)
        if (tell(watcher, one.dict) != 0) return -1;
    return 0;
}

} // namespace warmgraph::python
