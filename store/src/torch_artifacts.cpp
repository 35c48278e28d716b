#include "warmgraph/store/torch_artifacts.hpp"

#include <nlohmann/json.hpp>

#include "warmgraph/store/artifacts.hpp"

namespace warmgraph::store {
namespace {

using Json = nlohmann::json; // sorts members by name, so that the same facts give the same text

constexpr std::size_t k_longest_name = 64, k_longest_value = 1024;
constexpr std::size_t k_members = 3;
constexpr std::string_view k_cure =
    "set sign_with_file or accept_file (WARMGRAPH_SIGN_KEY_FILE, WARMGRAPH_ACCEPT_KEYS_FILE)";

std::string text_of(const TorchFacts& facts, std::string_view written, const Digest& bytes)
{
    const Json json{{"facts", facts}, {"sha256", to_hex(bytes)}, {"written", written}};
    return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

struct Facts {
    TorchFacts facts{};
    std::string written{};
    Digest bytes;
};

Result<Facts> parse_facts(ByteView text)
{
    const Json json = Json::parse(as_text(text), nullptr, false);
    if (!json.is_object() || json.size() != k_members || !json.contains("facts") || !json.contains("sha256") ||
        !json.contains("written"))
        return fail(ErrorCode::corrupt, "its facts are not an object with facts, sha256 and written");
    const Json &given = json["facts"], &digest = json["sha256"], &written = json["written"];
    if (!given.is_object() || given.empty() || given.size() > k_most_torch_facts)
        return fail(ErrorCode::corrupt, "it has {} facts, expected 1 to {}", given.size(), k_most_torch_facts);
    Facts facts;
    for (const auto& [name, value] : given.items()) {
        if (name.empty() || name.size() > k_longest_name || !value.is_string() ||
            value.get_ref<const std::string&>().size() > k_longest_value)
            return fail(ErrorCode::corrupt, "one of its facts is not a short text under a short name");
        facts.facts.emplace(name, value.get<std::string>());
    }
    const auto read = digest.is_string() ? digest_from_our_hex(digest.get_ref<const std::string&>()) : std::nullopt;
    if (!read || !written.is_string()) return fail(ErrorCode::corrupt, "its digest or date is missing");
    facts.bytes = *read;
    facts.written = written.get<std::string>();
    if (text_of(facts.facts, facts.written, facts.bytes) != as_text(text))
        return fail(ErrorCode::corrupt, "its facts are not written in the expected form: the file was changed");
    return facts;
}

/// Opens an object and checks everything before PyTorch's bytes.
Result<cachefmt::SealedObject> opened(ByteView object)
{
    auto sealed = cachefmt::open_sealed(k_sealed_torch, object);
    if (!sealed) return sealed;
    if (const std::uint64_t size = sealed->contents_size;
        size == 0 || size > k_torch_bytes || sealed->contents.size() != size)
        return fail(ErrorCode::corrupt, "it has {} bytes of PyTorch's artifacts, but the file holds {}", size,
                    sealed->contents.size());
    if (!sealed->is_signed())
        return fail(ErrorCode::corrupt, "it has no known signature, but such files are always signed");
    return sealed;
}

/// Requires an accepted signature, even if signatures are not required in general.
Result<void> check_signer(const cachefmt::SealedObject& sealed, const cachefmt::Trust& trust)
{
    const auto trusted = cachefmt::check_signature(k_sealed_torch, sealed, trust);
    if (trusted) return {};
    return fail(trusted.error().code, "PyTorch's artifacts can run any code: {}: {}, or compile again",
                trusted.error().message, k_cure);
}

Result<Facts> checked_facts(const cachefmt::SealedObject& sealed)
{
    auto facts = parse_facts(sealed.facts);
    if (facts && sha256(sealed.contents) != facts->bytes)
        return fail(ErrorCode::corrupt, "the digest of PyTorch's artifacts does not match: the file is damaged");
    return facts;
}

struct TorchCodec {
    struct Value {
        TorchFacts facts{};
        std::string written{};
        Bytes bytes{};
    };
    static constexpr ArtifactKind k_kind = ArtifactKind::torch;
    static constexpr std::uint8_t k_form = 0;
    static constexpr std::uint64_t k_most_bytes = k_torch_cap;
    static constexpr ErrorCode k_misnamed = ErrorCode::corrupt;
    static constexpr RefusalScope k_refusing = RefusalScope::everywhere;

    [[nodiscard]] static Digest key_of(const Value& value) { return store::key_of(value.facts); }
    [[nodiscard]] Result<Value> decode(ByteView object) const
    {
        auto bytes = decode_torch(object, *trust);
        if (!bytes) return std::unexpected(bytes.error());
        auto label = inspect_torch(object);
        if (!label) return std::unexpected(label.error());
        return Value{std::move(label->facts), std::move(label->written), std::move(*bytes)};
    }
    [[nodiscard]] Result<Bytes> encode(const Value& value) const
    {
        return encode_torch(value.facts, value.written, value.bytes, *trust->sign_with);
    }

    const cachefmt::Trust* trust = nullptr;
};
using TorchArtifacts = Artifacts<TorchCodec>;

} // namespace

Digest key_of(const TorchFacts& facts)
{
    Sha256 hash;
    hash.update_field("warmgraph torch key 1");
    for (const auto& [name, value] : facts) hash.update_field(name).update_field(value);
    return hash.finish();
}

ArtifactName torch_name(const TorchFacts& facts) { return TorchArtifacts::name_of(key_of(facts)); }

Result<Bytes> encode_torch(const TorchFacts& facts, std::string_view written, ByteView bytes,
                           const SigningKey& sign_with)
{
    if (bytes.empty()) return fail(ErrorCode::invalid_argument, "there are no PyTorch artifacts to store");
    if (bytes.size() > k_torch_bytes)
        return fail(ErrorCode::unsupported,
                    "PyTorch's artifacts have {} bytes, expected at most {}: compile less in one process, or give "
                    "parts of the program different models",
                    bytes.size(), k_torch_bytes);
    const std::string text = text_of(facts, written, sha256(bytes));
    // Facts that would be read back differently must not be written: their name would differ.
    const auto again = parse_facts(as_bytes(text));
    if (text.size() > k_torch_facts_bytes || !again || again->facts != facts || again->written != written)
        return fail(ErrorCode::invalid_argument,
                    "{} facts cannot be stored: expected 1 to {}, with names of at most {} and values of at most {} "
                    "bytes of UTF-8",
                    facts.size(), k_most_torch_facts, k_longest_name, k_longest_value);
    return cachefmt::seal(k_sealed_torch, text, bytes, &sign_with);
}

Result<TorchLabel> inspect_torch(ByteView object)
{
    auto sealed = opened(object);
    if (!sealed) return std::unexpected(sealed.error());
    auto facts = checked_facts(*sealed);
    if (!facts) return std::unexpected(facts.error());
    return TorchLabel{std::move(facts->facts), std::move(facts->written), std::move(sealed->key_id),
                      sealed->contents.size()};
}

Result<Bytes> decode_torch(ByteView object, const cachefmt::Trust& trust)
{
    const auto sealed = opened(object);
    if (!sealed) return std::unexpected(sealed.error());
    if (auto trusted = check_signer(*sealed, trust); !trusted) return std::unexpected(trusted.error());
    if (const auto facts = checked_facts(*sealed); !facts) return std::unexpected(facts.error());
    return Bytes(sealed->contents.begin(), sealed->contents.end());
}

Result<std::optional<Bytes>> find_torch(LocalStore& store, const TorchFacts& facts, const cachefmt::Trust& trust)
{
    if (!trust.sign_with && trust.accepted.empty())
        return fail(ErrorCode::untrusted,
                    "PyTorch's artifacts can run any code, but no key is accepted that says who made them: {}", k_cure);
    const TorchArtifacts artifacts(store.tiers(), {&trust});
    auto found = artifacts.find(key_of(facts));
    // The damaged object was set aside, so the second find() is a miss or finds another object.
    if (!found && (found.error().code == ErrorCode::corrupt || found.error().code == ErrorCode::stale))
        found = artifacts.find(key_of(facts));
    if (!found) return std::unexpected(found.error());
    if (!*found) return std::nullopt;
    return std::move((*found)->bytes);
}

Result<void> put_torch(LocalStore& store, const TorchFacts& facts, std::string_view written, ByteView bytes,
                       const cachefmt::Trust& trust)
{
    if (!trust.sign_with)
        return fail(ErrorCode::untrusted, "PyTorch's artifacts are only stored with a signature, but there is no key "
                                          "to sign with: set sign_with_file (WARMGRAPH_SIGN_KEY_FILE)");
    const TorchArtifacts artifacts(store.tiers(), {&trust});
    if (auto done = artifacts.put({facts, std::string(written), Bytes(bytes.begin(), bytes.end())}); !done) return done;
    store.make_room();
    return {};
}

} // namespace warmgraph::store
