#include "module_reader.hpp"

#include <algorithm>
#include <utility>

#include "dl_tensor.hpp"

namespace warmgraph::python {

namespace {

constexpr std::array<std::string_view, 5> k_part_names = {"_parameters", "_buffers", "_modules", "_forward_hooks",
                                                          "_forward_pre_hooks"};
constexpr std::size_t k_children = 3; // of the parts: what has names and facts of its own

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

bool is_ascii(std::string_view text)
{
    return std::ranges::all_of(text, [](char letter) { return static_cast<unsigned char>(letter) < 0x80; });
}

/// As str.strip() of ASCII.
std::string_view stripped(std::string_view text)
{
    constexpr std::string_view white = " \t\n\r\x0b\x0c\x1c\x1d\x1e\x1f";
    const std::size_t first = text.find_first_not_of(white);
    return first == std::string_view::npos ? std::string_view{}
                                           : text.substr(first, text.find_last_not_of(white) - first + 1);
}

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

} // namespace

ModuleReader::ModuleReader(const Api& api, const wg_module_walk& walk, HeldModules& held)
    : m_api(api),
      m_walk(walk),
      m_held(held),
      m_requires_grad(text_of("requires_grad")),
      m_none_text(text_of("NoneType None")),
      m_none_type(api.kind_of(api.none))
{
}

void ModuleReader::read(Object* path, Object* object)
{
    m_path = utf8_of(path);
    Api::checked(m_api.list_append(m_walk.kept, object));
    module(path, object);
}

void ModuleReader::module(Object* path, Object* object)
{
    Object* const type = m_api.kind_of(object);
    Kind& kind = kind_of(type);
    Attributes own;
    if (!kind.is_common || !attributes(kind, object, own)) {
        static_cast<void>(called(m_walk.module, path, object));
        return;
    }
    keep(object, type, kind, own);
    Ref others;
    const std::string text = described(kind, own, others);
    fact(path, is_ascii(text) ? stripped(text) : text, m_walk.longest_of_module);
    const std::size_t length = m_path.size();
    for (std::size_t i = 0; i < k_children; ++i)
        for (const Pair& one : own.parts[i]) {
            child(utf8_of(one.key), one.value);
            m_path.resize(length);
        }
    if (others.get() != nullptr) static_cast<void>(called(m_walk.members, path, others.get()));
}

void ModuleReader::child(std::string_view name, Object* value)
{
    m_path += '.';
    m_path += name;
    const Ref path = text_of(m_path);
    Object* const kind = m_api.kind_of(value);
    if (value == m_api.none)
        Api::checked(m_api.dict_set(m_walk.facts, path.get(), m_none_text.get()));
    else if (is_tensor(kind))
        tensor(path.get(), value);
    else if (m_walk.reads_children != 0 && is_module(value, kind))
        child_module(path.get(), value);
    else
        static_cast<void>(called(m_walk.value, path.get(), value));
}

/// As Walker.value does.
void ModuleReader::child_module(Object* path, Object* value)
{
    const Ref id = Api::checked(m_api.int_of_pointer(value));
    const int is_open = m_api.contains(m_walk.opened, id.get());
    Api::checked(is_open);
    if (is_open != 0 || !kind_of(m_api.kind_of(value)).is_common ||
        m_api.dict_size(m_walk.facts) > static_cast<std::ptrdiff_t>(m_walk.most_facts) ||
        m_api.list_size(m_walk.opened) > static_cast<std::ptrdiff_t>(m_walk.deepest)) {
        static_cast<void>(called(m_walk.value, path, value));
        return;
    }
    if (m_api.dict_get(m_walk.objects, path) == nullptr) Api::checked(m_api.dict_set(m_walk.objects, path, value));
    if (Object* const before = m_api.dict_get(m_walk.read, id.get()); before != nullptr) {
        fact(path, "is " + std::string(utf8_of(m_api.tuple_get(before, 0))), m_walk.longest);
        return;
    }
    {
        const Opened open(m_api, m_walk.opened, id.get());
        module(path, value);
    }
    const Ref read = Api::checked(m_api.tuple_pack(2, path, value));
    Api::checked(m_api.dict_set(m_walk.read, id.get(), read.get()));
}

/// As Walker._tensor does.
void ModuleReader::tensor(Object* path, Object* value)
{
    std::string text;
    const Ref dict(m_api.attributes(value, nullptr));
    if (dict.get() == nullptr) m_api.clear_error();
    if (dict.get() == nullptr || m_api.kind_of(dict.get()) != m_api.dict_type || !is_followed(value, text)) {
        static_cast<void>(called(m_walk.tensor_reader, path, value));
        return;
    }
    if (m_api.dict_get(m_walk.objects, path) == nullptr) Api::checked(m_api.dict_set(m_walk.objects, path, value));
    const Ref id = Api::checked(m_api.int_of_pointer(value));
    if (Object* const first = m_api.dict_get(m_walk.tensors, id.get()); first != nullptr) {
        fact(path, "is " + std::string(utf8_of(first)), m_walk.longest);
        return;
    }
    fact(path, text, m_walk.longest);
    const Ref place = called(m_walk.place, path, value, m_walk.via);
    Api::checked(m_api.list_append(m_walk.places, place.get()));
    Api::checked(m_api.dict_set(m_walk.tensors, id.get(), path));
    if (m_walk.watches_tensors != 0) {
        const std::vector<Pair> pairs = pairs_of(dict.get());
        m_held.add_dict(dict.get(), pairs);
        Api::checked(m_api.list_append(m_walk.kept, dict.get()));
        keep(pairs);
    }
    if (m_api.dict_size(dict.get()) > 0) static_cast<void>(called(m_walk.attributes, path, dict.get()));
}

/// Its memory can be followed, as far as DLPack says all about it; `text`: the fact.
bool ModuleReader::is_followed(Object* value, std::string& text) const
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

bool ModuleReader::is_true(const Ref& object) const
{
    const int found = m_api.is_true(object.get());
    Api::checked(found);
    return found != 0;
}

void ModuleReader::fact(Object* path, std::string_view text, std::uint64_t longest)
{
    const Ref value = text_of(text);
    if (is_ascii(text) && text.size() <= longest) {
        Api::checked(m_api.dict_set(m_walk.facts, path, value.get()));
        return;
    }
    static_cast<void>(called(longest == m_walk.longest ? m_walk.fact : m_walk.fact_of_module, path, value.get()));
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
    if (found.dict.get() == nullptr || m_api.kind_of(found.dict.get()) != m_api.dict_type) return false;
    found.pairs = pairs_of(found.dict.get());
    keep(found.pairs); // what runs from here on may take them out
    if (!has_names_of(kind, found.pairs) && !learn(kind, found)) return false;
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
    Object* const kind = m_api.kind_of(value);
    return kind == m_api.dict_type || (kind == m_walk.ordered_dict && m_api.dict_size(value) <= most_of_ordered);
}

void ModuleReader::keep(Object* object, Object* type, const Kind& kind, const Attributes& found)
{
    m_held.add_object(object, found.dict.get(), type);
    m_held.add_dict(found.dict.get(), found.pairs);
    Api::checked(m_api.list_append(m_walk.kept, found.dict.get()));
    for (std::size_t i = 0; i < found.parts.size(); ++i) {
        m_held.add_dict(found.pairs[kind.parts[i]].value, found.parts[i]);
        keep(found.parts[i]);
    }
}

void ModuleReader::keep(const std::vector<Pair>& pairs)
{
    for (const Pair& one : pairs) {
        Api::checked(m_api.list_append(m_walk.kept, one.key));
        Api::checked(m_api.list_append(m_walk.kept, one.value));
    }
}

/// Its class, its plain values, and the names of what is in it: who goes through these sees the order. `others`: a
/// dictionary of what is not plain, where there is any.
std::string ModuleReader::described(const Kind& kind, const Attributes& found, Ref& others) const
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
        if (others.get() == nullptr) others = Api::checked(m_api.dict_new());
        Api::checked(m_api.dict_set(others.get(), text_of(one.name).get(), value));
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

/// As _walk.plain_text says it; false where it is no plain value.
bool ModuleReader::append_plain(std::string& text, Object* value) const
{
    Object* const kind = m_api.kind_of(value);
    if (kind == m_api.bool_type) {
        text += value == m_api.yes ? "bool True" : "bool False";
    } else if (kind == m_none_type) {
        text += "NoneType None";
    } else if (kind == m_api.float_type || kind == m_api.str_type) {
        text += kind == m_api.str_type ? "str " : "float ";
        text += utf8_of(Api::checked(m_api.repr(value)).get());
    } else {
        int overflow = 0;
        if (kind == m_api.int_type)
            if (const long long number = m_api.long_of(value, &overflow); overflow == 0) {
                text += "int ";
                text += std::to_string(number);
                return true;
            }
        const Ref said = called(m_walk.text, value);
        if (said.get() == m_api.none) return false;
        text += utf8_of(said.get());
    }
    return true;
}

Ref ModuleReader::text_of(std::string_view text) const
{
    return Api::checked(m_api.text_of(text.data(), static_cast<std::ptrdiff_t>(text.size())));
}

std::string_view ModuleReader::utf8_of(Object* text) const
{
    std::ptrdiff_t size = 0;
    const char* const found = text != nullptr ? m_api.utf8_of(text, &size) : nullptr;
    if (found == nullptr) throw Raised{};
    return {found, static_cast<std::size_t>(size)};
}

/// All keys are texts that UTF-8 has: Python also knows halves of pairs.
bool ModuleReader::has_utf8(const std::vector<Pair>& pairs) const
{
    return std::ranges::all_of(pairs, [this](const Pair& one) {
        if (m_api.kind_of(one.key) != m_api.str_type) return false;
        std::ptrdiff_t size = 0;
        if (m_api.utf8_of(one.key, &size) != nullptr) return true;
        m_api.clear_error();
        return false;
    });
}

/// Nothing of Python's runs meanwhile.
std::vector<Pair> ModuleReader::pairs_of(Object* dict) const
{
    std::vector<Pair> found;
    found.reserve(static_cast<std::size_t>(std::max<std::ptrdiff_t>(m_api.dict_size(dict), 0)));
    std::ptrdiff_t position = 0;
    for (Pair one{}; m_api.dict_next(dict, &position, &one.key, &one.value) != 0;) found.push_back(one);
    return found;
}

} // namespace warmgraph::python
