#include "warmgraph/store/torch_artifacts.hpp"

#include <cstring>

#include <nlohmann/json.hpp>

namespace warmgraph::store {
namespace {

using Json = nlohmann::json; // members in the order of their names: one spelling

constexpr std::string_view k_magic = "WGTORCH\n";
constexpr std::size_t k_longest_name = 64, k_longest_value = 1024;
constexpr std::size_t k_members = 3;
constexpr std::string_view k_cure =
    "set sign_with_file or accept_file (WARMGRAPH_SIGN_KEY_FILE, WARMGRAPH_ACCEPT_KEYS_FILE)";

/// Where the fields stand. All numbers are little-endian.
namespace field {
constexpr std::size_t format = 8, facts_size = 12, bytes_size = 16, signature_kind = 24, key_id = 28, signature = 88,
                      seal = 152, facts = 184;
static_assert(signature - key_id == k_key_id_max && seal - signature == sizeof(SignatureBytes));
} // namespace field

template <class T>
void put(Bytes& bytes, std::size_t at, const T& value)
{
    std::memcpy(bytes.data() + at, &value, sizeof value);
}

/// What a signature stands for: sizes, facts, and with them the digest of PyTorch's bytes.
Digest digest_of_facts(ByteView object, ByteView facts)
{
    Sha256 hash;
    hash.update_field("warmgraph torch artifacts 1");
    return hash.update_field(object.first(field::signature_kind)).update_field(facts).finish();
}

/// Of all before the facts, the signature too: nothing in the object can change unseen.
Digest seal_of(ByteView object, const Digest& facts)
{
    Sha256 hash;
    return hash.update(facts.bytes).update(object.first(field::seal)).finish();
}

Bytes signed_message(SignatureKind kind, std::string_view key_id, const Digest& facts)
{
    Bytes message;
    append(message, as_bytes("warmgraph torch signature 1"));
    append(message, static_cast<std::uint32_t>(kind));
    append(message, std::uint64_t{key_id.size()});
    append(message, as_bytes(key_id));
    append(message, facts.bytes);
    return message;
}

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
        return fail(ErrorCode::corrupt, "its facts are no object of facts, sha256 and written");
    const Json &given = json["facts"], &digest = json["sha256"], &written = json["written"];
    if (!given.is_object() || given.empty() || given.size() > k_most_torch_facts)
        return fail(ErrorCode::corrupt, "it has {} facts, expected 1 to {}", given.size(), k_most_torch_facts);
    Facts facts;
    for (const auto& [name, value] : given.items()) {
        if (name.empty() || name.size() > k_longest_name || !value.is_string() ||
            value.get_ref<const std::string&>().size() > k_longest_value)
            return fail(ErrorCode::corrupt, "one of its facts is no short text under a short name");
        facts.facts.emplace(name, value.get<std::string>());
    }
    const auto read = digest.is_string() ? digest_from_our_hex(digest.get_ref<const std::string&>()) : std::nullopt;
    if (!read || !written.is_string()) return fail(ErrorCode::corrupt, "its digest or date is missing");
    facts.bytes = *read;
    facts.written = written.get<std::string>();
    if (text_of(facts.facts, facts.written, facts.bytes) != as_text(text))
        return fail(ErrorCode::corrupt, "its facts are not spelt as they are written");
    return facts;
}

struct Parts {
    ByteView facts, bytes;
    Digest digest; ///< of the facts, that a signature stands for
    SignatureKind kind = SignatureKind::none;
    std::string key_id{};
};

/// As they lie there, where nothing before PyTorch's bytes has changed.
Result<Parts> parts_of(ByteView object)
{
    if (object.size() < field::facts || as_text(object.first(k_magic.size())) != k_magic)
        return fail(ErrorCode::corrupt, "{} bytes are no artifacts of PyTorch", object.size());
    if (const auto format = load<std::uint32_t>(object, field::format); format != k_torch_format)
        return fail(ErrorCode::stale, "the artifacts have format {}, expected {}", format, k_torch_format);
    const auto facts = load<std::uint32_t>(object, field::facts_size);
    const auto size = load<std::uint64_t>(object, field::bytes_size);
    const std::uint64_t rest = object.size() - field::facts;
    if (facts > k_torch_facts_bytes || size == 0 || size > k_torch_bytes || facts > rest || rest - facts != size)
        return fail(ErrorCode::corrupt, "it has {} bytes of facts and {} of PyTorch's, {} are there", facts, size,
                    rest);
    Parts parts{
        .facts = object.subspan(field::facts, facts), .bytes = object.subspan(field::facts + facts), .digest = {}};
    parts.digest = digest_of_facts(object, parts.facts);
    if (load<Digest>(object, field::seal) != seal_of(object, parts.digest))
        return fail(ErrorCode::corrupt, "its digest does not match: the file is damaged");
    const std::string_view id = as_text(object.subspan(field::key_id, k_key_id_max));
    parts.kind = static_cast<SignatureKind>(load<std::uint32_t>(object, field::signature_kind));
    parts.key_id = id.substr(0, id.find('\0'));
    const bool is_signed = parts.kind == SignatureKind::hmac_sha256 || parts.kind == SignatureKind::ed25519;
    if (!is_signed || !is_key_id(parts.key_id) || id.find_first_not_of('\0', parts.key_id.size()) != id.npos)
        return fail(ErrorCode::corrupt, "it has no signature that is known, and none is written without");
    return parts;
}

Result<void> check_signature(ByteView object, const Parts& parts, const cachefmt::Trust& trust)
{
    const SigningKey* const key = trust.find(parts.key_id);
    if (key == nullptr || key->kind() != parts.kind)
        return fail(ErrorCode::untrusted,
                    "the artifacts of PyTorch are signed with key '{}', which is not accepted, and they can run any "
                    "code: {}, or compile anew",
                    parts.key_id, k_cure);
    if (!key->verifies(signed_message(parts.kind, parts.key_id, parts.digest),
                       load<SignatureBytes>(object, field::signature)))
        return fail(ErrorCode::untrusted,
                    "the signature of PyTorch's artifacts is not of key '{}': they were signed with another key, or "
                    "forged",
                    parts.key_id);
    return {};
}

Result<Facts> checked_facts(const Parts& parts)
{
    auto facts = parse_facts(parts.facts);
    if (facts && sha256(parts.bytes) != facts->bytes)
        return fail(ErrorCode::corrupt, "the digest of PyTorch's bytes does not match: the file is damaged");
    return facts;
}

/// Of the object that is looked for: what lies under its name may be another's.
Result<Bytes> judged(ByteView object, const TorchFacts& facts, const cachefmt::Trust& trust)
{
    auto bytes = decode_torch(object, trust);
    if (!bytes) return bytes;
    const auto label = inspect_torch(object);
    if (!label) return std::unexpected(label.error());
    if (label->facts != facts) return fail(ErrorCode::corrupt, "it is stored under the name of other facts");
    return bytes;
}

} // namespace

