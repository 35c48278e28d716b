#include "module_reader.hpp"

#include <algorithm>
#include <utility>

namespace warmgraph::python {

namespace {

constexpr std::array<std::string_view, 5> k_part_names = {"_parameters", "_buffers", "_modules", "_forward_hooks",
                                                          "_forward_pre_hooks"};
constexpr std::size_t k_children = 3; // of the parts: what has names and facts of its own

/// As str.strip() of ASCII.
std::string_view stripped(std::string_view text)
{
    constexpr std::string_view white = " \t\n\r\x0b\x0c\x1c\x1d\x1e\x1f";
    const std::size_t first = text.find_first_not_of(white);
    return first == std::string_view::npos ? std::string_view{}
                                           : text.substr(first, text.find_last_not_of(white) - first + 1);
}

} // namespace

void ModuleReader::read(Object* path, Object* object)
{
    begin(path, object);
    module(path, object);
}

void ModuleReader::module(Object* path, Object* object)
{
    Object* const type = Api::kind_of(object);
    Kind& kind = kind_of(type);
    Attributes own;
    if (!kind.is_common || !attributes(kind, object, own)) {
        static_cast<void>(called(m_walk.module, path, object));
        return;
    }
    keep_module(object, type, kind, own);
    std::vector<Other> others;
    const std::string text = described(kind, own, others);
    fact(path, is_ascii(text) ? stripped(text) : text, m_walk.longest_of_module);
    for (std::size_t i = 0; i < k_children; ++i)
        for (const Pair& one : own.parts[i]) child(utf8_of(one.key), one.value);
    for (const Other& one : others) member(one.name, one.value.get());
}

void ModuleReader::child(std::string_view name, Object* value)
{
    const Below at(m_path, {".", name});
    Object* const kind = Api::kind_of(value);
    if (value == m_api.none)
        fact(here().get(), "NoneType None", m_walk.longest);
    else if (is_tensor(kind))
        tensor(here().get(), value);
    else if (m_walk.reads_children != 0 && is_module(value, kind))
        child_module(here().get(), value);
    else
        this->value(value);
}

/// As Walker.value does.
void ModuleReader::child_module(Object* path, Object* value)
{
    const Ref id = id_of(value);
    if (is_open(id) || !kind_of(Api::kind_of(value)).is_common || !has_room()) {
        static_cast<void>(called(m_walk.value, path, value));
        return;
    }
    if (is_known(path, value, id)) return;
    once(path, value, id, [&] { module(path, value); });
    remember(path, value, id);
}

ModuleReader::Kind& ModuleReader::kind_of(Object* kind)
{
    const auto [at, is_new] = m_kinds.try_emplace(kind);
    if (!is_new) return at->second;
    const Ref plan = called(m_walk.kind, kind);
    if (plan.get() == m_api.none) return at->second;
    at->second.head = utf8_of(m_api.tuple_get(plan.get(), 0));
    Object* const values = m_api.tuple_get(plan.get(), 1);
    m_api.retain(values);
    at->second.of_classes = Ref(values);
    at->second.is_common = true;
    return at->second;
}

bool ModuleReader::is_module(Object* value, Object* kind)
{
    if (m_kinds.contains(kind)) return true;
    const int found = m_api.is_instance(value, m_walk.module_type);
    Api::checked(found);
    return found != 0;
}

bool ModuleReader::attributes(Kind& kind, Object* object, Attributes& found)
{
    found.dict = Ref(m_api.attributes(object, nullptr));
    if (found.dict.get() == nullptr) m_api.clear_error();
    if (found.dict.get() == nullptr || Api::kind_of(found.dict.get()) != m_api.dict_type) return false;
    found.pairs = pairs_of(found.dict.get());
    const bool has_known_names = has_names_of(kind, found.pairs);
    // What runs from here on may take them out. Names that are known were kept when they were learnt.
    for (const Pair& one : found.pairs) {
        if (!has_known_names) keep(one.key);
        keep(one.value);
    }
    if (!has_known_names && !learn(kind, found)) return false;
    if (kind.compiled >= 0 && found.pairs[static_cast<std::size_t>(kind.compiled)].value != m_api.none) return false;
    return read_parts(kind, found) && are_hooks_empty(kind, found);
}

bool ModuleReader::has_names_of(const Kind& kind, const std::vector<Pair>& pairs) const
{
    return std::ranges::equal(kind.names, pairs, {}, {}, &Pair::key);
}

bool ModuleReader::learn(Kind& kind, const Attributes& found)
{
    kind.names.clear();
    if (!has_utf8(found.pairs) || !finds_roles(kind, found.pairs) || !learn_order(kind, found)) return false;
    for (const Pair& one : found.pairs) kind.names.push_back(one.key);
    return true;
}

/// Where the attributes are that each module has.
bool ModuleReader::finds_roles(Kind& kind, const std::vector<Pair>& pairs) const
{
    std::size_t parts = 0;
    kind.compiled = -1;
    kind.hooks.clear();
    for (std::size_t i = 0; i < pairs.size(); ++i) {
        const std::string_view name = utf8_of(pairs[i].key);
        const auto* const part = std::ranges::find(k_part_names, name);
        if (part != k_part_names.end()) {
            kind.parts[static_cast<std::size_t>(part - k_part_names.begin())] = i;
            ++parts;
        }
        if (name == "_compiled_call_impl") kind.compiled = static_cast<std::ptrdiff_t>(i);
        if (name.ends_with("hooks")) kind.hooks.push_back(i);
    }
    return parts == k_part_names.size();
}

bool ModuleReader::learn_order(Kind& kind, const Attributes& found)
{
    const Ref names = called(m_walk.names, found.dict.get(), kind.of_classes.get());
    kind.order.clear();
    for (std::ptrdiff_t i = 0; i < m_api.list_size(names.get()); ++i) {
        Object* const pair = m_api.list_get(names.get(), i);
        Object* const name = m_api.tuple_get(pair, 0);
        const std::string_view text = utf8_of(name);
        Named one{std::string(text), -1, nullptr};
        if (m_api.tuple_get(pair, 1) == m_api.yes) {
            const auto own =
                std::ranges::find_if(found.pairs, [&](const Pair& pair_of) { return utf8_of(pair_of.key) == text; });
            if (own == found.pairs.end()) return false;
            one.at = own - found.pairs.begin();
        } else if (one.value = m_api.dict_get(kind.of_classes.get(), name); one.value == nullptr) {
            return false;
        }
        kind.order.push_back(std::move(one));
    }
    return true;
}

bool ModuleReader::read_parts(const Kind& kind, Attributes& found) const
{
    for (std::size_t i = 0; i < kind.parts.size(); ++i) {
        Object* const part = found.pairs[kind.parts[i]].value;
        if (!is_plain_dict(part, 1)) return false;
        found.parts[i] = pairs_of(part);
        if (i < k_children && !has_utf8(found.parts[i])) return false;
    }
    return true;
}

bool ModuleReader::are_hooks_empty(const Kind& kind, const Attributes& found) const
{
    return std::ranges::all_of(kind.hooks, [&](std::size_t at) {
        Object* const hooks = found.pairs[at].value;
        return hooks == m_api.none || (is_plain_dict(hooks, 0) && m_api.dict_size(hooks) == 0);
    });
}

/// An ordered one has an order beside its items, once it has several.
bool ModuleReader::is_plain_dict(Object* value, std::ptrdiff_t most_of_ordered) const
{
    Object* const kind = Api::kind_of(value);
    return kind == m_api.dict_type || (kind == m_walk.ordered_dict && m_api.dict_size(value) <= most_of_ordered);
}

void ModuleReader::keep_module(Object* object, Object* type, const Kind& kind, const Attributes& found)
{
    m_held.add_object(object, found.dict.get(), type);
    m_held.add_dict(found.dict.get(), found.pairs);
    keep(found.dict.get());
    for (std::size_t i = 0; i < found.parts.size(); ++i) {
        m_held.add_dict(found.pairs[kind.parts[i]].value, found.parts[i]);
        keep(found.parts[i]);
    }
}

/// Its class, its plain values, and the names of what is in it: who goes through these sees the order. `others`:
/// what is not plain.
std::string ModuleReader::described(const Kind& kind, const Attributes& found, std::vector<Other>& others) const
{
    std::string text = kind.head;
    bool is_first = true;
    for (const Named& one : kind.order) {
        Object* const value = one.at < 0 ? one.value : found.pairs[static_cast<std::size_t>(one.at)].value;
        const std::size_t before = text.size();
        if (!is_first) text += ' ';
        text += one.name;
        text += '=';
        if (append_plain(text, value)) {
            is_first = false;
            continue;
        }
        text.resize(before);
        m_api.retain(value);
        others.push_back({one.name, Ref(value)});
    }
    text += " of ";
    const std::size_t start = text.size();
    for (std::size_t i = 0; i < k_children; ++i)
        for (const Pair& one : found.parts[i]) {
            if (text.size() > start) text += ' ';
            text += utf8_of(one.key);
        }
    return text;
}

} // namespace warmgraph::python
