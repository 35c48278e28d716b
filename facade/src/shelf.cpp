#include "shelf.hpp"

#include <algorithm>

namespace warmgraph {

using cachefmt::Entry;
using cachefmt::EntryHeader;
using cachefmt::EntryKey;
using cachefmt::Half;

// --- a file each

Result<store::Header> Shelf::header(const EntryKey& key) { return store().header(key); }

Result<std::vector<store::Variant>> Shelf::variants(const cachefmt::FunctionKey& function)
{
    return store().variants(function);
}

Result<std::optional<Entry>> Shelf::entry(const EntryKey& key, store::Reading reading)
{
    return store().entry(key, reading);
}

Result<Shelf::Published> Shelf::publish(const Entry& entry)
{
    if (auto published = store().publish(entry); !published) return std::unexpected(published.error());
    return Published::stored;
}

Result<void> Shelf::remove(const EntryKey& key) { return store().remove(key); }
void Shelf::set_aside(const EntryHeader& header, const Error& reason) { store().set_aside(header, reason); }

Result<std::unique_ptr<store::LoadMark>> Shelf::begin_load(const EntryKey& key, const store::LoadTarget& target)
{
    return store().begin_load(key, target);
}

void Shelf::note_use(const EntryKey& key) { store().note_use(key); }
void Shelf::note_touched(const EntryKey& key) { m_cache.note_touched(key); }

// --- forward halves in this process

void ForwardStock::put(const Entry& forward)
{
    const std::scoped_lock lock{m_mutex};
    std::erase_if(m_entries, [&](const Entry& known) { return known.header.key == forward.header.key; });
    m_entries.push_back(forward);
    if (m_entries.size() > m_most) m_entries.erase(m_entries.begin());
}

std::optional<Entry> ForwardStock::find(const Digest& guards_digest) const
{
    const std::scoped_lock lock{m_mutex};
    const auto found = std::ranges::find_if(
        m_entries, [&](const Entry& entry) { return entry.header.key.guards_digest == guards_digest; });
    return found == m_entries.end() ? std::nullopt : std::optional{*found};
}

// --- half of a file

Result<std::vector<EntryHeader>> HalfShelf::files(const EntryKey& key)
{
    auto all = store().variants(key.function);
    if (!all) return std::unexpected(all.error());
    std::ranges::stable_sort(*all, std::ranges::greater{}, &store::Variant::last_used);
    std::vector<EntryHeader> result;
    for (store::Variant& variant : *all) {
        if (!variant.header) continue;
        const auto half = cachefmt::half_header(*variant.header, m_half);
        if (half && half->key.guards_digest == key.guards_digest) result.push_back(*variant.header);
    }
    return result;
}

std::optional<EntryKey> HalfShelf::file(const EntryKey& key)
{
    const auto found = files(key);
    return found && !found->empty() ? std::optional{found->front().key} : std::nullopt;
}

Result<store::Header> HalfShelf::header(const EntryKey& key)
{
    const auto found = files(key);
    if (!found) return std::unexpected(found.error());
    if (found->empty()) return nullptr;
    auto half = cachefmt::half_header(found->front(), m_half);
    return half ? std::make_shared<const EntryHeader>(std::move(*half)) : nullptr;
}

Result<std::vector<store::Variant>> HalfShelf::variants(const cachefmt::FunctionKey& function)
{
    auto all = store().variants(function);
    if (!all) return all;
    std::vector<store::Variant> result;
    for (store::Variant& variant : *all) {
        if (!variant.header) {
            result.push_back(std::move(variant));
            continue;
        }
        auto half = cachefmt::half_header(*variant.header, m_half);
        if (!half) continue; // a plain function's, of a time when the name was one
        variant.guards_digest = half->key.guards_digest;
        variant.header = std::move(*half);
        result.push_back(std::move(variant));
    }
    return result;
}

Result<std::optional<Entry>> HalfShelf::entry(const EntryKey& key, store::Reading reading)
{
    const auto found = files(key);
    if (!found) return std::unexpected(found.error());
    std::optional<Error> failure;
    for (const EntryHeader& header : *found) {
        auto pair = store().entry(header.key, reading);
        if (pair && !*pair) continue;
        auto half = pair ? cachefmt::half_of(**pair, m_half) : Result<Entry>{std::unexpected(pair.error())};
        if (pair && !half && reading == store::Reading::use) store().set_aside(header, half.error());
        if (!half) {
            failure = half.error();
            continue;
        }
        if (m_half == Half::forward && reading == store::Reading::use) m_stock->put(*half);
        return std::optional{std::move(*half)};
    }
    if (failure) return std::unexpected(*failure);
    return std::nullopt;
}

/// What `recompiled` says of one half is true of every pair that it is in.
Result<Shelf::Published> HalfShelf::publish_tombstone(const Entry& half)
{
    const auto found = files(half.header.key);
    if (!found) return std::unexpected(found.error());
    for (const EntryHeader& header : *found) {
        Entry tombstone{header, {}};
        tombstone.header.kind = cachefmt::EntryKind::tombstone;
        tombstone.header.info = half.header.info;
        if (auto published = store().publish(tombstone); !published) return std::unexpected(published.error());
    }
    return Published::stored;
}

Result<Shelf::Published> HalfShelf::publish(const Entry& entry)
{
    if (entry.header.kind == cachefmt::EntryKind::tombstone) return publish_tombstone(entry);
    if (m_half == Half::forward) {
        m_stock->put(entry);
        return Published::kept;
    }
    const auto& facts = entry.header.guards.facts;
    const auto of = std::ranges::find(facts, cachefmt::k_forward_fact, &cachefmt::Fact::name);
    const auto digest = of == facts.end() ? std::nullopt : digest_from_hex(of->value);
    const auto forward = digest ? m_stock->find(*digest) : std::nullopt;
    if (!forward) return fail(ErrorCode::not_found, "the forward that it belongs to is not known in this process");
    const auto joined = cachefmt::join(*forward, entry, m_saved);
    if (!joined) return std::unexpected(joined.error());
    if (auto published = store().publish(*joined); !published) return std::unexpected(published.error());
    cache().note_touched(joined->header.key);
    return Published::stored;
}

Result<void> HalfShelf::remove(const EntryKey& key)
{
    const auto found = files(key);
    if (!found) return std::unexpected(found.error());
    for (const EntryHeader& header : *found)
        if (auto removed = store().remove(header.key); !removed) return removed;
    return {};
}

void HalfShelf::set_aside(const EntryHeader& header, const Error& reason)
{
    const auto found = files(header.key);
    if (!found) return;
    for (const EntryHeader& pair : *found) store().set_aside(pair, reason);
}

Result<std::unique_ptr<store::LoadMark>> HalfShelf::begin_load(const EntryKey& key, const store::LoadTarget& target)
{
    const auto pair = file(key);
    if (!pair) return nullptr;
    return store().begin_load(*pair, target);
}

void HalfShelf::note_use(const EntryKey& key)
{
    if (const auto pair = file(key)) store().note_use(*pair);
}

void HalfShelf::note_touched(const EntryKey& key)
{
    if (const auto pair = file(key)) cache().note_touched(*pair);
}

Digest HalfShelf::name_on_disk(const EntryKey& key)
{
    const auto pair = file(key);
    return pair ? pair->guards_digest : key.guards_digest;
}

} // namespace warmgraph
