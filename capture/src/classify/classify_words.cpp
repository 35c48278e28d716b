#include "classify/classify_words.hpp"

#include <algorithm>
#include <array>

#include "classify/structural_difference.hpp"
#include "classify/words.hpp"
#include "warmgraph/backends/device.hpp"
#include "warmgraph/backends/node_places.hpp"

namespace warmgraph {

using cachefmt::Slot;
using cachefmt::SlotKind;

namespace {

/// The possible alignments of a pointer, most likely first.
constexpr std::array<bool (*)(std::size_t) noexcept, 3> k_tiers{
    [](std::size_t offset) noexcept { return offset % 8 == 0; },
    [](std::size_t offset) noexcept { return offset % 8 == 4; },
    [](std::size_t offset) noexcept { return offset % 4 != 0; },
};

/// Whether the address is inside the region, given how the pointer is used.
bool holds(const MappedRegion& region, std::uint64_t flat, Pointee pointee) noexcept
{
    return pointee == Pointee::bytes ? region.contains_strictly(flat) : region.contains(flat);
}

std::vector<MemoryRef> sorted(std::vector<MemoryRef> blocks)
{
    std::ranges::sort(blocks, {}, [](const MemoryRef& block) { return block.address.flat(); });
    return blocks;
}

} // namespace

std::string WordPlace::subject() const { return describe_node(graph, node); }

std::string WordPlace::name() const
{
    using backends::NodePlaceKind;
    const auto* const kernel = std::get_if<backends::RawKernel>(&graph.nodes[node].work);
    switch (place.kind) {
    case NodePlaceKind::parameter:
        return kernel != nullptr && kernel->packed ? "parameter buffer" : fmt::format("parameter {}", place.index);
    case NodePlaceKind::attribute:
        return fmt::format("attribute {}", kernel != nullptr ? kernel->attributes[place.index].id : place.index);
    case NodePlaceKind::source: return "its source";
    case NodePlaceKind::destination: return "its destination";
    case NodePlaceKind::operation: return fmt::format("operation {}", place.index);
    case NodePlaceKind::operation_value: return fmt::format("value of operation {}", place.index);
    case NodePlaceKind::semaphore: return fmt::format("value of semaphore {}", place.index);
    }
    return {};
}

std::string WordPlace::at(std::size_t offset) const
{
    const bool is_single =
        place.kind == backends::NodePlaceKind::source || place.kind == backends::NodePlaceKind::destination;
    return is_single ? name() : fmt::format("{} byte {}", name(), offset);
}

FlatWords::FlatWords(const Interface& interface, const Captures& captures)
    : m_captures(captures), m_regions(map_regions(interface, captures))
{
    for (const MappedRegion& region : m_regions) {
        // Constants do not move, so movement does not identify pointers into constants.
        if (region.origin == MappedRegion::Origin::constant) continue;
        m_reach += region.first.size;
        m_deltas.insert(region.delta());
    }
    m_first_free = sorted(captures.first.free_blocks);
    if (captures.moved) m_moved_free = sorted(captures.moved->free_blocks);
    if (!captures.foreign) return;
    m_foreign = *captures.foreign;
    m_foreign.live = sorted(std::move(m_foreign.live));
    std::ranges::sort(m_foreign.host_words);
}

/// Whether the address is near enough to the region to be a pointer that is made from it. Such a pointer may point
/// outside the region (a base from which indices are subtracted). A word that is farther away than the size of all
/// memory of the call is more likely a coincidence.
bool FlatWords::is_near(const MappedRegion& region, std::uint64_t flat) const noexcept
{
    const std::uint64_t start = region.first.address.flat(), end = start + region.first.size;
    return flat < start ? start - flat <= m_reach : flat - end <= m_reach;
}

Slot FlatWords::slot(std::uint32_t region, std::size_t offset, std::uint64_t value) const
{
    return {SlotKind::region, region, static_cast<std::uint32_t>(offset), k_word,
            static_cast<std::int64_t>(value - m_regions[region].first.address.flat())};
}

/// Returns the regions that moved exactly as far as the word. The word's address decides only among these regions: a
/// pointer follows the region that it was made from, even when it points into another region.
FlatWords::Candidates FlatWords::movers(const WordPlace& place, const Word& word, Reach reach) const
{
    Candidates inside, outside;
    const std::uint64_t delta = word.moved - word.first;
    for (std::uint32_t i = 0; i < m_regions.size(); ++i) {
        const MappedRegion& region = m_regions[i];
        if (region.delta() != delta || delta == 0) continue;
        if (holds(region, word.first, place.pointee))
            inside.push_back(i);
        else if (m_captures.foreign || is_near(region, word.first))
            outside.push_back(i); // only if the captures come from two processes; see beside()
    }
    if (reach == Reach::inside) return inside;
    const bool plausible = may_be_pointer(word.first) && may_be_pointer(word.moved);
    return inside.empty() && plausible ? outside : Candidates{};
}

/// Returns the region that the word follows, if several regions can explain the word.
Result<FlatWords::Choice> FlatWords::choose(const WordPlace& place, std::size_t offset, std::uint64_t value,
                                            Candidates candidates)
{
    using Origin = MappedRegion::Origin;
    const auto strictly = [&](std::uint32_t i) { return m_regions[i].contains_strictly(value); };
    const auto in_declared = [&](std::uint32_t i) { return m_regions[i].origin == Origin::declared && strictly(i); };
    // A declared region inside a pool is not part of the pool.
    if (std::ranges::any_of(candidates, in_declared))
        std::erase_if(candidates,
                      [&](std::uint32_t i) { return m_regions[i].origin == Origin::scratch && strictly(i); });
    if (candidates.size() == 1) return Choice{slot(candidates[0], offset, value)};
    const auto is_of_one_group = [&](std::uint32_t i) {
        const auto& groups = m_captures.groups;
        return i < groups.size() && candidates[0] < groups.size() && groups[i] == groups[candidates[0]];
    };
    if (std::ranges::all_of(candidates, is_of_one_group)) { // the node's work may run past the end of the other regions
        const auto end = [this](std::uint32_t i) {
            return m_regions[i].first.address.flat() + m_regions[i].first.size;
        };
        return Choice{slot(*std::ranges::max_element(candidates, {}, end), offset, value)};
    }
    // The word is the end of one region or the start of the next one; without proof the start is far more likely.
    Candidates starts;
    std::ranges::copy_if(candidates, std::back_inserter(starts), strictly);
    if (m_captures.proof == Proof::allow_unproven && starts.size() == 1)
        return Choice{slot(starts[0], offset, value), false};
    if (m_captures.moved && starts.size() == 1 && is_start_of(starts[0], candidates, place.node))
        return Choice{slot(starts[0], offset, value)};
    auto why = fmt::format("{} takes at {} the address {:#x}, which may belong to '{}' or to '{}': place the two apart "
                           "from each other, or give a second capture in which they moved by different distances",
                           place.subject(), place.at(offset), value, m_regions[candidates[0]].name,
                           m_regions[candidates[1]].name);
    if (m_captures.foreign && starts.size() == 1 && note_neighbours(starts[0], candidates, why))
        return Choice{slot(starts[0], offset, value)};
    return std::unexpected(Error{ErrorCode::not_recordable, std::move(why)});
}

/// An allocator puts small tensors side by side in every process, so captures cannot distinguish the end of one tensor
/// from the start of the next one.
bool FlatWords::note_neighbours(std::uint32_t start, std::span<const std::uint32_t> candidates, const std::string& why)
{
    const auto is_declared = [this](std::uint32_t i) { return m_regions[i].origin == MappedRegion::Origin::declared; };
    if (!std::ranges::all_of(candidates, is_declared)) return false;
    for (const std::uint32_t before : candidates) {
        const auto is_known = [&](const Neighbours& known) { return known.before == before && known.after == start; };
        if (before != start && std::ranges::none_of(m_neighbours, is_known))
            m_neighbours.push_back({before, start, why});
    }
    return true;
}

/// Whether an address is the start of `region` and not the end of the region before it, which moved by the same
/// distance. A node that gets the end of a region also gets another address in that region.
bool FlatWords::is_start_of(std::uint32_t region, std::span<const std::uint32_t> candidates, std::size_t node) const
{
    return std::ranges::none_of(candidates, [&](std::uint32_t i) { return i != region && uses(node, i); });
}

/// Whether a node has a word that can only be an address in the region. A word that is also the end of another region,
/// which moved by the same distance, does not count.
bool FlatWords::uses(std::size_t node, std::uint32_t region) const
{
    const MappedRegion& mine = m_regions[region];
    const auto is_mine = [&](std::uint64_t was, std::uint64_t is) {
        if (is - was != mine.delta() || !mine.contains_strictly(was)) return false;
        return std::ranges::none_of(m_regions, [&](const MappedRegion& other) {
            return &other != &mine && other.delta() == mine.delta() && other.contains(was);
        });
    };
    const auto holds_mine = [&](ByteView first, ByteView moved) {
        for (std::size_t at = 0; at + k_word <= std::min(first.size(), moved.size()); at += sizeof(std::uint32_t))
            if (is_mine(load<std::uint64_t>(first, at), load<std::uint64_t>(moved, at))) return true;
        return false;
    };
    const auto& moved = m_captures.moved->graph.nodes[node].work;
    bool found = false;
    backends::for_each_place(m_captures.first.graph.nodes[node].work,
                             [&](const backends::NodePlace& place, const auto& first) {
                                 const auto then = backends::content_at(moved, place);
                                 if (first.address != nullptr)
                                     found = found || is_mine(first.address->flat(), then.address->flat());
                                 if (first.bytes != nullptr) found = found || holds_mine(*first.bytes, *then.bytes);
                             });
    return found;
}

/// Finds the pointer that contains the differing byte.
Result<std::optional<FlatWords::Window>> FlatWords::window(const WordPlace& place, ByteView first, ByteView moved,
                                                           std::size_t byte, std::span<const Slot> taken) const
{
    const std::size_t from = byte >= k_word - 1 ? byte - (k_word - 1) : 0;
    for (const Reach reach : {Reach::inside, Reach::outside}) {
        for (const auto is_of_tier : k_tiers) {
            std::vector<Window> windows;
            for (std::size_t at = from; at <= byte && at + k_word <= first.size(); ++at) {
                if (!is_of_tier(at) || overlaps(taken, at)) continue;
                auto candidates =
                    movers(place, {load<std::uint64_t>(first, at), load<std::uint64_t>(moved, at)}, reach);
                if (!candidates.empty()) windows.push_back({at, std::move(candidates)});
            }
            if (!windows.empty() && m_captures.foreign && reach == Reach::outside)
                return beside(place, first, windows[0]);
            if (windows.size() == 1) return std::optional{std::move(windows[0])};
            if (windows.size() > 1)
                return fail(ErrorCode::not_recordable,
                            "{} takes a pointer at {} or at byte {}, but it is unclear at which of the two: align the "
                            "pointer to 4 bytes",
                            place.subject(), place.at(windows[0].offset), windows[1].offset);
        }
    }
    return std::nullopt;
}

std::string FlatWords::describe_address(std::uint64_t value) const
{
    const auto found = std::ranges::find_if(m_regions, [value](const auto& region) { return region.contains(value); });
    if (found == m_regions.end()) return "in no declared region";
    return fmt::format("{} bytes into '{}'", value - found->first.address.flat(), found->name);
}

std::unexpected<Error> FlatWords::unexplained(const WordPlace& place, ByteView first, ByteView moved, std::size_t byte,
                                              std::string_view suspicion) const
{
    const std::size_t at = byte / k_word * k_word, width = std::min(k_word, first.size() - at);
    std::uint64_t was = 0, is = 0;
    std::memcpy(&was, first.data() + at, width);
    std::memcpy(&is, moved.data() + at, width);
    return fail(ErrorCode::not_recordable,
                "{}, {}: {:#x} ({}) and then {:#x} follows no region{}. It is probably a pointer to undeclared memory: "
                "{}. A value computed from an address cannot be recorded: pass the address",
                place.subject(), place.at(at), was, describe_address(was), is, suspicion, k_declare);
}

/// From one process to another, all memory of an allocator may move by one distance. The distance that a region moved
/// then proves nothing about words outside the region.
std::unexpected<Error> FlatWords::beside(const WordPlace& place, ByteView first, const Window& pointer) const
{
    return fail(
        ErrorCode::not_recordable,
        "{} takes at {} the address {:#x}, which lies in no declared region and moved by the same distance as '{}' "
        "from one process to the other, as all memory near that region may do: {}, or capture it twice in one process",
        place.subject(), place.at(pointer.offset), load<std::uint64_t>(first, pointer.offset),
        m_regions[pointer.candidates[0]].name, k_declare);
}

/// In one process each region moves, so a word that stays does not follow a region. Between processes a region may stay
/// at its address. A pointer that is made from that region and points outside it then stays too.
Result<void> FlatWords::check_unmoved(const WordPlace& place, std::size_t offset, std::uint64_t value) const
{
    if (!m_captures.foreign) return {};
    for (const MappedRegion& region : m_regions)
        if (region.origin != MappedRegion::Origin::constant && region.delta() == 0 && is_near(region, value))
            return fail(ErrorCode::not_recordable,
                        "{} takes at {} the value {:#x}, which lies near the region '{}', and that region had the same "
                        "address in both processes: capture with the region at another address",
                        place.subject(), place.at(offset), value, region.name);
    return {};
}

/// Handles a word that is equal in both captures, or for which there is only one capture.
Result<std::optional<Slot>> FlatWords::unmoved_slot(const WordPlace& place, std::size_t offset, std::uint64_t value)
{
    Candidates candidates;
    const MappedRegion* moved_away = nullptr;
    for (std::uint32_t i = 0; i < m_regions.size(); ++i) {
        if (m_regions[i].origin == MappedRegion::Origin::constant) {
            // The memory at this address is a constant, which has another address in every process. If the word is only
            // a number that looks like an address, verification fails, because the restored graph has the constant at
            // another address.
            if (m_regions[i].contains_strictly(value)) return slot(i, offset, value);
            continue;
        }
        if (!holds(m_regions[i], value, place.pointee)) continue;
        if (m_regions[i].delta() == 0)
            candidates.push_back(i);
        else
            moved_away = &m_regions[i];
    }
    const std::size_t upper = offset + sizeof(std::uint32_t);
    if (candidates.empty() && moved_away != nullptr) {
        auto refused =
            fail(ErrorCode::not_recordable,
                 "{} takes at {} the value {:#x}, which lies in region '{}' and stays the same when that region "
                 "moves: it is either an address that was kept from an earlier call (ask Recorder::address each "
                 "time), or an integer that looks like an address (record again: the addresses differ)",
                 place.subject(), place.at(offset), value, moved_away->name);
        if (!can_be_tried(place) || static_cast<std::uint32_t>(value) >= k_small_number) return refused;
        if (!is_suspect(place, upper))
            m_suspects.push_back(
                {place.node, place.place.index, upper, value, refused.error().message, moved_away->first});
        return std::nullopt;
    }
    if (candidates.empty()) {
        if (auto checked = check_allocation(place, offset, value, upper); !checked)
            return std::unexpected(checked.error());
        if (auto checked = check_unmoved(place, offset, value); !checked) return std::unexpected(checked.error());
        return std::nullopt;
    }
    const auto& name = m_regions[candidates[0]].name;
    if (m_captures.proof == Proof::required && m_captures.moved)
        return fail(ErrorCode::not_recordable,
                    "{} takes at {} the value {:#x}, which lies in region '{}', but that region had the same address "
                    "in both captures, so nothing proves that the value is an address; capture with the region at "
                    "another address, or allow unproven addresses",
                    place.subject(), place.at(offset), value, name);
    if (m_captures.proof == Proof::required)
        return fail(
            ErrorCode::not_recordable,
            "{} takes at {} the value {:#x}, which lies in region '{}', and one capture does not prove that it is an "
            "address: give a second capture with every region at another address, or allow unproven addresses",
            place.subject(), place.at(offset), value, name);
    auto chosen = choose(place, offset, value, std::move(candidates));
    if (!chosen) return std::unexpected(chosen.error());
    ++m_unproven;
    return chosen->slot;
}

Result<void> FlatWords::moving(const WordPlace& place, ByteView first, ByteView moved, std::span<const Slot> scalars,
                               std::vector<Slot>& found, std::vector<std::size_t>* unused)
{
    for (std::size_t byte = 0; byte < first.size(); ++byte) {
        if (first[byte] == moved[byte]) continue;
        auto explained = window(place, first, moved, byte, found);
        if (!explained) return std::unexpected(explained.error());
        auto& pointer = *explained;
        if (!pointer) {
            if (unused == nullptr || m_captures.unused == UnusedWords::refused)
                return unexplained(place, first, moved, byte, "");
            if (auto checked = check_unused(place, first, moved, byte); !checked) return checked;
            unused->push_back(byte);
            continue;
        }
        if (overlaps(scalars, pointer->offset))
            return fail(ErrorCode::not_recordable,
                        "{} takes at {} an address that depends on a scalar: pass the offset to the kernel as an "
                        "integer",
                        place.subject(), place.at(pointer->offset));
        auto slot =
            choose(place, pointer->offset, load<std::uint64_t>(first, pointer->offset), std::move(pointer->candidates));
        if (!slot) return std::unexpected(slot.error());
        if (!slot->is_certain) ++m_unproven;
        found.push_back(slot->slot);
        byte = pointer->offset + k_word - 1;
    }
    return {};
}

Result<std::vector<Slot>> FlatWords::slots(const WordPlace& place, ByteView first, std::optional<ByteView> moved,
                                           std::span<const Slot> scalars, std::vector<std::size_t>* unused)
{
    std::vector<Slot> found;
    if (moved)
        if (auto explained = moving(place, first, *moved, scalars, found, unused); !explained)
            return std::unexpected(explained.error());
    // Offsets of bytes that differ between the captures; they are not part of a constant.
    std::span<const std::size_t> without;
    if (unused != nullptr && !unused->empty()) {
        if (auto checked = check_unused_halves(place, first, *moved, found, *unused); !checked)
            return std::unexpected(checked.error());
        without = *unused;
    }
    for (const std::size_t start : {std::size_t{0}, k_word / 2}) {
        for (std::size_t at = start; at + k_word <= first.size(); at += k_word) {
            const auto word = load<std::uint64_t>(first, at);
            if (!may_be_pointer(word) || overlaps(found, at) || overlaps(scalars, at)) continue;
            if (holds_any(without, at, k_word)) continue;
            auto slot = unmoved_slot(place, at, word);
            if (!slot) return std::unexpected(slot.error());
            if (*slot) found.push_back(**slot);
        }
    }
    if (auto checked = check_halves(place, first, found, without); !checked) return std::unexpected(checked.error());
    std::ranges::sort(found, {}, &Slot::offset);
    return found;
}

/// Handles are small integers, and device functions lie in no allocation, so a match is only a suspicion. The word is
/// refused anyway, because a new process has other handles. A word that is equal in all captures cannot follow a
/// scalar.
Result<void> FlatWords::check_handles(const WordPlace& place, ByteView value, std::span<const Slot> slots) const
{
    const backends::Module* const module = std::get<backends::RawKernel>(place.graph.nodes[place.node].work).module;
    for (std::size_t at = 0; at + k_word <= value.size(); at += k_word) {
        const auto word = load<std::uint64_t>(value, at);
        if (word == 0 || overlaps(slots, at)) continue;
        if (module != nullptr && module->may_be_function(word))
            return fail(ErrorCode::not_recordable,
                        "{} takes at {} the value {:#x}, which may be the address of a device function, and its module "
                        "calls functions by address. A new process has its functions at other addresses: choose the "
                        "function by a number in the kernel, or compile the kernel as a whole program (without -rdc). "
                        "If it is a number: declare it as a scalar",
                        place.subject(), place.at(at), word);
        if (!m_captures.is_handle || !m_captures.is_handle(word)) continue;
        return fail(ErrorCode::not_recordable,
                    "{} takes at {} the value {:#x}, which may be the handle of a texture or surface object, and a "
                    "handle has no meaning in another process: declare it as a u64 scalar and pass each process's own "
                    "handle (for an adopted graph: read plain memory). If it is another number: destroy unused texture "
                    "and surface objects before recording",
                    place.subject(), place.at(at), word);
    }
    return {};
}

Result<Slot> FlatWords::address(const WordPlace& place, const Address& first, const std::optional<Address>& moved)
{
    Bytes was, is;
    append(was, first.flat());
    append(is, moved ? moved->flat() : first.flat());
    auto found = slots(place, was, moved ? std::optional<ByteView>{is} : std::nullopt, {});
    if (!found) return std::unexpected(found.error());
    if (found->size() != 1)
        return fail(ErrorCode::not_recordable, "{} takes an address at {} that lies in no declared region ({:#x}): {}",
                    place.subject(), place.at(0), first.flat(), k_declare);
    const Slot& slot = found->front();
    const auto& region = m_regions[slot.target];
    if (!holds(region, first.flat(), place.pointee))
        return fail(ErrorCode::not_recordable,
                    "{} takes an address at {} that follows region '{}' and lies {} bytes "
                    "from its start, outside its {}: declare the region's whole size",
                    place.subject(), place.at(0), region.name, slot.addend, region.first.size);
    return slot;
}

} // namespace warmgraph
