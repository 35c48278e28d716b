#include "warmgraph/precompile/compiled_program.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <iterator>
#include <map>
#include <set>

#include <nlohmann/json.hpp>

namespace warmgraph::precompile {
namespace {

using Json = nlohmann::json; // members in the order of their names: one spelling

constexpr std::string_view k_magic = "WGCOMPIL";
constexpr std::size_t k_longest_text = 64UL << 10;
constexpr std::size_t k_members = 12;
constexpr std::size_t k_most_recorded_headers = 20'000, k_most_ready = 4096;

/// Where the fields stand. All numbers are little-endian.
namespace field {
constexpr std::size_t magic = 0, format = 8, facts_size = 12, image_size = 16, signature_kind = 24, key_id = 28,
                      signature = 88, seal = 152, facts = 184;
static_assert(signature - key_id == k_key_id_max && seal - signature == sizeof(SignatureBytes));
} // namespace field

/// What a signature stands for: sizes, facts, and with them the image's digest.
Digest digest_of_facts(ByteView file, ByteView facts)
{
    Sha256 hash;
    hash.update_field("warmgraph compiled program 1");
    return hash.update_field(file.first(field::signature_kind)).update_field(facts).finish();
}

/// Of all before the facts, the signature too: nothing in the file can change unseen.
Digest seal_of(ByteView file, const Digest& facts)
{
    Sha256 hash;
    return hash.update(facts.bytes).update(file.first(field::seal)).finish();
}

Bytes signed_message(SignatureKind kind, std::string_view key_id, const Digest& facts)
{
    Bytes message;
    append(message, as_bytes("warmgraph compiled signature 1"));
    append(message, static_cast<std::uint32_t>(kind));
    append(message, std::uint64_t{key_id.size()});
    append(message, as_bytes(key_id));
    append(message, facts.bytes);
    return message;
}

template <class T>
void put(Bytes& bytes, std::size_t at, const T& value)
{
    std::memcpy(bytes.data() + at, &value, sizeof value);
}

Json json_of(const CompiledProgram& program)
{
    const Ingredients& made_of = program.ingredients;
    Json headers = Json::array();
    for (const auto& [name, digest] : made_of.headers) headers.push_back({name, to_hex(digest)});
    return {{"program", made_of.program},
            {"backend", made_of.backend},
            {"source", to_hex(made_of.source)},
            {"options", made_of.options},
            {"headers", headers},
            {"target", made_of.target},
            {"compiler", made_of.compiler},
            {"ready", program.compiled.ready},
            {"origin", to_hex(program.compiled.origin)},
            {"image", to_hex(sha256(program.compiled.image))},
            {"compile_ms", program.compile_ms},
            {"written", program.written}};
}

/// Reads members one after the other; the first that is wrong stays.
class Members {
public:
    explicit Members(const Json& json) : m_json(json)
    {
        if (!json.is_object()) m_wrong = "it is no object";
    }
    void text(const char* name, std::string& text)
    {
        if (const Json* const member = find(name)) take(name, *member, text);
    }
    void digest(const char* name, Digest& digest)
    {
        if (const Json* const member = find(name)) take(name, *member, digest);
    }
    void texts(const char* name, std::vector<std::string>& list, std::size_t most)
    {
        const Json* const member = find(name);
        if (member == nullptr) return;
        if (!member->is_array() || member->size() > most) return wrong(name);
        for (const Json& item : *member) take(name, item, list.emplace_back());
    }
    void headers(const char* name, std::vector<Header>& list)
    {
        const Json* const member = find(name);
        if (member == nullptr) return;
        if (!member->is_array() || member->size() > k_most_recorded_headers) return wrong(name);
        for (const Json& item : *member) {
            if (!item.is_array() || item.size() != 2) return wrong(name);
            Header& header = list.emplace_back();
            take(name, item[0], header.name);
            take(name, item[1], header.digest);
        }
        if (!std::ranges::is_sorted(list)) wrong(name);
    }
    void milliseconds(const char* name, double& number)
    {
        const Json* const member = find(name);
        if (member == nullptr) return;
        if (!member->is_number()) return wrong(name);
        number = member->get<double>();
        if (!std::isfinite(number) || number < 0) wrong(name);
    }
    [[nodiscard]] const std::string& what_is_wrong() const noexcept { return m_wrong; }

private:
    [[nodiscard]] const Json* find(const char* name)
    {
        const auto member = m_wrong.empty() ? m_json.find(name) : m_json.end();
        if (m_wrong.empty() && member == m_json.end()) wrong(name);
        return m_wrong.empty() ? &*member : nullptr;
    }
    void take(const char* name, const Json& item, std::string& text)
    {
        if (!item.is_string() || item.get_ref<const std::string&>().size() > k_longest_text) return wrong(name);
        text = item.get<std::string>();
    }
    void take(const char* name, const Json& item, Digest& digest)
    {
        std::string hex;
        take(name, item, hex);
        const auto read = digest_from_our_hex(hex);
        if (!read) return wrong(name);
        digest = *read;
    }
    void wrong(const char* name)
    {
        if (m_wrong.empty()) m_wrong = fmt::format("'{}' is missing or of another kind", name);
    }

