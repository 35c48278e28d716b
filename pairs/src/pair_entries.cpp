#include "warmgraph/pairs/pair_entries.hpp"

#include <algorithm>

namespace warmgraph {

using cachefmt::Entry;
using cachefmt::EntryHeader;
using cachefmt::Part;

namespace {

bool is_part(const store::Variant& variant, const cachefmt::RecordingPart& wanted)
{
    return variant.header && variant.header->recording == wanted;
}

} // namespace

bool PairEntries::is_usable(const EntryHeader& header, Part part, std::span<const store::Variant> beside)
{
    if (!header.recording || header.recording->part != part) return false;
    if (part == Part::backward || header.kind == cachefmt::EntryKind::tombstone) return true;
    return std::ranges::any_of(beside, [&](const store::Variant& variant) {
        return is_part(variant, {header.recording->id, Part::backward});
    });
}

void PairEntries::keep(const Entry& forward)
{
    auto kept = std::make_shared<const Entry>(forward);
    const std::scoped_lock lock{m_mutex};
    std::erase_if(m_kept, [&](const ForwardEntry& known) { return known->header.key == forward.header.key; });
    m_kept.push_back(std::move(kept));
    if (m_kept.size() > m_most) m_kept.erase(m_kept.begin());
}

PairEntries::ForwardEntry PairEntries::kept(const cachefmt::RecordingId& id) const
{
    const std::scoped_lock lock{m_mutex};
    const auto found =
        std::ranges::find_if(m_kept, [&](const ForwardEntry& one) { return one->header.recording->id == id; });
    return found == m_kept.end() ? nullptr : *found;
}

Result<bool> PairEntries::is_stored(const EntryHeader& backward) const
{
    const auto variants = m_store->variants(backward.key.function);
    if (!variants) return std::unexpected(variants.error());
    return std::ranges::any_of(*variants, [&](const store::Variant& variant) {
        return is_part(variant, {backward.recording->id, Part::forward});
    });
}

Result<bool> PairEntries::publish(const Entry& entry)
{
    const auto& [id, part] = *entry.header.recording;
    if (part == Part::forward) {
        keep(entry);
        return false;
    }
    const ForwardEntry forward = kept(id);
    const auto stored = forward ? Result<bool>{true} : is_stored(entry.header);
    if (!stored) return std::unexpected(stored.error());
    if (!*stored) return fail(ErrorCode::not_found, "the forward that it belongs to is not stored any more");
    if (auto published = m_store->publish(entry); !published) return std::unexpected(published.error());
    if (!forward) return true;
    if (auto published = m_store->publish(*forward); !published) return std::unexpected(published.error());
    m_touched.note(forward->header.key);
    const std::scoped_lock lock{m_mutex};
    std::erase(m_kept, forward);
    return true;
}

Result<void> PairEntries::publish_tombstone(const Entry& tombstone)
{
    const auto variants = m_store->variants(tombstone.header.key.function);
    if (!variants) return std::unexpected(variants.error());
    for (const store::Variant& variant : *variants) {
        if (!variant.header || !variant.header->recording || variant.header->key == tombstone.header.key ||
            variant.header->recording->id != tombstone.header.recording->id)
            continue;
        Entry other{*variant.header, {}};
        other.header.kind = tombstone.header.kind;
        other.header.info = tombstone.header.info;
        if (auto published = m_store->publish(other); !published) return published;
    }
    return m_store->publish(tombstone);
}

} // namespace warmgraph