Digest key_of(const TorchFacts& facts)
{
    Sha256 hash;
    hash.update_field("warmgraph torch key 1");
    for (const auto& [name, value] : facts) hash.update_field(name).update_field(value);
    return hash.finish();
}

Name torch_name(const TorchFacts& facts) { return ArtifactName{ArtifactKind::torch, key_of(facts)}; }

Result<Bytes> encode_torch(const TorchFacts& facts, std::string_view written, ByteView bytes,
                           const SigningKey& sign_with)
{
    if (bytes.empty()) return fail(ErrorCode::invalid_argument, "there are no bytes of PyTorch's to keep");
    if (bytes.size() > k_torch_bytes)
        return fail(ErrorCode::unsupported,
                    "PyTorch's artifacts have {} bytes, at most {} are kept: compile less in one "
                    "process, or give the parts models of their own",
                    bytes.size(), k_torch_bytes);
    const std::string text = text_of(facts, written, sha256(bytes));
    // What would be read otherwise than it is must not be written: its name would be another.
    const auto again = parse_facts(as_bytes(text));
    if (text.size() > k_torch_facts_bytes || !again || again->facts != facts || again->written != written)
        return fail(ErrorCode::invalid_argument,
                    "{} facts cannot be stored: expected 1 to {}, with names of at most {} and values of at most {} "
                    "bytes of UTF-8",
                    facts.size(), k_most_torch_facts, k_longest_name, k_longest_value);
    Bytes object(field::facts);
    object.reserve(field::facts + text.size() + bytes.size());
    std::memcpy(object.data(), k_magic.data(), k_magic.size());
    put(object, field::format, k_torch_format);
    put(object, field::facts_size, static_cast<std::uint32_t>(text.size()));
    put(object, field::bytes_size, std::uint64_t{bytes.size()});
    const Digest digest = digest_of_facts(object, as_bytes(text));
    const auto signature = sign_with.sign(signed_message(sign_with.kind(), sign_with.id(), digest));
    if (!signature) return std::unexpected(signature.error());
    put(object, field::signature_kind, static_cast<std::uint32_t>(sign_with.kind()));
    std::memcpy(object.data() + field::key_id, sign_with.id().data(), sign_with.id().size());
    put(object, field::signature, *signature);
    put(object, field::seal, seal_of(object, digest));
    append(object, as_bytes(text));
    append(object, bytes);
    return object;
}

