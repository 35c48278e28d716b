#include "warmgraph/store/store.hpp"

#include <algorithm>
#include <exception>

#include "reading.hpp"
#include "warmgraph/base/log.hpp"
#include "warmgraph/cachefmt/key.hpp"

namespace warmgraph::store {
namespace {

/// The verdict for a caller, who knows the key and not what was read.
template <class T>
Result<T> named(const EntryKey& key, Judged<T>&& judged)
{
    if (!judged.content) return within(to_text(key), judged.content.error());
    return std::move(*judged.content);
}

Variant variant_of(FoundHeader&& found)
{
    const Digest& digest = found.key.guards_digest;
    if (!found.header) return {digest, 0, {}, std::unexpected(found.header.error())};
    Judged<Header>& judged = *found.header;
    return {digest, judged.stamp.size, judged.stamp.used, std::move(judged.content)};
}

} // namespace

Store::Store(Tier& tier, const Caps& caps, Refused refused)
    : m_tier(tier), m_caps(caps), m_refused(std::move(refused)), m_memo(std::make_shared<HeaderMemo>())
{
}

Result<std::vector<Variant>> Store::variants(const FunctionKey& function) const
{
    if (auto ok = check_key(function); !ok) return std::unexpected(ok.error());
    auto headers = read_headers(m_tier, function, m_caps, *m_memo);
    if (!headers) return std::unexpected(headers.error());
    std::vector<Variant> variants;
    for (FoundHeader& found : *headers) variants.push_back(variant_of(std::move(found)));
    return variants;
}

Result<Header> Store::header(const EntryKey& key) const
{
    if (auto ok = check_key(key.function); !ok) return std::unexpected(ok.error());
    auto found = known_header(m_tier, key, m_caps, *m_memo);
    if (!found) return std::unexpected(found.error());
    if (!*found) return nullptr;
    return named(key, std::move(**found));
}

Result<std::optional<Entry>> Store::entry(const EntryKey& key, Reading reading, Stamp* stamp)
{
    if (auto ok = check_key(key.function); !ok) return std::unexpected(ok.error());
    auto found = read_entry(m_tier, key, m_caps, Asked::by_key);
    if (!found) return std::unexpected(found.error());
    if (!*found) return std::nullopt;
    if (!(*found)->content) {
        refuse(m_tier, key, **found);
        if (m_refused) m_refused(key, (*found)->stamp, (*found)->content.error());
    } else {
        if (stamp != nullptr) *stamp = (*found)->stamp;
        m_memo->keep((*found)->stamp, std::make_shared<const EntryHeader>((*found)->content->header));
        if (reading == Reading::use) note_use(key);
    }
    return named(key, std::move(**found));
}

bool Store::is_still(const EntryKey& key, const Stamp& stamp) noexcept
try {
    if (!check_key(key.function)) return false;
    const auto found = m_tier.get(key, {0, false});
    // A tier that cannot tell one state of an object from the next leaves out what it does not know.
    return found && *found && stamp.version != 0 && (*found)->bytes && (*found)->stamp == stamp;
} catch (const std::exception&) { // memory
    return false;
}

void Store::note_use(const EntryKey& key) noexcept
try {
    if (!check_key(key.function)) return;
    if (const auto noted = m_tier.note_use(key); !noted) log().debug("last use not noted: {}", noted.error().message);
} catch (const std::exception& error) {
    log().debug("last use not noted: {}", error.what());
}

Result<void> Store::publish(const Entry& entry)
{
    const EntryKey& key = entry.header.key;
    if (auto ok = check_key(key.function); !ok) return ok;
    const std::string doing = fmt::format("publish {}", key.function.function);
    const Packing& packing = m_caps.packings.payloads;
    const auto bytes = cachefmt::encode(entry, {.compress_above = packing.level == 0 ? UINT64_MAX : packing.above,
                                                .zstd_level = packing.level,
                                                .sign_with = m_caps.trust.sign_with.get()});
    if (!bytes) return within(doing, bytes.error());
    if (auto done = m_tier.put(key, *bytes); !done) return within(doing, done.error());
    return {};
}

Result<void> Store::remove(const EntryKey& key)
{
    if (auto ok = check_key(key.function); !ok) return ok;
    return m_tier.remove(key);
}

void Store::set_aside(const EntryHeader& header, const Error& reason) noexcept
try {
    if (!check_key(header.key.function)) return;
    const auto found = read_header(m_tier, header.key, m_caps, Asked::by_key);
    if (!found || !*found || !(*found)->content || *(*found)->content != header) return;
    m_tier.refuse(header.key, (*found)->stamp, reason);
    if (m_refused) m_refused(header.key, (*found)->stamp, reason);
} catch (const std::exception& error) {
    log().debug("not set aside: {}", error.what());
}

Result<std::optional<Bytes>> Store::image(const Digest& digest, std::uint64_t size)
{
    auto found = read_image(m_tier, digest, std::min(m_caps.image_bytes, size));
    if (!found) return std::unexpected(found.error());
    if (!*found) return std::nullopt;
    if ((*found)->content) return std::move(*(*found)->content);
    if (size < m_caps.image_bytes) {
        // It may be larger than the entry says, and whole: then the entry is wrong, and others need the image.
        const auto whole = read_image(m_tier, digest, m_caps.image_bytes);
        if (whole && *whole && (*whole)->content) return std::nullopt;
    }
    refuse(m_tier, ImageName{digest}, **found);
    return std::nullopt;
}

Result<bool> Store::publish_image(ByteView blob, ArtifactKind kind)
{
    if (blob.size() > m_caps.image_bytes) {
        return fail(ErrorCode::unsupported,
                    "image has {} bytes, at most {} are cached: split the program into smaller modules", blob.size(),
                    m_caps.image_bytes);
    }
    const ImageName name{sha256(blob)};
    // A damaged one must be replaced, and only reading it tells. Where reading fails, writing decides.
    if (auto present = read_image(m_tier, name.digest, m_caps.image_bytes); present && *present) {
        if (!(*present)->content) {
            refuse(m_tier, name, **present);
        } else if (m_tier.note_use(name)) { // else it was removed as unused just now
            return false;
        }
    }
    const auto& packings = m_caps.packings;
    const auto packed = pack(blob, kind == ArtifactKind::images ? packings.images : packings.constants);
    if (auto done = m_tier.put(name, packed && !packed->empty() ? ByteView{*packed} : blob); !done)
        return within(fmt::format("publish image {}", short_hex(name.digest)), done.error());
    return true;
}

} // namespace warmgraph::store