    const Json& m_json;
    std::string m_wrong;
};

struct Facts {
    CompiledProgram program; ///< without its image
    Digest image;
};

Result<Facts> parse_facts(ByteView text)
{
    const Json json = Json::parse(as_text(text), nullptr, false);
    if (json.is_discarded()) return fail(ErrorCode::corrupt, "its facts are no JSON");
    Facts facts;
    Ingredients& made_of = facts.program.ingredients;
    Members members(json);
    members.text("program", made_of.program);
    members.text("backend", made_of.backend);
    members.digest("source", made_of.source);
    members.texts("options", made_of.options, k_most_option_words);
    members.headers("headers", made_of.headers);
    members.text("target", made_of.target);
    members.text("compiler", made_of.compiler);
    members.texts("ready", facts.program.compiled.ready, k_most_ready);
    members.digest("origin", facts.program.compiled.origin);
    members.digest("image", facts.image);
    members.milliseconds("compile_ms", facts.program.compile_ms);
    members.text("written", facts.program.written);
    if (!members.what_is_wrong().empty()) return fail(ErrorCode::corrupt, "its facts: {}", members.what_is_wrong());
    if (json.size() != k_members)
        return fail(ErrorCode::corrupt, "its facts have {} members, expected {}", json.size(), k_members);
    return facts;
}

/// The facts' bytes, where the file's first part is as it was written.
Result<ByteView> checked_facts(ByteView bytes)
{
    if (bytes.size() < field::facts || as_text(bytes.first(k_magic.size())) != k_magic)
        return fail(ErrorCode::corrupt, "{} bytes are no compiled program", bytes.size());
    const auto format = load<std::uint32_t>(bytes, field::format);
    if (format != k_compiled_format)
        return fail(ErrorCode::stale, "the compiled program has format {}, expected {}", format, k_compiled_format);
    const auto size = load<std::uint32_t>(bytes, field::facts_size);
    if (size > k_facts_cap || size > bytes.size() - field::facts)
        return fail(ErrorCode::corrupt, "its facts are cut: {} bytes, {} are there", size, bytes.size() - field::facts);
    const ByteView facts = bytes.subspan(field::facts, size);
    if (load<Digest>(bytes, field::seal) != seal_of(bytes, digest_of_facts(bytes, facts)))
        return fail(ErrorCode::corrupt, "its digest does not match: the file is damaged");
    return facts;
}

Result<void> check_trust(ByteView bytes, ByteView facts, const cachefmt::Trust& trust)
{
    if (!trust.require) return {};
    const auto kind = static_cast<SignatureKind>(load<std::uint32_t>(bytes, field::signature_kind));
    const std::string_view id_field = as_text(bytes.subspan(field::key_id, k_key_id_max));
    const std::string id(id_field.substr(0, id_field.find('\0')));
    if (kind == SignatureKind::none) return fail(ErrorCode::untrusted, "it is not signed, and signatures are required");
    const SigningKey* const key = trust.find(id);
    if (key == nullptr || key->kind() != kind || !is_key_id(id))
        return fail(ErrorCode::untrusted, "it is signed with a key that is not accepted");
    if (!key->verifies(signed_message(kind, id, digest_of_facts(bytes, facts)),
                       load<SignatureBytes>(bytes, field::signature)))
        return fail(ErrorCode::untrusted, "its signature by '{}' does not verify", id);
    return {};
}

Result<void> sign(Bytes& bytes, ByteView facts, const SigningKey& key)
{
    put(bytes, field::signature_kind, static_cast<std::uint32_t>(key.kind()));
    std::memcpy(bytes.data() + field::key_id, key.id().data(), key.id().size());
    const auto signature = key.sign(signed_message(key.kind(), key.id(), digest_of_facts(bytes, facts)));
    if (!signature) return std::unexpected(signature.error());
    put(bytes, field::signature, *signature);
    return {};
}

// --- what differs

constexpr std::string_view k_absent = "(none)";

std::string text_of(const std::vector<std::string>& words)
{
    return words.empty() ? std::string(k_absent) : fmt::format("{}", fmt::join(words, " "));
}

/// The files that a name stands for.
using ByName = std::map<std::string, std::vector<Digest>>;

ByName by_name(const std::vector<Header>& headers)
{
    ByName result;
    for (const auto& [name, digest] : headers) result[name].push_back(digest);
    return result;
}

std::string text_of(const ByName& files, const std::string& name)
{
    std::vector<std::string> digests;
    if (const auto found = files.find(name); found != files.end())
        std::ranges::transform(found->second, std::back_inserter(digests), short_hex);
    return text_of(digests);
}

void add_headers(const Ingredients& then, const Ingredients& now, std::vector<store::MissedFact>& found)
{
    const ByName before = by_name(then.headers), after = by_name(now.headers);
    std::set<std::string> names;
    for (const ByName* const each : {&before, &after})
        for (const auto& [name, digests] : *each) names.insert(name);
    for (const std::string& name : names) {
        const auto was = before.find(name), is = after.find(name);
        if (was != before.end() && is != after.end() && was->second == is->second) continue;
        found.push_back({"header " + name, text_of(before, name), text_of(after, name),
                         "its contents changed: compile the program again"});
    }
}

} // namespace

Digest key_of(const Ingredients& ingredients)
{
    Sha256 hash;
    hash.update_field("warmgraph program key 1").update_field(ingredients.backend);
    hash.update_field(ingredients.source.bytes);
    hash.update_field(std::to_string(ingredients.options.size()));
    for (const std::string& word : ingredients.options) hash.update_field(word);
    hash.update_field(std::to_string(ingredients.headers.size()));
    for (const auto& [name, digest] : ingredients.headers) hash.update_field(name).update_field(digest.bytes);
    return hash.update_field(ingredients.target).update_field(ingredients.compiler).finish();
}

std::vector<store::MissedFact> differences(const Ingredients& then, const Ingredients& now)
{
    std::vector<store::MissedFact> found;
    const auto compare = [&](const char* what, const std::string& was, const std::string& is, const char* cure) {
        if (was != is) found.push_back({what, was, is, cure});
    };
    compare("backend", then.backend, now.backend, "compile it for this backend");
    compare("source", short_hex(then.source), short_hex(now.source), "its text changed: compile the program again");
    if (then.options != now.options)
        found.push_back({"options", text_of(then.options), text_of(now.options),
                         "give the options that it was compiled with, or compile it with these"});
    add_headers(then, now, found);
    compare("target", then.target, now.target, "compile it for this device (warmgraph precompile --arch)");
    compare("compiler", then.compiler, now.compiler, "compile it again with the compiler that is here");
    return found;
}

Result<Bytes> encode(const CompiledProgram& program, const SigningKey* sign_with)
{
    const std::string facts = json_of(program).dump(-1, ' ', false, Json::error_handler_t::replace);
    if (facts.size() > k_facts_cap || field::facts + facts.size() + program.compiled.image.size() > k_compiled_cap)
        return fail(ErrorCode::unsupported, "the compiled program '{}' takes {} bytes, at most {} are stored",
                    program.ingredients.program, facts.size() + program.compiled.image.size(), k_compiled_cap);
    // What would be read otherwise than it is must not be written: its key would be another.
    const auto again = parse_facts(as_bytes(facts));
    if (!again || again->program.ingredients != program.ingredients ||
        again->program.compiled.ready != program.compiled.ready)
        return fail(ErrorCode::invalid_argument,
                    "the program '{}' has options or names that cannot be stored: they are no UTF-8, or too long",
                    program.ingredients.program);
    Bytes bytes(field::facts);
    std::memcpy(bytes.data(), k_magic.data(), k_magic.size());
    put(bytes, field::format, k_compiled_format);
    put(bytes, field::facts_size, static_cast<std::uint32_t>(facts.size()));
    put(bytes, field::image_size, std::uint64_t{program.compiled.image.size()});
    if (sign_with != nullptr)
        if (auto done = sign(bytes, as_bytes(facts), *sign_with); !done) return std::unexpected(done.error());
    put(bytes, field::seal, seal_of(bytes, digest_of_facts(bytes, as_bytes(facts))));
    append(bytes, as_bytes(facts));
    append(bytes, ByteView(program.compiled.image));
    return bytes;
}

Result<CompiledProgram> decode_facts(ByteView first, const cachefmt::Trust& trust)
{
    const auto text = checked_facts(first);
    if (!text) return std::unexpected(text.error());
    if (auto trusted = check_trust(first, *text, trust); !trusted) return std::unexpected(trusted.error());
    auto facts = parse_facts(*text);
    if (!facts) return std::unexpected(facts.error());
    return std::move(facts->program);
}

Result<Ingredients> decode_ingredients(ByteView first)
{
    auto facts = decode_facts(first);
    if (!facts) return std::unexpected(facts.error());
    return std::move(facts->ingredients);
}

Result<std::uint64_t> facts_extent(ByteView bytes)
{
    const auto facts = checked_facts(bytes);
    if (!facts) return std::unexpected(facts.error());
    return field::facts + facts->size();
}

Result<CompiledProgram> decode(ByteView bytes, const cachefmt::Trust& trust)
{
    const auto text = checked_facts(bytes);
    if (!text) return std::unexpected(text.error());
    if (auto trusted = check_trust(bytes, *text, trust); !trusted) return std::unexpected(trusted.error());
    auto facts = parse_facts(*text);
    if (!facts) return std::unexpected(facts.error());
    const ByteView image = bytes.subspan(field::facts + text->size());
    const auto size = load<std::uint64_t>(bytes, field::image_size);
    if (image.size() != size)
        return fail(ErrorCode::corrupt, "its image has {} bytes, expected {}", image.size(), size);
    if (image.empty() || sha256(image) != facts->image)
        return fail(ErrorCode::corrupt, "its image's digest does not match: the file is damaged");
    facts->program.compiled.image.assign(image.begin(), image.end());
    if (json_of(facts->program).dump() != as_text(*text))
        return fail(ErrorCode::corrupt, "its facts are not spelt as they are written");
    return std::move(facts->program);
}

} // namespace warmgraph::precompile