Result<TorchLabel> inspect_torch(ByteView object)
{
    auto parts = parts_of(object);
    if (!parts) return std::unexpected(parts.error());
    auto facts = checked_facts(*parts);
    if (!facts) return std::unexpected(facts.error());
    return TorchLabel{std::move(facts->facts), std::move(facts->written), std::move(parts->key_id),
                      parts->bytes.size()};
}

Result<Bytes> decode_torch(ByteView object, const cachefmt::Trust& trust)
{
    const auto parts = parts_of(object);
    if (!parts) return std::unexpected(parts.error());
    if (auto trusted = check_signature(object, *parts, trust); !trusted) return std::unexpected(trusted.error());
    if (const auto facts = checked_facts(*parts); !facts) return std::unexpected(facts.error());
    return Bytes(parts->bytes.begin(), parts->bytes.end());
}

Result<std::optional<Bytes>> find_torch(LocalStore& store, const TorchFacts& facts, const cachefmt::Trust& trust)
{
    if (!trust.sign_with && trust.accepted.empty())
        return fail(ErrorCode::untrusted,
                    "PyTorch's artifacts can run any code, and no key is accepted that says whose: {}", k_cure);
    const Name name = torch_name(facts);
    auto found = store.tier().get(name, {k_torch_cap});
    if (!found) return std::unexpected(found.error());
    if (*found) {
        auto bytes = (*found)->bytes ? judged(*(*found)->bytes, facts, trust)
                                     : Result<Bytes>{std::unexpected((*found)->bytes.error())};
        if (bytes) {
            static_cast<void>(store.tier().note_use(name)); // who only reads cannot
            return std::move(*bytes);
        }
        if (bytes.error().code == ErrorCode::untrusted) return std::unexpected(bytes.error());
        store.tier().refuse(name, (*found)->stamp, bytes.error());
    }
    const auto below = store.object(name);
    if (!below) return std::unexpected(below.error());
    if (!*below) return std::nullopt;
    auto bytes = judged(**below, facts, trust);
    if (!bytes) return std::unexpected(bytes.error());
    return std::move(*bytes);
}

Result<void> put_torch(LocalStore& store, const TorchFacts& facts, std::string_view written, ByteView bytes,
                       const cachefmt::Trust& trust)
{
    if (!trust.sign_with)
        return fail(ErrorCode::untrusted,
                    "PyTorch's artifacts are kept signed or not at all, and there is no key to sign with: set "
                    "sign_with_file (WARMGRAPH_SIGN_KEY_FILE)");
    const auto object = encode_torch(facts, written, bytes, *trust.sign_with);
    if (!object) return std::unexpected(object.error());
    if (auto done = store.tier().put(torch_name(facts), *object); !done) return done;
    store.make_room();
    return {};
}

} // namespace warmgraph::store
