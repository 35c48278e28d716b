// What modules, and values beside them, held when they were read, by identity.
#pragma once

#include <cstddef>
#include <memory_resource>
#include <span>
#include <vector>

#include "api.hpp"

namespace warmgraph::python {

struct Pair {
    Object* key;
    Object* value;
};

/// A dictionary holds these objects in this order: `count` pairs of a key and a value. `next` is PyDict_Next.
template <class Next>
[[nodiscard]] bool holds_the_same(Next next, Object* dict, Object* const* pairs, std::size_t count)
{
    std::ptrdiff_t position = 0;
    std::size_t at = 0;
    for (Object *key = nullptr, *value = nullptr; next(dict, &position, &key, &value) != 0; ++at)
        if (at == count || key != pairs[2 * at] || value != pairs[2 * at + 1]) return false;
    return at == count;
}

/// Owns none of it: whoever reads keeps it alive. Not thread-safe; used with Python's lock held.
class HeldModules {
public:
    explicit HeldModules(const Api& api) : m_api(api) {}

    void add_object(Object* object, Object* dict, Object* kind);
    void add_dict(Object* dict, std::span<const Pair> pairs);
    void add_list(Object* list, std::span<Object* const> items);

    /// Each dictionary holds the same objects in the same order.
    [[nodiscard]] bool are_dicts_same() const;
    /// Each object is of the same class, its attributes are in the same dictionary, and each list holds the same.
    [[nodiscard]] bool are_objects_same() const;
    /// Has Python tell the watcher of changes of the dictionaries (PyDict_Watch): nonzero where it will not.
    [[nodiscard]] int watch(int (*tell)(int, Object*), int watcher) const;

private:
    struct Dict {
        Object* dict;
        Object* const* pairs; ///< key, value, key, ...
        std::size_t count;    ///< of pairs
    };
    struct List {
        Object* list;
        Object* const* items;
        std::size_t count;
    };
    struct Owner {
        Object *object, *dict, *kind;
        Object** place; ///< where it has `dict`; NULL: Python is asked
    };

    /// For `count` objects of a dictionary or a list. It stays where it is: a vector that grows touches new pages each time,
    /// and each of these costs some microseconds.
    [[nodiscard]] Object** room_for(std::size_t count);
    [[nodiscard]] bool is_same(const List& list) const;
    [[nodiscard]] bool is_same(const Owner& owner) const;

    const Api& m_api;
    std::pmr::monotonic_buffer_resource m_memory; ///< of what the next two point to
    std::vector<Dict> m_dicts;
    std::vector<List> m_lists;
    std::vector<Owner> m_owners;
};

} // namespace warmgraph::python

struct wg_modules {
    explicit wg_modules(const warmgraph::python::Api& its) : api(its), held(its) {}
    const warmgraph::python::Api& api;
    warmgraph::python::HeldModules held;
};
