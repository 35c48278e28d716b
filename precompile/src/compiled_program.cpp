#include "warmgraph/precompile/compiled_program.hpp"

#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <set>

#include "warmgraph/base/json_members.hpp"

namespace warmgraph::precompile {
namespace {

using Json = nlohmann::json; // sorts members by name, so that the same facts give the same text

constexpr std::size_t k_longest_text = 64UL << 10;
constexpr std::size_t k_members = 12; // number of members in a file, without "search" and "tag"
constexpr std::size_t k_most_recorded_headers = 20'000, k_most_ready = 4096;

Json json_of(const CompiledProgram& program)
{
    const Ingredients& made_of = program.ingredients;
    Json headers = Json::array();
    for (const auto& [name, digest] : made_of.headers) headers.push_back({name, to_hex(digest)});
    Json json{{"program", made_of.program},
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
    if (made_of.search != Digest{}) json["search"] = to_hex(made_of.search);
    if (!made_of.tag.empty()) json["tag"] = made_of.tag;
    return json;
}

void read_headers(JsonMembers& members, const char* name, std::vector<Header>& list)
{
    const Json* const member = members.find(name, &Json::is_array);
    if (member == nullptr) return;
    if (member->size() > k_most_recorded_headers) return members.wrong(name);
    for (const Json& item : *member) {
        if (!item.is_array() || item.size() != 2) return members.wrong(name);
        Header& header = list.emplace_back();
        members.take(name, item[0], header.name);
        members.take(name, item[1], header.digest);
    }
    if (!std::ranges::is_sorted(list)) members.wrong(name);
}

struct Facts {
    CompiledProgram program; ///< the program without its image
    Digest image;
};

Result<Facts> parse_facts(ByteView text)
{
    const Json json = Json::parse(as_text(text), nullptr, false);
    if (json.is_discarded()) return fail(ErrorCode::corrupt, "its facts are not JSON");
    Facts facts;
    Ingredients& made_of = facts.program.ingredients;
    JsonMembers members(json, k_longest_text);
    members.text("program", made_of.program);
    members.text("backend", made_of.backend);
    members.digest("source", made_of.source);
    members.texts("options", made_of.options, k_most_option_words);
    read_headers(members, "headers", made_of.headers);
    const bool has_search = json.is_object() && json.contains("search"),
               has_tag = json.is_object() && json.contains("tag");
    if (has_search) members.digest("search", made_of.search);
    if (has_tag) members.text("tag", made_of.tag);
    members.text("target", made_of.target);
    members.text("compiler", made_of.compiler);
    members.texts("ready", facts.program.compiled.ready, k_most_ready);
    members.digest("origin", facts.program.compiled.origin);
    members.digest("image", facts.image);
    members.milliseconds("compile_ms", facts.program.compile_ms);
    members.text("written", facts.program.written);
    if (!members.first_problem().empty()) return fail(ErrorCode::corrupt, "its facts: {}", members.first_problem());
    const std::size_t expected = k_members + (has_search ? 1 : 0) + (has_tag ? 1 : 0);
    if (json.size() != expected)
        return fail(ErrorCode::corrupt, "its facts have {} members, expected {}", json.size(), expected);
    return facts;
}

/// Opens the file and checks its signature if `trust` requires one.
Result<cachefmt::SealedObject> opened(ByteView bytes, const cachefmt::Trust& trust)
{
    auto sealed = cachefmt::open_sealed(k_sealed_program, bytes);
    if (!sealed) return sealed;
    if (!trust.require) return sealed;
    if (auto trusted = cachefmt::check_signature(k_sealed_program, *sealed, trust); !trusted)
        return std::unexpected(trusted.error());
    return sealed;
}

// --- Differences

constexpr std::string_view k_absent = "(none)";

std::string text_of(const std::vector<std::string>& words)
{
    return words.empty() ? std::string(k_absent) : fmt::format("{}", fmt::join(words, " "));
}

/// Returns the digest as a text; files from before 2026-11-30 have no search digest.
std::string digest_text(const Digest& digest) { return digest == Digest{} ? std::string(k_absent) : short_hex(digest); }

/// The digests of the files with each name.
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
    if (ingredients.search != Digest{}) hash.update_field("search").update_field(ingredients.search.bytes);
    if (!ingredients.tag.empty()) hash.update_field("tag").update_field(ingredients.tag);
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
    const std::size_t before = found.size();
    add_headers(then, now, found);
    // Different headers already explain a different search digest.
    if (found.size() == before && then.search != now.search)
        found.push_back({"header order", digest_text(then.search), digest_text(now.search),
                         "headers or folders with the same name were swapped: give the order that it was compiled "
                         "with, or compile it with this order"});
    compare("target", then.target, now.target, "compile it for this device (warmgraph precompile --arch)");
    compare("compiler", then.compiler, now.compiler, "compile it again with this machine's compiler");
    compare("cache_key_tag", then.tag, now.tag, "set the tag that it was compiled with, or compile it with this one");
    return found;
}

Result<Bytes> encode(const CompiledProgram& program, const SigningKey* sign_with)
{
    const std::string facts = json_of(program).dump(-1, ' ', false, Json::error_handler_t::replace);
    if (facts.size() > k_facts_cap ||
        cachefmt::k_sealed_head + facts.size() + program.compiled.image.size() > k_compiled_cap)
        return fail(ErrorCode::unsupported, "the compiled program '{}' has {} bytes, expected at most {}",
                    program.ingredients.program, facts.size() + program.compiled.image.size(), k_compiled_cap);
    // Refuses facts that would be read back with a difference, because their key would differ.
    const auto again = parse_facts(as_bytes(facts));
    if (!again || again->program.ingredients != program.ingredients ||
        again->program.compiled.ready != program.compiled.ready)
        return fail(ErrorCode::invalid_argument,
                    "the program '{}' has options or names that cannot be stored: they are not UTF-8, or too long",
                    program.ingredients.program);
    return cachefmt::seal(k_sealed_program, facts, program.compiled.image, sign_with);
}

Result<CompiledProgram> decode_facts(ByteView first, const cachefmt::Trust& trust)
{
    const auto sealed = opened(first, trust);
    if (!sealed) return std::unexpected(sealed.error());
    auto facts = parse_facts(sealed->facts);
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
    const auto sealed = cachefmt::open_sealed(k_sealed_program, bytes);
    if (!sealed) return std::unexpected(sealed.error());
    return cachefmt::k_sealed_head + sealed->facts.size();
}

Result<CompiledProgram> decode(ByteView bytes, const cachefmt::Trust& trust)
{
    const auto sealed = opened(bytes, trust);
    if (!sealed) return std::unexpected(sealed.error());
    auto facts = parse_facts(sealed->facts);
    if (!facts) return std::unexpected(facts.error());
    const ByteView image = sealed->contents;
    if (image.size() != sealed->contents_size)
        return fail(ErrorCode::corrupt, "its image has {} bytes, expected {}", image.size(), sealed->contents_size);
    if (image.empty() || sha256(image) != facts->image)
        return fail(ErrorCode::corrupt, "its image's digest does not match: the file is damaged");
    facts->program.compiled.image.assign(image.begin(), image.end());
    if (json_of(facts->program).dump() != as_text(sealed->facts))
        return fail(ErrorCode::corrupt, "its facts are not written in the expected form: the file was changed");
    return std::move(facts->program);
}

} // namespace warmgraph::precompile
