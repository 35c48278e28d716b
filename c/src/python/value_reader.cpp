#include "value_reader.hpp"

#include <algorithm>
#include <cctype>
#include <utility>

#include "dl_tensor.hpp"

namespace warmgraph::python {

namespace {

/// As PyTorch names an element type; "" for those that are left to Python.
std::string_view name_of(const DlTensor& tensor)
{
    struct Type {
        std::uint8_t code, bits;
        std::string_view name;
    };
    static constexpr std::array types = std::to_array<Type>({
        {2, 32, "float32"},
        {2, 16, "float16"},
        {4, 16, "bfloat16"},
        {2, 64, "float64"},
        {0, 64, "int64"},
        {0, 32, "int32"},
        {0, 16, "int16"},
        {0, 8, "int8"},
        {1, 8, "uint8"},
        {1, 16, "uint16"},
        {1, 32, "uint32"},
        {1, 64, "uint64"},
        {6, 8, "bool"},
    });
    if (tensor.lanes != 1) return {};
    const auto* const found = std::ranges::find_if(
        types, [&](const Type& one) { return one.code == tensor.code && one.bits == tensor.bits; });
    return found != types.end() ? found->name : std::string_view{};
}

void append_list(std::string& text, const std::int64_t* numbers, std::int32_t count)
{
    text += '[';
    for (std::int32_t i = 0; i < count; ++i) {
        if (i > 0) text += ", ";
        text += std::to_string(numbers[i]);
    }
    text += ']';
}

bool ends_with_hash(std::string_view name)
{
    constexpr std::string_view end = "hash";
    return name.size() >= end.size() &&
           std::ranges::equal(name.substr(name.size() - end.size()), end, {}, [](char one) {
               return static_cast<char>(std::tolower(static_cast<unsigned char>(one)));
           });
}

} // namespace

bool is_ascii(std::string_view text)
{
    return std::ranges::all_of(text, [](char letter) { return static_cast<unsigned char>(letter) < 0x80; });
}

ValueReader::ValueReader(const Api& api, const wg_module_walk& walk, HeldModules& held)
    : m_api(api),
      m_walk(walk),
      m_held(held),
      m_requires_grad(text_of("requires_grad")),
      m_dict_name(text_of("__dict__")),
      m_none_type(Api::kind_of(api.none))
{
}

void ValueReader::read(Object* path, Object* object)
{
    begin(path, object);
    value(object);
}

void ValueReader::begin(Object* path, Object* value)
{
    m_path = utf8_of(path);
    keep(value);
}

void ValueReader::value(Object* value)
{
    const Ref path = here();
    Object* const kind = Api::kind_of(value);
    std::string text;
    if (!has_room()) return handed(path.get(), value);
    if (append_simple(text, value, kind)) return fact(path.get(), text, m_walk.longest);
    if (is_tensor(kind)) return tensor(path.get(), value);
    const Ref id = id_of(value);
    if (is_known(path.get(), value, id)) return;
    if (is_open(id)) return handed(path.get(), value);
    if (kind == m_api.list_type || kind == m_api.tuple_type) return sequence(path.get(), value, kind, id);
    if (kind == m_api.dict_type) return dictionary(path.get(), value, id);
    object(path.get(), value, kind, id);
}

bool ValueReader::has_room() const
{
    return m_api.dict_size(m_walk.facts) <= static_cast<std::ptrdiff_t>(m_walk.most_facts) &&
           m_api.list_size(m_walk.opened) <= static_cast<std::ptrdiff_t>(m_walk.deepest);
}

bool ValueReader::is_open(const Ref& id) const
{
    const int found = m_api.contains(m_walk.opened, id.get());
    Api::checked(found);
    return found != 0;
}

bool ValueReader::is_known(Object* path, Object* value, const Ref& id)
{
    Object* const before = m_api.dict_get(m_walk.read, id.get());
    if (before == nullptr) return false;
    name_object(path, value);
    fact(path, "is " + std::string(utf8_of(m_api.tuple_get(before, 0))), m_walk.longest);
    return true;
}

void ValueReader::name_object(Object* path, Object* value)
{
    if (m_api.dict_get(m_walk.objects, path) == nullptr) Api::checked(m_api.dict_set(m_walk.objects, path, value));
}

void ValueReader::remember(Object* path, Object* value, const Ref& id)
{
    const Ref read = Api::checked(m_api.tuple_pack(2, path, value));
    Api::checked(m_api.dict_set(m_walk.read, id.get(), read.get()));
}

void ValueReader::sequence(Object* path, Object* value, Object* kind, const Ref& id)
{
    const bool is_list = kind == m_api.list_type;
    std::vector<Object*> items(static_cast<std::size_t>(is_list ? m_api.list_size(value) : m_api.tuple_size(value)));
    for (std::size_t i = 0; i < items.size(); ++i) {
        const auto at = static_cast<std::ptrdiff_t>(i);
        items[i] = is_list ? m_api.list_get(value, at) : m_api.tuple_get(value, at);
    }
    for (Object* const one : items) keep(one); // what runs from here on may take them out
    once(path, value, id, [&] {
        if (is_list && m_walk.watches != 0) {
            m_held.add_list(value, items);
            keep(value);
        }
        fact(path, (is_list ? "list of " : "tuple of ") + std::to_string(items.size()), m_walk.longest);
        for (std::size_t i = 0; i < items.size(); ++i) {
            const Below at(m_path, {"[", std::to_string(i), "]"});
            this->value(items[i]);
        }
    });
    if (is_list) remember(path, value, id);
}

void ValueReader::dictionary(Object* path, Object* value, const Ref& id)
{
    const std::vector<Pair> pairs = pairs_of(value);
    keep(pairs);
    std::vector<std::string> keys(pairs.size());
    std::string order;
    for (std::size_t i = 0; i < pairs.size(); ++i) {
        if (!append_key(keys[i], pairs[i].key)) return handed(path, value);
        order += (i == 0 ? ": " : ", ") + keys[i];
    }
    once(path, value, id, [&] {
        if (m_walk.watches != 0) {
            m_held.add_dict(value, pairs);
            keep(value);
        }
        // Who goes through it sees their order.
        fact(path, "dict of " + std::to_string(pairs.size()) + (pairs.size() > 1 ? order : ""), m_walk.longest);
        for (std::size_t i = 0; i < pairs.size(); ++i) {
            const Below at(m_path, {"[", keys[i], "]"});
            this->value(pairs[i].value);
        }
    });
    remember(path, value, id);
}

void ValueReader::object(Object* path, Object* value, Object* kind, const Ref& id)
{
    const Plan& plan = plan_of(kind);
    const Ref dict = plan.is_common ? own_attributes(value) : Ref();
    if (dict.get() == nullptr) return handed(path, value);
    const std::vector<Pair> own = pairs_of(dict.get());
    keep(own);
    if (!has_utf8(own) || !are_fields_own(plan, own)) return handed(path, value);
    once(path, value, id, [&] {
        fact(path, plan.head, m_walk.longest);
        if (m_walk.watches != 0) {
            m_held.add_object(value, dict.get(), kind);
            m_held.add_dict(dict.get(), own);
            keep(value);
            keep(dict.get());
        }
        attributes(plan, own);
    });
    remember(path, value, id);
}

/// The dictionary that has all of them, and that code sees; nothing where there are two of these.
Ref ValueReader::own_attributes(Object* value) const
{
    Ref found(m_api.attributes(value, nullptr));
    if (found.get() != nullptr && Api::kind_of(found.get()) == m_api.dict_type) {
        const Ref seen(m_api.attribute(value, m_dict_name.get()));
        if (seen.get() == found.get()) return found;
    }
    m_api.clear_error();
    return {};
}

bool ValueReader::are_fields_own(const Plan& plan, const std::vector<Pair>& own) const
{
    return std::ranges::all_of(plan.fields, [&](const std::string& name) {
        return std::ranges::any_of(own, [&](const Pair& one) { return utf8_of(one.key) == name; });
    });
}

/// As Walker._rest does.
void ValueReader::attributes(const Plan& plan, const std::vector<Pair>& own)
{
    std::vector<Named> members;
    for (const Pair& one : own) members.push_back({utf8_of(one.key), one.value});
    if (plan.is_library) return attributes_of_library(plan, members);
    for (const std::string& name : plan.fields) {
        const auto field = std::ranges::find(members, name, &Named::name);
        member(name, field->value);
    }
    std::erase_if(members, [&](const Named& one) {
        return std::ranges::find(plan.fields, one.name) != plan.fields.end() || !is_named(one.name);
    });
    for (const Named& one : of_classes(plan))
        if (std::ranges::find(own, one.name, [this](const Pair& pair) { return utf8_of(pair.key); }) == own.end())
            members.push_back(one);
    std::ranges::sort(members, {}, &Named::name); // as Python orders texts: UTF-8 keeps that order
    for (const Named& one : members) member(one.name, one.value);
}

void ValueReader::attributes_of_library(const Plan& plan, std::vector<Named>& own)
{
    std::ranges::sort(own, {}, &Named::name);
    for (const Named& one : own)
        if (!one.name.starts_with("__") && !is_kept_hash(one)) member(one.name, one.value);
    for (const Named& one : of_classes(plan)) member(one.name, one.value);
}

/// What classes of the object store and code names, where no fact says it yet.
std::vector<ValueReader::Named> ValueReader::of_classes(const Plan& plan) const
{
    std::vector<Named> found;
    for (const auto& [name, value] : plan.of_classes)
        if (m_api.dict_get(m_walk.facts, text_of(m_path + "." + name).get()) == nullptr) found.push_back({name, value});
    return found;
}

const ValueReader::Plan& ValueReader::plan_of(Object* kind)
{
    const auto [at, is_new] = m_plans.try_emplace(kind);
    Plan& plan = at->second;
    if (!is_new) return plan;
    keep(kind);
    Ref said = called(m_walk.object_kind, kind);
    if (said.get() == m_api.none) return plan;
    const auto texts = [this](Object* tuple) {
        std::vector<std::string> found;
        for (std::ptrdiff_t i = 0; i < m_api.tuple_size(tuple); ++i)
            found.emplace_back(utf8_of(m_api.tuple_get(tuple, i)));
        return found;
    };
    plan.head = utf8_of(m_api.tuple_get(said.get(), 0));
    plan.is_library = m_api.tuple_get(said.get(), 1) == m_api.yes;
    plan.fields = texts(m_api.tuple_get(said.get(), 2));
    const std::vector<std::string> names = texts(m_api.tuple_get(said.get(), 3));
    for (std::size_t i = 0; i < names.size(); ++i)
        plan.of_classes.emplace_back(names[i],
                                     m_api.tuple_get(m_api.tuple_get(said.get(), 4), static_cast<std::ptrdiff_t>(i)));
    plan.kept = std::move(said);
    plan.is_common = true;
    return plan;
}

bool ValueReader::is_named(std::string_view name) const
{
    const int found = m_api.contains(m_walk.named, text_of(name).get());
    Api::checked(found);
    return found != 0;
}

/// As _walk._is_kept_hash.
bool ValueReader::is_kept_hash(const Named& one) const
{
    if (Api::kind_of(one.value) != m_api.int_type || !ends_with_hash(one.name)) return false;
    int overflow = 0;
    const long long value = m_api.long_of(one.value, &overflow);
    constexpr long long k_smallest = 1LL << 32;
    return overflow != 0 || value >= k_smallest || value <= -k_smallest;
}

void ValueReader::member(std::string_view name, Object* value)
{
    const Mark before = mark();
    try {
        const Below at(m_path, {".", name});
        this->value(value);
    } catch (const Raised&) {
        undo(name, before);
    }
}

ValueReader::Mark ValueReader::mark() const
{
    return {m_api.dict_size(m_walk.facts),   m_api.dict_size(m_walk.objects), m_api.dict_size(m_walk.read),
            m_api.dict_size(m_walk.tensors), m_api.list_size(m_walk.places),  m_api.list_size(m_walk.watched)};
}

/// A refusal of what no code names: as if it had not been met.
void ValueReader::undo(std::string_view name, const Mark& mark)
{
    if (m_api.is_error(m_walk.refusal) == 0) throw Raised{};
    Object *kind = nullptr, *error = nullptr, *traceback = nullptr;
    m_api.take_error(&kind, &error, &traceback);
    const Ref kept_kind(kind), kept_error(error), kept_traceback(traceback);
    const Ref sizes = Api::checked(m_api.tuple_new(static_cast<std::ptrdiff_t>(mark.size())));
    for (std::size_t i = 0; i < mark.size(); ++i)
        Api::checked(m_api.tuple_set(sizes.get(), static_cast<std::ptrdiff_t>(i),
                                     Api::checked(m_api.int_of_number(mark[i])).leave()));
    if (is_true(called(m_walk.undone, text_of(name).get(), sizes.get()))) return;
    const auto again = [](const Ref& one) { return one.get() == nullptr ? nullptr : one.again().leave(); };
    m_api.set_error(again(kept_kind), again(kept_error), again(kept_traceback));
    throw Raised{};
}

/// As Walker._tensor does.
void ValueReader::tensor(Object* path, Object* value)
{
    std::string text;
    const Ref dict(m_api.attributes(value, nullptr));
    if (dict.get() == nullptr) m_api.clear_error();
    if (dict.get() == nullptr || Api::kind_of(dict.get()) != m_api.dict_type || !is_followed(value, text)) {
        static_cast<void>(called(m_walk.tensor_reader, path, value));
        return;
    }
    name_object(path, value);
    const Ref id = id_of(value);
    if (Object* const first = m_api.dict_get(m_walk.tensors, id.get()); first != nullptr) {
        fact(path, "is " + std::string(utf8_of(first)), m_walk.longest);
        return;
    }
    fact(path, text, m_walk.longest);
    const Ref place = called(m_walk.place, path, value, m_walk.via);
    Api::checked(m_api.list_append(m_walk.places, place.get()));
    Api::checked(m_api.dict_set(m_walk.tensors, id.get(), path));
    if (m_walk.watches != 0) {
        const std::vector<Pair> pairs = pairs_of(dict.get());
        m_held.add_dict(dict.get(), pairs);
        keep(dict.get());
        keep(pairs);
    }
    if (m_api.dict_size(dict.get()) > 0) static_cast<void>(called(m_walk.attributes, path, dict.get()));
}

/// Its memory can be followed, as far as DLPack says all about it; `text`: the fact.
bool ValueReader::is_followed(Object* value, std::string& text) const
{
    DlTensor seen{};
    if (m_walk.read_tensor == nullptr) return false;
    if (m_walk.read_tensor(value, &seen) != 0) {
        m_api.clear_error(); // Python says it better
        return false;
    }
    const std::string_view type = name_of(seen);
    if (type.empty() || seen.device_type != m_walk.device_type || (seen.rank != 0 && seen.strides == nullptr))
        return false;
    if (is_true(called(m_walk.is_negated, value))) return false;
    text = "tensor ";
    text += type;
    text += ' ';
    append_list(text, seen.sizes, seen.rank);
    text += " strides ";
    append_list(text, seen.strides, seen.rank);
    if (is_true(Api::checked(m_api.attribute(value, m_requires_grad.get())))) text += ", requires grad";
    return true;
}

bool ValueReader::is_true(const Ref& object) const
{
    const int found = m_api.is_true(object.get());
    Api::checked(found);
    return found != 0;
}

void ValueReader::fact(Object* path, std::string_view text, std::uint64_t longest)
{
    const Ref value = text_of(text);
    if (is_ascii(text) && text.size() <= longest) {
        Api::checked(m_api.dict_set(m_walk.facts, path, value.get()));
        return;
    }
    static_cast<void>(called(longest == m_walk.longest ? m_walk.fact : m_walk.fact_of_module, path, value.get()));
}

/// As _walk.plain_text says it; false where it is no plain value.
bool ValueReader::append_plain(std::string& text, Object* value) const
{
    if (append_simple(text, value, Api::kind_of(value))) return true;
    const Ref said = called(m_walk.text, value);
    if (said.get() == m_api.none) return false;
    text += utf8_of(said.get());
    return true;
}

/// False for a number of more than 64 bits, too.
bool ValueReader::append_simple(std::string& text, Object* value, Object* kind) const
{
    if (kind == m_api.bool_type) {
        text += value == m_api.yes ? "bool True" : "bool False";
    } else if (kind == m_none_type) {
        text += "NoneType None";
    } else if (kind == m_api.float_type || kind == m_api.str_type) {
        text += kind == m_api.str_type ? "str " : "float ";
        text += utf8_of(Api::checked(m_api.repr(value)).get());
    } else {
        int overflow = 0;
        if (kind != m_api.int_type) return false;
        const long long number = m_api.long_of(value, &overflow);
        if (overflow != 0) return false;
        text += "int ";
        text += std::to_string(number);
    }
    return true;
}

/// As ascii() says it; false where that is left to Python.
bool ValueReader::append_key(std::string& text, Object* key) const
{
    std::string said;
    if (!append_simple(said, key, Api::kind_of(key)) || !is_ascii(said)) return false;
    text += std::string_view(said).substr(said.find(' ') + 1);
    return true;
}

void ValueReader::keep(Object* object) { Api::checked(m_api.list_append(m_walk.kept, object)); }

void ValueReader::keep(const std::vector<Pair>& pairs)
{
    for (const Pair& one : pairs) {
        keep(one.key);
        keep(one.value);
    }
}

Ref ValueReader::id_of(Object* object) const { return Api::checked(m_api.int_of_pointer(object)); }

Ref ValueReader::text_of(std::string_view text) const
{
    return Api::checked(m_api.text_of(text.data(), static_cast<std::ptrdiff_t>(text.size())));
}

std::string_view ValueReader::utf8_of(Object* text) const
{
    std::ptrdiff_t size = 0;
    const char* const found = text != nullptr ? m_api.utf8_of(text, &size) : nullptr;
    if (found == nullptr) throw Raised{};
    return {found, static_cast<std::size_t>(size)};
}

/// All keys are texts that UTF-8 has: Python also knows halves of pairs.
bool ValueReader::has_utf8(const std::vector<Pair>& pairs) const
{
    return std::ranges::all_of(pairs, [this](const Pair& one) {
        if (Api::kind_of(one.key) != m_api.str_type) return false;
        std::ptrdiff_t size = 0;
        if (m_api.utf8_of(one.key, &size) != nullptr) return true;
        m_api.clear_error();
        return false;
    });
}

/// Nothing of Python's runs meanwhile.
std::vector<Pair> ValueReader::pairs_of(Object* dict) const
{
    std::vector<Pair> found;
    found.reserve(static_cast<std::size_t>(std::max<std::ptrdiff_t>(m_api.dict_size(dict), 0)));
    std::ptrdiff_t position = 0;
    for (Pair one{}; m_api.dict_next(dict, &position, &one.key, &one.value) != 0;) found.push_back(one);
    return found;
}

} // namespace warmgraph::python
