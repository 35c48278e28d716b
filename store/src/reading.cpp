#include "reading.hpp"

#include <algorithm>

#include "warmgraph/store/packing.hpp"

namespace warmgraph::store {
namespace {

/// The bytes of the first read: enough for most headers, which have 2-8 KiB (measured), so that one read suffices.
constexpr std::uint64_t k_first_read = 32 * 1024;

std::uint64_t entry_cap(const cachefmt::Limits& limits) noexcept
{
    return cachefmt::k_envelope_bytes + limits.header_bytes + limits.payload_stored_bytes;
}

/// True for an entry of a newer warmgraph: an older reader treats it as a miss and leaves it.
bool is_newer_format(ByteView prefix)
{
    return cachefmt::stored_format_version(prefix).value_or(0) > cachefmt::k_format_version;
}

/// Decodes the bytes and decides what to do with the object.
template <class T, class Decode>
JudgedObject<T> judge(const StampedBytes& found, LookupBy asked, Decode decode)
{
    JudgedObject<T> judged{found.stamp, found.bytes ? decode(*found.bytes) : std::unexpected(found.bytes.error())};
    if (judged.content || !found.bytes) return judged;
    const bool is_anothers = asked == LookupBy::by_name && is_newer_format(*found.bytes);
    // The bytes are intact, and another process may accept them.
    if (is_anothers || judged.content.error().code == ErrorCode::untrusted) judged.fate = Fate::leave;
    return judged;
}

const EntryHeader& header_of(const EntryHeader& header) noexcept { return header; }
const EntryHeader& header_of(const Entry& entry) noexcept { return entry.header; }

template <class T>
Result<T> only_in_use(Result<T> decoded)
{
    if (decoded)
        if (auto ok = cachefmt::check_not_joined(header_of(*decoded)); !ok) return std::unexpected(ok.error());
    return decoded;
}

/// Reads more until the whole header is there. `prefix`: the bytes so far, with the envelope.
Result<std::optional<StampedBytes>> complete(Tier& tier, const EntryKey& key, const cachefmt::Limits& limits,
                                             StampedBytes&& prefix)
{
    if (!prefix.bytes || prefix.bytes->size() < k_first_read) return std::move(prefix);
    const auto extent = cachefmt::header_extent(*prefix.bytes, limits);
    return extent && *extent > k_first_read ? tier.get(key, {*extent, false}) : std::move(prefix);
}

Result<std::optional<JudgedObject<EntryHeader>>> judge_header(Tier& tier, const EntryKey& key, const Caps& caps,
                                                              LookupBy asked, StampedBytes&& prefix)
{
    const auto found = complete(tier, key, caps.entry, std::move(prefix));
    if (!found) return std::unexpected(found.error());
    if (!*found) return std::nullopt;
    return judge<EntryHeader>(**found, asked, [&](ByteView bytes) {
        return only_in_use(cachefmt::decode_header(bytes, key, caps.entry, caps.trust));
    });
}

Result<std::optional<JudgedObject<Header>>> judge_and_keep(Tier& tier, const EntryKey& key, const Caps& caps,
                                                           LookupBy asked, StampedBytes&& prefix, HeaderMemo& memo)
{
    auto header = judge_header(tier, key, caps, asked, std::move(prefix));
    if (!header) return std::unexpected(header.error());
    if (!*header) return std::nullopt;
    auto& [stamp, content, fate] = **header;
    if (!content) return JudgedObject<Header>{stamp, std::unexpected(std::move(content.error())), fate};
    const auto shared = std::make_shared<const EntryHeader>(std::move(*content));
    memo.keep(stamp, shared);
    return JudgedObject<Header>{stamp, shared};
}

/// `now`: the object's current stamp, with or without its bytes.
Result<std::optional<JudgedObject<Header>>> judge_unless_known(Tier& tier, const EntryKey& key, const Caps& caps,
                                                               LookupBy asked, const StampedBytes& now,
                                                               HeaderMemo& memo)
{
    if (now.bytes)
        if (auto known = memo.find(key, now.stamp)) return JudgedObject<Header>{now.stamp, std::move(known)};
    auto found = tier.get(key, {k_first_read, false});
    if (!found) return std::unexpected(found.error());
    if (!*found) return std::nullopt;
    return judge_and_keep(tier, key, caps, asked, std::move(**found), memo);
}

/// Reads an entry of a remote: the header, and the rest if the header is accepted.
Result<std::optional<StampedBytes>> read_in_parts(Tier& tier, const EntryKey& key, const Caps& caps, LookupBy asked)
{
    auto head = tier.get(key, {k_first_read, false});
    if (!head) return std::unexpected(head.error());
    if (!*head || !(*head)->bytes) return std::move(*head);
    StampedBytes& found = **head;
    if (found.stamp.size > entry_cap(caps.entry)) {
        found.bytes =
            fail(ErrorCode::corrupt, "it has {} bytes, at most {} are read", found.stamp.size, entry_cap(caps.entry));
        return std::move(*head);
    }
    if (found.stamp.size <= found.bytes->size()) return std::move(*head);
    const auto header = judge_header(tier, key, caps, asked, StampedBytes(found));
    if (!header) return std::unexpected(header.error());
    if (!*header) return std::nullopt;
    if (!(*header)->content) {
        // A header whose parts are of two objects is damaged, too: the caller reads the whole then.
        if ((*header)->content.error().code == ErrorCode::untrusted)
            found.bytes = std::unexpected((*header)->content.error());
        return std::move(*head);
    }
    const std::uint64_t read = found.bytes->size();
    const auto rest = tier.get(
        key,
        {.bytes = found.stamp.size - read, .whole = false, .offset = read, .within = worth_of(*(*header)->content)});
    if (!rest) return std::unexpected(rest.error());
    if (!*rest || !(*rest)->bytes) return std::nullopt;
    // If another object took the name meanwhile, the two parts do not decode.
    found.bytes->insert(found.bytes->end(), (*rest)->bytes->begin(), (*rest)->bytes->end());
    return std::move(*head);
}

} // namespace

std::chrono::milliseconds worth_of(const EntryHeader& header)
{
    constexpr double k_most = 3'600'000; // the number is the entry's, and may be any
    const double saved = std::clamp(header.info.answer_ms, 0.0, k_most);
    return std::chrono::ceil<std::chrono::milliseconds>(std::chrono::duration<double, std::milli>(saved));
}

Result<std::optional<JudgedObject<Entry>>> read_entry(Tier& tier, const EntryKey& key, const Caps& caps, LookupBy asked,
                                                      Bytes* raw)
{
    const auto decoded = [&](const StampedBytes& object) {
        return judge<Entry>(object, asked, [&](ByteView bytes) {
            return only_in_use(cachefmt::decode(bytes, key, caps.entry, caps.trust));
        });
    };
    if (tier.is_remote()) {
        auto found = read_in_parts(tier, key, caps, asked);
        if (!found) return std::unexpected(found.error());
        if (!*found) return std::nullopt;
        auto entry = decoded(**found);
        if (!entry.content && (*found)->bytes) { // its parts may be of two objects
            found = tier.get(key, {entry_cap(caps.entry)});
            if (!found) return std::unexpected(found.error());
            if (!*found) return std::nullopt;
            entry = decoded(**found);
        }
        if (raw != nullptr && entry.content) *raw = std::move(*(*found)->bytes);
        return entry;
    }
    const cachefmt::Trust trust = asked == LookupBy::by_key ? caps.trust : cachefmt::Trust{};
    if (trust.require) { // verify the signature before the payload is read; the read below verifies it again
        const auto header = read_header(tier, key, caps, asked);
        if (!header) return std::unexpected(header.error());
        if (!*header) return std::nullopt;
        if (const auto& known = (*header)->content; !known && known.error().code == ErrorCode::untrusted)
            return JudgedObject<Entry>{(*header)->stamp, std::unexpected(known.error()), Fate::leave};
    }
    const auto found = tier.get(key, {entry_cap(caps.entry)});
    if (!found) return std::unexpected(found.error());
    if (!*found) return std::nullopt;
    return judge<Entry>(**found, asked, [&](ByteView bytes) {
        auto entry = cachefmt::decode(bytes, key, caps.entry, trust);
        return asked == LookupBy::by_key ? only_in_use(std::move(entry)) : std::move(entry);
    });
}

Result<std::optional<JudgedObject<EntryHeader>>> read_header(Tier& tier, const EntryKey& key, const Caps& caps,
                                                             LookupBy asked)
{
    auto found = tier.get(key, {k_first_read, false});
    if (!found) return std::unexpected(found.error());
    if (!*found) return std::nullopt;
    return judge_header(tier, key, caps, asked, std::move(**found));
}

Result<std::vector<NamedHeader>> read_headers(Tier& tier, const FunctionKey& function, const Caps& caps,
                                              HeaderMemo& memo)
{
    const bool may_be_known = memo.knows(function);
    auto entries = tier.get_entries(function, may_be_known ? k_stamp_alone : ReadLimit{k_first_read, false});
    if (!entries) return std::unexpected(entries.error());
    std::vector<NamedHeader> headers;
    for (auto& [key, found] : *entries) {
        if (!found) {
            headers.push_back({key, std::unexpected(found.error())});
            continue;
        }
        auto header = may_be_known ? judge_unless_known(tier, key, caps, LookupBy::by_name, *found, memo)
                                   : judge_and_keep(tier, key, caps, LookupBy::by_name, std::move(*found), memo);
        if (!header)
            headers.push_back({key, std::unexpected(header.error())});
        else if (*header) // no header: the entry was evicted meanwhile
            headers.push_back({key, std::move(**header)});
    }
    return headers;
}

Result<std::optional<JudgedObject<Header>>> known_header(Tier& tier, const EntryKey& key, const Caps& caps,
                                                         HeaderMemo& memo)
{
    const bool may_be_known = memo.knows(key.function);
    auto found = tier.get(key, may_be_known ? k_stamp_alone : ReadLimit{k_first_read, false});
    if (!found) return std::unexpected(found.error());
    if (!*found) return std::nullopt;
    return may_be_known ? judge_unless_known(tier, key, caps, LookupBy::by_key, **found, memo)
                        : judge_and_keep(tier, key, caps, LookupBy::by_key, std::move(**found), memo);
}

Result<std::optional<JudgedObject<Bytes>>> read_image(Tier& tier, const Digest& digest, std::uint64_t cap, Bytes* raw,
                                                      std::chrono::milliseconds within)
{
    auto found = tier.get(ImageName{digest}, {.bytes = cap, .within = within});
    if (!found) return std::unexpected(found.error());
    if (!*found) return std::nullopt;
    JudgedObject<Bytes> image{(*found)->stamp, std::move((*found)->bytes)};
    if (image.content && raw != nullptr) *raw = *image.content;
    if (image.content) image.content = unpack(std::move(*image.content), digest, cap);
    return image;
}

} // namespace warmgraph::store
