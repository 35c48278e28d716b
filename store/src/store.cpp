#include "warmgraph/store/store.hpp"

#include <algorithm>
#include <exception>

#include "reading.hpp"
#include "warmgraph/base/log.hpp"
#include "warmgraph/base/units.hpp"
#include "warmgraph/cachefmt/key.hpp"

namespace warmgraph::store {
namespace {

/// Adds the key to an error, because the caller does not know which object was read.
template <class T>
Result<T> named(const EntryKey& key, JudgedObject<T>&& judged)
{
    if (!judged.content) return within(to_text(key), judged.content.error());
    return std::move(*judged.content);
}

Variant variant_of(NamedHeader&& found)
{
    const Digest& digest = found.key.guards_digest;
    if (!found.header) return {digest, 0, {}, std::unexpected(found.header.error())};
    JudgedObject<Header>& judged = *found.header;
    return {digest, judged.stamp.size, judged.stamp.used, std::move(judged.content)};
}

/// Whether what a remote gave can be used. A remote counts its damaged and untrusted objects itself; for this process they
/// are not there.
template <class T>
bool accepted(Tier& remote, const EntryKey& key, const JudgedObject<T>& judged)
{
    if (!judged.content) remote.refuse(key, judged.stamp, judged.content.error());
    return judged.content.has_value();
}
bool accepted(Tier& remote, const NamedHeader& found)
{
    return found.header && accepted(remote, found.key, *found.header);
}

void note_use_in(Tier& tier, const EntryKey& key)
{
    if (const auto noted = tier.note_use(key); !noted)
        log().debug("the time of the last use is not stored: {}", noted.error().message);
}

Result<std::optional<Bytes>> object_in(Tier& tier, const Name& name, const Caps& caps)
{
    const ArtifactKind kind = kind_of(name);
    const std::uint64_t most = kind == ArtifactKind::images    ? caps.image_bytes
                               : kind == ArtifactKind::entries ? cachefmt::k_envelope_bytes + caps.entry.header_bytes +
                                                                     caps.entry.payload_stored_bytes
                                                               : row_of(kind).most_bytes;
    auto found = tier.get(name, {most});
    if (!found) return std::unexpected(found.error());
    if (!*found) return std::nullopt;
    if (!(*found)->bytes) return std::unexpected((*found)->bytes.error());
    const auto* const image = std::get_if<ImageName>(&name);
    return image != nullptr ? unpack(std::move(*(*found)->bytes), image->digest, most) : std::move((*found)->bytes);
}

} // namespace

Store::Store(Tier& tier, const Caps& caps, StoreEvents events)
    : m_levels{{.tier = &tier, .caps = caps, .memo = std::make_shared<HeaderMemo>()}}, m_events(std::move(events))
{
}

void Store::add_layer(std::shared_ptr<Tier> layer, const cachefmt::Trust& trust)
{
    Caps caps = m_levels.front().caps;
    caps.trust = trust;
    Tier* const tier = layer.get();
    m_levels.push_back({tier, std::move(caps), std::move(layer), std::make_shared<HeaderMemo>()});
}

Tiers Store::tiers() const
{
    Tiers tiers;
    for (const Level& level : m_levels) tiers.push_back(level.tier);
    return tiers;
}

template <class T, class Ask>
Result<T> Store::ask_all(Ask ask) const
{
    Result<T> found = ask(m_levels.front());
    for (std::size_t i = 1; i < m_levels.size() && !(found && *found); ++i) {
        Result<T> below = ask(m_levels[i]);
        if (below ? static_cast<bool>(*below) : found.has_value()) found = std::move(below);
    }
    return found;
}

void Store::keep(const Name& name, Bytes bytes) const
{
    if (m_events.keep) return m_events.keep(name, std::move(bytes));
    if (const auto kept = m_levels.front().tier->put(name, bytes, PutMode::create_only); !kept)
        log().debug("{} is not kept: {}", to_text(name), kept.error().message);
}

Result<std::vector<Variant>> Store::variants(const FunctionKey& function) const
{
    if (auto ok = check_key(function); !ok) return std::unexpected(ok.error());
    std::vector<Variant> variants;
    std::optional<Error> failed;
    for (const Level& level : m_levels) {
        auto headers = read_headers(*level.tier, function, level.caps, *level.memo);
        if (!headers) {
            if (!failed) failed = headers.error();
            continue;
        }
        for (NamedHeader& found : *headers) {
            if (level.tier->is_remote() && !accepted(*level.tier, found)) continue;
            Variant variant = variant_of(std::move(found));
            const auto above = std::ranges::find(variants, variant.guards_digest, &Variant::guards_digest);
            if (above == variants.end())
                variants.push_back(std::move(variant));
            else if (!above->header && variant.header)
                *above = std::move(variant);
        }
    }
    if (failed && variants.empty()) return std::unexpected(std::move(*failed));
    std::ranges::sort(variants, {}, &Variant::guards_digest);
    return variants;
}

Result<std::vector<EntryUse>> Store::by_last_use(const FunctionKey& function) const
{
    if (auto ok = check_key(function); !ok) return std::unexpected(ok.error());
    std::vector<EntryUse> uses;
    std::optional<Error> failed;
    for (const Level& level : m_levels) {
        if (level.tier->is_remote()) continue; // a remote does not know its last uses
        const auto entries = level.tier->get_entries(function, k_stamp_alone);
        if (!entries) {
            if (!failed) failed = entries.error();
            continue;
        }
        for (const auto& [key, found] : *entries)
            if (std::ranges::find(uses, key.guards_digest, &EntryUse::guards_digest) == uses.end())
                uses.push_back({key.guards_digest, found ? found->stamp.used : decltype(Stamp::used){}});
    }
    if (failed && uses.empty()) return std::unexpected(std::move(*failed));
    std::ranges::stable_sort(uses, std::ranges::greater{}, &EntryUse::last_used);
    return uses;
}

Result<Header> Store::header(const EntryKey& key) const
{
    if (auto ok = check_key(key.function); !ok) return std::unexpected(ok.error());
    return ask_all<Header>([&](const Level& level) -> Result<Header> {
        auto found = known_header(*level.tier, key, level.caps, *level.memo);
        if (!found) return std::unexpected(found.error());
        if (!*found) return nullptr;
        if (level.tier->is_remote() && !accepted(*level.tier, key, **found)) return nullptr;
        return named(key, std::move(**found));
    });
}

Result<std::optional<Entry>> Store::entry(const EntryKey& key, ReadPurpose reading, Stamp* stamp)
{
    if (auto ok = check_key(key.function); !ok) return std::unexpected(ok.error());
    return ask_all<std::optional<Entry>>(
        [&](const Level& level) { return entry_in(level, key, reading, level.layer ? nullptr : stamp); });
}

Result<std::optional<Entry>> Store::entry_in(const Level& level, const EntryKey& key, ReadPurpose reading,
                                             Stamp* stamp) const
{
    Bytes raw;
    auto found = read_entry(*level.tier, key, level.caps, LookupBy::by_key, &raw);
    if (!found) return std::unexpected(found.error());
    if (!*found) return std::nullopt;
    if (level.tier->is_remote()) {
        if (!accepted(*level.tier, key, **found)) return std::nullopt;
        note_worth(*(*found)->content);
        log().info("loaded {} from {} ({})", to_text(key), level.tier->remote_label(), size_text(raw.size()));
        keep(key, std::move(raw));
    }
    if (!(*found)->content) {
        refuse(*level.tier, key, **found);
        if (m_events.refused) m_events.refused(key, (*found)->stamp, (*found)->content.error());
    } else {
        if (stamp != nullptr) *stamp = (*found)->stamp;
        level.memo->keep((*found)->stamp, std::make_shared<const EntryHeader>((*found)->content->header));
        if (reading == ReadPurpose::use) note_use_in(*level.tier, key);
    }
    return named(key, std::move(**found));
}

bool Store::is_still(const EntryKey& key, const Stamp& stamp) noexcept
try {
    if (!check_key(key.function)) return false;
    const auto found = tier().get(key, {0, false});
    // Tiers without versions leave the stamp's version 0.
    return found && *found && stamp.version != 0 && (*found)->bytes && (*found)->stamp == stamp;
} catch (const std::exception&) { // out of memory
    return false;
}

void Store::note_use(const EntryKey& key) noexcept
try {
    if (check_key(key.function)) note_use_in(tier(), key);
} catch (const std::exception& error) {
    log().debug("the time of the last use is not stored: {}", error.what());
}

Result<void> Store::publish(const Entry& entry)
{
    const EntryKey& key = entry.header.key;
    if (auto ok = check_key(key.function); !ok) return ok;
    const std::string doing = fmt::format("publish {}", key.function.function);
    const Caps& caps = m_levels.front().caps;
    const Packing& packing = caps.packings.payloads;
    const auto bytes = cachefmt::encode(entry, {.compress_above = packing.level == 0 ? UINT64_MAX : packing.above,
                                                .zstd_level = packing.level,
                                                .sign_with = caps.trust.sign_with.get()});
    if (!bytes) return within(doing, bytes.error());
    if (auto done = tier().put(key, *bytes); !done) return within(doing, done.error());
    if (m_events.published) m_events.published(key);
    return {};
}

Result<void> Store::remove(const EntryKey& key)
{
    if (auto ok = check_key(key.function); !ok) return ok;
    for (const Level& level : m_levels)
        if (level.layer) level.tier->refuse(key, {}, {ErrorCode::stale, "this process removed it"});
    return tier().remove(key);
}

void Store::set_aside(const EntryHeader& header, const Error& reason) noexcept
try {
    if (!check_key(header.key.function)) return;
    for (const Level& level : m_levels) {
        const auto found = read_header(*level.tier, header.key, level.caps, LookupBy::by_key);
        if (!found || !*found || !(*found)->content || *(*found)->content != header) continue;
        level.tier->refuse(header.key, (*found)->stamp, reason);
        if (m_events.refused) m_events.refused(header.key, (*found)->stamp, reason);
    }
    if (m_events.set_aside) m_events.set_aside(header.key);
} catch (const std::exception& error) {
    log().debug("cannot move it to quarantine: {}", error.what());
}

Result<std::optional<Bytes>> Store::image(const Digest& digest, std::uint64_t size)
{
    return ask_all<std::optional<Bytes>>([&](const Level& level) { return image_in(level, digest, size); });
}

void Store::note_worth(const Entry& entry) const
{
    constexpr std::size_t k_most = 4096;
    const std::chrono::milliseconds saved = worth_of(entry.header);
    const std::scoped_lock lock{m_worth_mutex};
    if (m_worth.size() > k_most) m_worth.clear();
    for (const cachefmt::ImageRef& image : entry.graph.images) m_worth[image.digest] = saved;
}

Result<std::optional<Bytes>> Store::image_in(const Level& level, const Digest& digest, std::uint64_t size) const
{
    Tier& tier = *level.tier;
    const std::uint64_t most = level.caps.image_bytes;
    Bytes raw;
    std::chrono::milliseconds within{};
    if (tier.is_remote()) {
        const std::scoped_lock lock{m_worth_mutex};
        const auto worth = m_worth.find(digest);
        if (worth != m_worth.end()) within = worth->second;
    }
    auto found = read_image(tier, digest, std::min(most, size), tier.is_remote() ? &raw : nullptr, within);
    if (!found) return std::unexpected(found.error());
    if (!*found) return std::nullopt;
    if ((*found)->content) {
        if (tier.is_remote()) keep(ImageName{digest}, std::move(raw));
        return std::move(*(*found)->content);
    }
    if (size < most && !tier.is_remote()) {
        // If the image is intact but larger than the entry says, only the entry is wrong, and other entries need the
        // image.
        const auto whole = read_image(tier, digest, most);
        if (whole && *whole && (*whole)->content) return std::nullopt;
    }
    refuse(tier, ImageName{digest}, **found);
    return std::nullopt;
}

Result<std::optional<Bytes>> Store::object(const Name& name)
{
    Result<std::optional<Bytes>> bytes = std::nullopt;
    for (const Level& level : m_levels)
        if (!bytes || !*bytes) bytes = object_in(*level.tier, name, level.caps);
    return bytes;
}

Result<Bytes> Store::image_of_entry(const cachefmt::ImageRef& needed)
{
    auto bytes = image(needed.digest, needed.size);
    if (!bytes) return std::unexpected(bytes.error());
    if (!*bytes)
        return fail(ErrorCode::not_found, "image {} ({}) is missing or damaged", short_hex(needed.digest),
                    needed.label);
    if ((**bytes).size() != needed.size)
        return fail(ErrorCode::corrupt, "image {} ({}) has {} bytes, the entry says {}", short_hex(needed.digest),
                    needed.label, (**bytes).size(), needed.size);
    return std::move(**bytes);
}

Result<bool> Store::publish_image(ByteView blob, ArtifactKind kind)
{
    const Caps& caps = m_levels.front().caps;
    if (blob.size() > caps.image_bytes) {
        return fail(ErrorCode::unsupported,
                    "image has {} bytes, at most {} are cached: split the program into smaller modules", blob.size(),
                    caps.image_bytes);
    }
    const ImageName name{sha256(blob)};
    // A damaged image must be replaced, so it is read. If it cannot be read, try to write it.
    if (auto present = read_image(tier(), name.digest, caps.image_bytes); present && *present) {
        if (!(*present)->content) {
            refuse(tier(), name, **present);
        } else if (tier().note_use(name)) { // if this fails, the image was just removed as unused
            return false;
        }
    }
    const auto& packings = caps.packings;
    const auto packed = pack(blob, kind == ArtifactKind::images ? packings.images : packings.constants);
    if (auto done = tier().put(name, packed && !packed->empty() ? ByteView{*packed} : blob); !done)
        return within(fmt::format("publish image {}", short_hex(name.digest)), done.error());
    return true;
}

} // namespace warmgraph::store
