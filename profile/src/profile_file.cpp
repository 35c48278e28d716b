#include "warmgraph/profile/profile_file.hpp"

#include <algorithm>
#include <initializer_list>
#include <string_view>

#include <nlohmann/json.hpp>

#include "warmgraph/cachefmt/guard_data.hpp"
#include "warmgraph/cachefmt/key.hpp"

namespace warmgraph::profile {
namespace {

using WrittenJson = nlohmann::ordered_json;
using ReadJson = nlohmann::json;

constexpr std::size_t k_longest_text = 256;
constexpr std::size_t k_most_parts = k_most_last + k_most_busy;

std::string line_of(const WrittenJson& json)
{
    return json.dump(-1, ' ', false, WrittenJson::error_handler_t::replace);
}

WrittenJson shape_json(const Shape& shape, std::uint64_t calls)
{
    WrittenJson json{{"sizes", shape.sizes}};
    if (!shape.values.empty()) json["values"] = shape.values;
    if (!shape.ran.empty()) json["ran"] = shape.ran;
    json["calls"] = calls;
    return json;
}

WrittenJson learnt_json(const BucketRequest& wish, const LearntBuckets& learnt)
{
    WrittenJson dimensions = WrittenJson::array();
    for (const Dimension& dimension : wish.dimensions) dimensions.push_back({dimension.argument, dimension.index});
    return {{"dimensions", dimensions},
            {"most", wish.most},
            {"multiple_of", wish.multiple_of},
            {"buckets", learnt.buckets},
            {"decided", learnt.decided}};
}

/// Returns a JSON array with one element on each line, indented.
std::string list_of(const std::vector<std::string>& elements, const std::string& indent)
{
    std::string text = "[";
    for (std::size_t i = 0; i < elements.size(); ++i)
        text += fmt::format("{}\n{}  {}", i == 0 ? "" : ",", indent, elements[i]);
    return text + (elements.empty() ? "]" : "\n" + indent + "]");
}

std::string part_text(const std::string& writer, const Part& part, std::size_t most_shapes)
{
    std::vector<std::pair<std::uint64_t, const Shape*>> order;
    for (const auto& [shape, calls] : part.calls) order.emplace_back(calls, &shape);
    std::ranges::stable_sort(order, std::greater<>{}, [](const auto& item) { return item.first; });
    if (order.size() > most_shapes) order.resize(most_shapes);
    std::vector<std::string> lines;
    for (const auto& [calls, shape] : order) lines.push_back(line_of(shape_json(*shape, calls)));
    std::string head = line_of({{"writer", writer}, {"host", part.host}, {"last", part.last}, {"total", part.total}});
    head.pop_back();
    return head + ",\"calls\":" + list_of(lines, "    ") + "}";
}

std::string text_of(const Profile& profile, std::size_t most_shapes)
{
    std::vector<std::string> learnt, parts;
    for (const auto& [wish, choice] : profile.learnt) learnt.push_back(line_of(learnt_json(wish, choice)));
    for (const auto& [writer, part] : profile.parts) parts.push_back(part_text(writer, part, most_shapes));
    return fmt::format("{{\n  \"format\": {},\n  \"model_info\": {},\n  \"function\": {},\n  \"arguments\": {},\n"
                       "  \"learnt\": {},\n  \"parts\": {},\n  \"key\": \"{}\"\n}}\n",
                       k_profile_format, line_of(profile.model_info), line_of(profile.function),
                       line_of(profile.arguments), list_of(learnt, "  "), list_of(parts, "  "), to_hex(profile.key));
}

/// Reads the members of an object one by one. Keeps the first error and its position.
class ProfileReader {
public:
    ProfileReader(const ReadJson& json, std::string where) : m_json(json), m_where(std::move(where))
    {
        if (!json.is_object()) m_wrong = m_where + " is not an object";
    }
    [[nodiscard]] const ReadJson* find(const char* name, bool (ReadJson::*is)() const noexcept)
    {
        ++m_asked;
        const auto member = m_wrong.empty() ? m_json.find(name) : m_json.end();
        if (m_wrong.empty() && (member == m_json.end() || !((*member).*is)()))
            wrong(name, "is missing or of another kind");
        return m_wrong.empty() ? &*member : nullptr;
    }
    [[nodiscard]] bool has(const char* name) const { return m_json.is_object() && m_json.contains(name); }
    std::string text(const char* name)
    {
        const ReadJson* const member = find(name, &ReadJson::is_string);
        if (member == nullptr) return {};
        auto text = member->get<std::string>();
        if (text.size() > k_longest_text) wrong(name, "is too long");
        return text;
    }
    std::uint64_t number(const char* name, std::uint64_t least, std::uint64_t most)
    {
        const ReadJson* const member = find(name, &ReadJson::is_number_unsigned);
        if (member == nullptr) return least;
        const auto value = member->get<std::uint64_t>();
        if (value < least || value > most) wrong(name, fmt::format("is {}, expected {} to {}", value, least, most));
        return value;
    }
    const ReadJson* list(const char* name, std::size_t most) { return limited(name, &ReadJson::is_array, most); }
    const ReadJson* object(const char* name, std::size_t most) { return limited(name, &ReadJson::is_object, most); }
    void wrong(const char* name, std::string_view what)
    {
        if (m_wrong.empty()) m_wrong = fmt::format("{}: '{}' {}", m_where, name, what);
    }
    /// Returns an error text, or an empty text. Call this after all possible members were read.
    [[nodiscard]] std::string first_problem() const
    {
        if (m_wrong.empty() && m_json.size() > m_asked) return m_where + " has an unknown member";
        return m_wrong;
    }

private:
    const ReadJson* limited(const char* name, bool (ReadJson::*is)() const noexcept, std::size_t most)
    {
        const ReadJson* const member = find(name, is);
        if (member == nullptr || member->size() <= most) return member;
        wrong(name, fmt::format("has {} elements, expected at most {}", member->size(), most));
        return nullptr;
    }
    const ReadJson& m_json;
    std::string m_where, m_wrong;
    std::size_t m_asked = 0;
};

bool read_extents(const ReadJson& json, std::vector<std::int64_t>& sizes, std::size_t most)
{
    if (!json.is_array() || json.size() > most) return false;
    for (const ReadJson& size : json) {
        if (!size.is_number_unsigned() || size.get<std::uint64_t>() > static_cast<std::uint64_t>(k_largest_size))
            return false;
        sizes.push_back(size.get<std::int64_t>());
    }
    return true;
}

void read_sizes(ProfileReader& reader, const char* name, const Profile& profile, Sizes& sizes)
{
    const ReadJson* const object = reader.object(name, k_most_arguments);
    if (object == nullptr) return;
    for (const auto& [argument, extents] : object->items()) {
        if (!profile.arguments.contains(argument)) return reader.wrong(name, "names an argument that is not declared");
        if (!read_extents(extents, sizes[argument], cachefmt::k_max_rank))
            return reader.wrong(name, "has invalid sizes");
    }
}

std::string read_call(const ReadJson& json, const std::string& where, const Profile& profile, Calls& calls)
{
    ProfileReader reader(json, where);
    Shape shape;
    read_sizes(reader, "sizes", profile, shape.sizes);
    if (reader.has("ran")) read_sizes(reader, "ran", profile, shape.ran);
    if (reader.has("values"))
        if (const ReadJson* const values = reader.object("values", k_most_arguments); values != nullptr)
            for (const auto& [name, value] : values->items()) {
                if (!value.is_string() || value.get_ref<const std::string&>().size() > k_longest_text ||
                    !cachefmt::check_name("value", name)) {
                    reader.wrong("values", "has an invalid value");
                    break;
                }
                shape.values[name] = value.get<std::string>();
            }
    const std::uint64_t number = reader.number("calls", 1, k_most_calls);
    std::string wrong = reader.first_problem();
    if (wrong.empty() && !calls.emplace(std::move(shape), number).second) wrong = where + " is listed twice";
    return wrong;
}

std::string read_part(const ReadJson& json, std::size_t index, Profile& profile)
{
    const std::string where = fmt::format("part {}", index + 1);
    ProfileReader reader(json, where);
    const std::string writer = reader.text("writer");
    Part part;
    part.host = reader.text("host");
    part.last = reader.text("last");
    part.total = reader.number("total", 0, k_most_calls);
    const ReadJson* const calls = reader.list("calls", k_most_shapes);
    if (std::string wrong = reader.first_problem(); !wrong.empty()) return wrong;
    if (!cachefmt::check_name("writer", writer)) return where + ": 'writer' is not a valid name";
    for (std::size_t i = 0; i < calls->size(); ++i) {
        std::string wrong = read_call((*calls)[i], fmt::format("{}, call {}", where, i + 1), profile, part.calls);
        if (!wrong.empty()) return wrong;
    }
    if (!profile.parts.emplace(writer, std::move(part)).second) return where + ": 'writer' is listed twice";
    return {};
}

std::string read_learnt(const ReadJson& json, std::size_t index, Profile& profile)
{
    ProfileReader reader(json, fmt::format("learnt {}", index + 1));
    BucketRequest wish;
    LearntBuckets learnt;
    if (const ReadJson* const list = reader.list("dimensions", k_most_arguments); list != nullptr)
        for (const ReadJson& pair : *list) {
            const bool is_pair = pair.is_array() && pair.size() == 2 && pair[0].is_string() &&
                                 pair[1].is_number_unsigned() && pair[1].get<std::uint64_t>() < cachefmt::k_max_rank &&
                                 profile.arguments.contains(pair[0].get_ref<const std::string&>());
            if (!is_pair) {
                reader.wrong("dimensions", "has an item that is not a dimension of a declared argument");
                break;
            }
            wish.dimensions.push_back({pair[0].get<std::string>(), pair[1].get<std::size_t>()});
        }
    wish.most = static_cast<std::uint32_t>(reader.number("most", 1, k_most_buckets));
    wish.multiple_of = static_cast<std::int64_t>(reader.number("multiple_of", 1, k_largest_size));
    if (const ReadJson* const list = reader.list("buckets", k_most_buckets); list != nullptr) {
        const bool is_read = read_extents(*list, learnt.buckets, k_most_buckets);
        const auto twice = std::ranges::adjacent_find(learnt.buckets, std::greater_equal<>{});
        if (!is_read || twice != learnt.buckets.end()) reader.wrong("buckets", "are not sizes in ascending order");
    }
    learnt.decided = reader.text("decided");
    std::string wrong = reader.first_problem();
    if (wrong.empty() && !profile.learnt.emplace(std::move(wish), std::move(learnt)).second)
        wrong = fmt::format("learnt {} is listed twice", index + 1);
    return wrong;
}

void read_arguments(ProfileReader& reader, Profile& profile)
{
    const ReadJson* const object = reader.object("arguments", k_most_arguments);
    if (object == nullptr) return;
    for (const auto& [argument, type] : object->items()) {
        if (!cachefmt::check_name("argument", argument) || !type.is_string() ||
            !parse_dtype(type.get_ref<const std::string&>()))
            return reader.wrong("arguments", "has an item that is not an argument with its type");
        profile.arguments[argument] = type.get<std::string>();
    }
}

/// Reads the profile from its JSON. Returns an error text, or an empty text on success.
std::string read_profile(const ReadJson& json, Profile& profile)
{
    ProfileReader reader(json, "the profile");
    reader.number("format", k_profile_format, k_profile_format);
    profile.model_info = reader.text("model_info");
    profile.function = reader.text("function");
    read_arguments(reader, profile);
    const ReadJson* const learnt = reader.list("learnt", k_most_learnt);
    const ReadJson* const parts = reader.list("parts", k_most_parts);
    const auto key = digest_from_our_hex(reader.text("key"));
    if (std::string wrong = reader.first_problem(); !wrong.empty()) return wrong;
    if (!cachefmt::is_model_info(profile.model_info) || !cachefmt::check_name("function", profile.function))
        return "'model_info' or 'function' is not a valid name";
    if (!key || *key != key_of(profile)) return "'key' does not match its model, function and arguments";
    profile.key = *key;
    std::string wrong;
    for (std::size_t i = 0; i < learnt->size() && wrong.empty(); ++i) wrong = read_learnt((*learnt)[i], i, profile);
    for (std::size_t i = 0; i < parts->size() && wrong.empty(); ++i) wrong = read_part((*parts)[i], i, profile);
    return wrong;
}

} // namespace

std::string encode(const Profile& profile)
{
    std::string text = text_of(profile, k_most_shapes);
    for (std::size_t shapes = k_most_shapes / 2; text.size() > k_profile_cap && shapes > 0; shapes /= 2)
        text = text_of(profile, shapes);
    return text;
}

Result<Profile> decode(ByteView bytes)
{
    if (bytes.empty()) return fail(ErrorCode::corrupt, "the profile is empty");
    if (bytes.size() > k_profile_cap)
        return fail(ErrorCode::corrupt, "the profile has {} bytes, expected at most {}", bytes.size(), k_profile_cap);
    const ReadJson json = ReadJson::parse(as_text(bytes), nullptr, false);
    if (!json.is_object()) return fail(ErrorCode::corrupt, "the profile is not a JSON object");
    const auto format = json.find("format");
    if (format != json.end() && format->is_number_unsigned() && format->get<std::uint64_t>() > k_profile_format)
        return fail(ErrorCode::stale, "the profile has format {}, expected {}: a newer warmgraph wrote it",
                    format->get<std::uint64_t>(), k_profile_format);
    Profile profile;
    if (std::string wrong = read_profile(json, profile); !wrong.empty()) return fail(ErrorCode::corrupt, "{}", wrong);
    return profile;
}

} // namespace warmgraph::profile
