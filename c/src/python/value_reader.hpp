// Reads values as Walker._value (python/warmgraph/torch/_walking.py) does, where they are of the common kinds: plain ones,
// tensors, lists, tuples, dictionaries, and objects whose attributes lie in a dictionary. The rest it hands to the walker,
// in its turn.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "api.hpp"
#include "held_modules.hpp"
#include "warmgraph/python.h"

namespace warmgraph::python {

/// One read. Everything but `held` is the walker's; what `held` names goes into the walk's `kept`.
class ValueReader {
public:
    ValueReader(const Api& api, const wg_module_walk& walk, HeldModules& held);

    /// Throws Raised.
    void read(Object* path, Object* value);

protected:
    /// Begins at an object that the walker names.
    void begin(Object* path, Object* value);
    /// Where the reader is, as long as this lives.
    class Below {
    public:
        Below(std::string& path, std::initializer_list<std::string_view> suffixes) : m_path(path), m_length(path.size())
        {
            for (const std::string_view one : suffixes) path += one;
        }
        Below(const Below&) = delete;
        Below& operator=(const Below&) = delete;
        ~Below() { m_path.resize(m_length); }

    private:
        std::string& m_path;
        std::size_t m_length;
    };

    /// What lies at m_path.
    void value(Object* value);
    void tensor(Object* path, Object* value);
    /// What cannot be compared is left out where no code that was read names it.
    void member(std::string_view name, Object* value);
    /// An object that has parts, which are read once: `body` reads them.
    template <class Body>
    void once(Object* path, Object* value, const Ref& id, Body body);
    void name_object(Object* path, Object* value);
    void remember(Object* path, Object* value, const Ref& id);
    /// It was read before: true, and the fact says where.
    [[nodiscard]] bool is_known(Object* path, Object* value, const Ref& id);
    [[nodiscard]] bool is_open(const Ref& id) const;
    [[nodiscard]] bool has_room() const;
    void fact(Object* path, std::string_view text, std::uint64_t longest);
    [[nodiscard]] bool is_tensor(Object* kind) const { return kind == m_walk.tensor || kind == m_walk.parameter; }
    [[nodiscard]] bool append_plain(std::string& text, Object* value) const;

    void keep(const std::vector<Pair>& pairs);
    void keep(Object* object);
    [[nodiscard]] Ref here() const { return text_of(m_path); }
    [[nodiscard]] Ref id_of(Object* object) const;
    [[nodiscard]] Ref text_of(std::string_view text) const;
    [[nodiscard]] std::string_view utf8_of(Object* text) const;
    [[nodiscard]] bool has_utf8(const std::vector<Pair>& pairs) const;
    [[nodiscard]] std::vector<Pair> pairs_of(Object* dict) const;
    template <class... Arguments>
    [[nodiscard]] Ref called(Object* function, Arguments... arguments) const
    {
        return Api::checked(m_api.call(function, arguments..., static_cast<Object*>(nullptr)));
    }

    const Api& m_api;
    const wg_module_walk& m_walk;
    HeldModules& m_held;
    std::string m_path; ///< of what is read

private:
    /// What objects of one class are.
    struct Plan {
        bool is_common = false;
        bool is_library = false; ///< all attributes count, since a library's methods are not read
        std::string head;
        std::vector<std::string> fields; ///< of a data class, which count before the others
        std::vector<std::pair<std::string, Object*>> of_classes;
        Ref kept;
    };
    struct Named {
        std::string_view name;
        Object* value;
    };
    /// How much the walk had found: facts, objects, what was read, tensors, places, what is watched.
    using Mark = std::array<std::ptrdiff_t, 6>;

    void sequence(Object* path, Object* value, Object* kind, const Ref& id);
    void dictionary(Object* path, Object* value, const Ref& id);
    void object(Object* path, Object* value, Object* kind, const Ref& id);
    void attributes(const Plan& plan, const std::vector<Pair>& own);
    void attributes_of_library(const Plan& plan, std::vector<Named>& own);
    [[nodiscard]] std::vector<Named> of_classes(const Plan& plan) const;
    [[nodiscard]] const Plan& plan_of(Object* kind);
    [[nodiscard]] Ref own_attributes(Object* value) const;
    [[nodiscard]] bool are_fields_own(const Plan& plan, const std::vector<Pair>& own) const;
    [[nodiscard]] bool is_named(std::string_view name) const;
    [[nodiscard]] bool is_kept_hash(const Named& one) const;
    [[nodiscard]] bool append_simple(std::string& text, Object* value, Object* kind) const;
    [[nodiscard]] bool append_key(std::string& text, Object* key) const;
    [[nodiscard]] Mark mark() const;
    void undo(std::string_view name, const Mark& mark);
    void handed(Object* path, Object* value) const { static_cast<void>(called(m_walk.value, path, value)); }
    [[nodiscard]] bool is_followed(Object* value, std::string& text) const;
    [[nodiscard]] bool is_true(const Ref& object) const;

    std::map<Object*, Plan> m_plans;
    Ref m_requires_grad, m_dict_name;
    Object* m_none_type;
};

/// Names an object as one that is being read.
class Opened {
public:
    Opened(const Api& api, Object* list, Object* id) : m_api(api), m_list(list)
    {
        if (api.list_append(list, id) != 0) throw Raised{};
    }
    Opened(const Opened&) = delete;
    Opened& operator=(const Opened&) = delete;
    ~Opened() // also with an exception set, which this call leaves alone: it removes what is there
    {
        const std::ptrdiff_t size = m_api.list_size(m_list);
        m_api.list_set_slice(m_list, size - 1, size, nullptr);
    }

private:
    const Api& m_api;
    Object* m_list;
};

template <class Body>
void ValueReader::once(Object* path, Object* value, const Ref& id, Body body)
{
    name_object(path, value);
    const Opened open(m_api, m_walk.opened, id.get());
    body();
}

[[nodiscard]] bool is_ascii(std::string_view text);

} // namespace warmgraph::python
