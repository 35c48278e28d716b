#include "verify/trial_memory.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <set>

#include "model/alignment.hpp"
#include "warmgraph/backends/bulk_memory.hpp"
#include "warmgraph/backends/recording.hpp"
#include "warmgraph/capture/numbers.hpp"
#include "warmgraph/guards/call_guard.hpp"

namespace warmgraph {

namespace {

constexpr std::uint64_t k_fence = 1024;                     // bytes of canaries before and after the contents
constexpr std::uint64_t k_step = cachefmt::k_max_alignment; // bytes between placements; keeps every alignment class
constexpr std::uint64_t k_slack = 4 * k_step;               // the first placement may begin up to this many bytes later
constexpr std::byte k_canary{0xC5};
/// Read-only states are copied up to this many bytes, or up to a part of all read-only states. The copies of a model's
/// weights would take twice the memory of the weights.
constexpr std::uint64_t k_most_read_only = 64ULL << 20;
constexpr std::uint64_t k_part_of_read_only = 20;
constexpr std::size_t k_most_words = 1U << 16U; // most words that the driver is asked about; each takes about 0.3 us

using Step = backends::BulkStep;

Step copy_step(const Address& to, const Address& from, std::uint64_t size)
{
    return {Step::What::copy, {to, size}, from, {}};
}

Step canary_step(Step::What what, const MemoryRef& memory) { return {what, memory, {}, k_canary}; }

/// Runs steps that expect nothing.
Result<void> run_all(backends::BulkMemory& bulk, std::span<const Step> steps)
{
    auto done = bulk.run(steps);
    return done ? Result<void>{} : std::unexpected(done.error());
}

/// Returns the bytes of device memory that a copied group takes; the largest number if the sum would overflow.
std::uint64_t footprint(std::uint64_t size) noexcept
{
    constexpr std::uint64_t k_most = std::numeric_limits<std::uint64_t>::max();
    return size > k_most / 4 ? k_most : 2 * size + 2 * k_fence + k_slack;
}

} // namespace

TrialMemory::TrialMemory(std::shared_ptr<backends::Device> device, const Interface& interface, const Frame& frame)
    : m_device(std::move(device)),
      m_interface(interface),
      m_writable(frame.tensors.size()),
      m_regions(frame.memory),
      m_original(frame.memory)
{
    for (const auto& tensor : frame.tensors) m_types.push_back(tensor.dtype);
}

TrialMemory::~TrialMemory()
{
    if (m_is_abandoned) return;
    for (const Group& group : m_groups)
        for (const MemoryRef& memory : {group.snapshot, group.is_in_block ? MemoryRef{} : group.memory})
            if (!memory.address.is_null()) m_device->release(memory);
    for (const MemoryRef& block : m_blocks) m_device->release(block);
}

Result<std::unique_ptr<TrialMemory>> TrialMemory::create(std::shared_ptr<backends::Device> device,
                                                         const Interface& interface, const Frame& frame,
                                                         std::optional<std::uint64_t> most,
                                                         std::span<const Neighbours> apart)
{
    const std::uint64_t limit = most.value_or(device->free_memory() / 2);
    std::unique_ptr<TrialMemory> trial{new TrialMemory{std::move(device), interface, frame}};
    std::map<std::uint32_t, std::vector<std::size_t>> members;
    const auto group_of = guards::alias_groups(frame.tensors);
    for (std::size_t i = 0; i < group_of.size(); ++i) members[group_of[i]].push_back(i);
    std::vector<Group> groups;
    for (auto& [first, regions] : members) groups.push_back(trial->group_of(frame, std::move(regions)));
    if (auto added = trial->add_groups(std::move(groups), limit); !added) return std::unexpected(added.error());
    if (auto put = trial->put_apart(apart, limit); !put) return std::unexpected(put.error());
    return trial;
}

auto TrialMemory::group_of(const Frame& frame, std::vector<std::size_t> members) -> Group
{
    Group group;
    std::uint64_t low = std::numeric_limits<std::uint64_t>::max(), high = 0;
    for (const std::size_t i : members) {
        const std::uint64_t extent = guards::extent_bytes(frame.tensors[i]);
        low = std::min(low, frame.tensors[i].offset);
        high = std::max(high, frame.tensors[i].offset + extent);
        m_regions[i].size = m_original[i].size = extent;
    }
    group.original = {{frame.tensors[members.front()].base, low}, high - low};
    const bool is_read_only = std::ranges::all_of(
        members, [this](std::size_t i) { return m_interface.regions[i].kind == cachefmt::RegionKind::weights; });
    group.kind = is_read_only ? Kind::read_only : Kind::writable;
    group.on_host = m_device->space_of(group.original.address) == backends::MemorySpace::host;
    for (const std::size_t i : members) m_writable[i] = is_read_only ? 0 : 1;
    group.members = std::move(members);
    return group;
}

/// Adds first the groups that must be copied, then other groups, the smallest first, while they fit.
Result<void> TrialMemory::add_groups(std::vector<Group> groups, std::uint64_t most)
{
    std::ranges::stable_sort(
        groups, {}, [](const Group& group) { return std::pair{group.kind != Kind::writable, group.original.size}; });
    std::uint64_t taken = 0, read_only = 0;
    for (const Group& group : groups)
        if (group.kind == Kind::read_only) read_only += group.original.size;
    std::uint64_t left = std::max(k_most_read_only, read_only / k_part_of_read_only); // bytes for read-only states
    std::vector<Step> copies;
    std::vector<MemoryRef> in_place;
    for (Group& group : groups) {
        const std::uint64_t bytes = group.on_host ? 0 : footprint(group.original.size);
        const bool fits = bytes <= most && taken <= most - bytes && (group.kind == Kind::writable || bytes <= left);
        if (fits && group.kind == Kind::read_only) left -= bytes;
        if (!fits && group.kind == Kind::writable)
            return fail(
                ErrorCode::not_recordable,
                "two copies of '{}' and of the other memory that the function may write take {} bytes of device "
                "memory, expected at most {} (half of the free memory): free memory, or record with smaller states",
                name(group), taken + bytes, most);
        if (fits) {
            taken += bytes;
        } else {
            group.kind = Kind::in_place;
            in_place.push_back(group.original);
        }
        auto allocated = fits ? allocate_group(group) : Result<void>{};
        m_groups.push_back(std::move(group)); // added first, so that its memory is released even after an error
        if (!allocated) return allocated;
        if (const Group& added = m_groups.back(); fits && added.original.size != 0)
            copies.push_back(copy_step(added.snapshot.address, added.original.address, added.original.size));
    }
    if (auto copied = run_all(m_device->bulk(), copies); !copied) return copied;
    auto before = m_device->bulk().fingerprints(in_place);
    if (!before) return std::unexpected(before.error());
    for (auto next = before->begin(); Group & group : m_groups)
        if (group.kind == Kind::in_place) group.before = *next++;
    return {};
}

Result<void> TrialMemory::allocate_group(Group& group)
{
    const std::uint64_t size = group.original.size;
    const auto allocate = [&](MemoryRef& memory, std::uint64_t bytes) -> Result<void> {
        auto made = group.on_host ? m_device->allocate_host(bytes) : m_device->allocate(bytes);
        if (!made) return within("allocate memory to verify the recording in", made.error());
        memory = {made->address, bytes};
        return {};
    };
    if (auto made = allocate(group.memory, 2 * k_fence + k_slack + size); !made) return made;
    return size == 0 ? Result<void>{} : allocate(group.snapshot, size);
}

namespace {

/// Returns regions that follow each other without a gap, each region once, in order of address.
std::vector<std::vector<std::size_t>> chains_of(std::span<const Neighbours> all)
{
    std::map<std::size_t, std::size_t> next;
    std::set<std::size_t> is_next;
    for (const Neighbours& one : all) {
        next[one.before] = one.after;
        is_next.insert(one.after);
    }
    std::vector<std::vector<std::size_t>> chains;
    for (const auto& [first, second] : next) {
        if (is_next.contains(first)) continue;
        auto& chain = chains.emplace_back(1, first);
        for (auto link = next.find(first); link != next.end() && chain.size() <= all.size();
             link = next.find(chain.back()))
            chain.push_back(link->second);
    }
    return chains;
}

} // namespace

Result<void> TrialMemory::put_apart(std::span<const Neighbours> all, std::uint64_t most)
{
    if (all.empty()) return {};
    std::uint64_t left = most;
    for (const Group& group : m_groups) left -= std::min(left, group.snapshot.size + group.memory.size);
    std::set<std::size_t> put;
    for (const auto& chain : chains_of(all)) {
        const auto of_chain = std::ranges::find(all, chain.front(), &Neighbours::before);
        if (auto done = put_chain_apart(chain, of_chain->why, left); !done) return done;
        put.insert(chain.begin(), chain.end());
    }
    // Refuses regions that are in no chain. They overlap or are empty: two of them begin or end at one address, or a
    // chain leads back to its start.
    for (const Neighbours& one : all)
        if (!put.contains(one.before) || !put.contains(one.after))
            return fail(ErrorCode::not_recordable, "{}", one.why);
    return {};
}

Result<void> TrialMemory::put_chain_apart(const std::vector<std::size_t>& chain, const std::string& why,
                                          std::uint64_t& left)
{
    std::vector<Group*> groups;
    std::vector<std::uint64_t> starts; // start of each group's memory in the block
    std::uint64_t at = 0;
    for (const std::size_t region : chain) {
        const auto is_its = [&](const Group& group) {
            return std::ranges::find(group.members, region) != group.members.end();
        };
        const auto group = std::ranges::find_if(m_groups, is_its);
        const std::uint64_t size = group->original.size;
        const std::uint64_t unit = region == chain.back() ? 2 * k_step : size; // no region follows the last region
        if (group->members.size() != 1 || group->is_in_block || group->kind == Kind::in_place || group->on_host ||
            unit % (2 * k_step) != 0 || size == 0)
            return fail(ErrorCode::not_recordable, "{}", why);
        groups.push_back(&*group);
        starts.push_back(at);
        const std::uint64_t needed = 2 * k_fence + k_slack + size;
        at += (needed + unit - 1) / unit * unit;
    }
    if (at > left) return fail(ErrorCode::not_recordable, "{}", why);
    left -= at;
    auto block = m_device->allocate(at);
    if (!block) return within("allocate memory to verify the recording in", block.error());
    m_blocks.push_back({block->address, at});
    starts.push_back(at);
    for (std::size_t i = 0; i < groups.size(); ++i) {
        m_device->release(groups[i]->memory);
        groups[i]->memory = {block->address + starts[i], starts[i + 1] - starts[i]};
        groups[i]->is_in_block = true;
    }
    return {};
}

const std::string& TrialMemory::name(const Group& group) const noexcept
{
    return m_interface.regions[group.members.front()].name;
}

bool TrialMemory::is_writable(std::size_t region) const noexcept { return m_writable[region] != 0; }

/// Changes outputs that share no byte with the memory that the function reads.
Result<void> TrialMemory::disturb_outputs(const Group& group, const Address& contents)
{
    const auto range = [&](std::size_t i) {
        const std::uint64_t from = m_original[i].address.offset - group.original.address.offset;
        return std::pair{from, from + m_original[i].size};
    };
    const auto is_output = [this](std::size_t i) {
        return m_interface.regions[i].kind == cachefmt::RegionKind::output;
    };
    for (const std::size_t i : group.members) {
        const auto [from, to] = range(i);
        const auto shares = [&](std::size_t other) { return range(other).first < to && from < range(other).second; };
        const bool is_read =
            std::ranges::any_of(group.members, [&](std::size_t other) { return !is_output(other) && shares(other); });
        // Two outputs may share memory, whose elements are changed only once.
        const bool is_done = std::ranges::any_of(
            group.members, [&](std::size_t other) { return other < i && is_output(other) && shares(other); });
        if (!is_output(i) || is_read || is_done) continue;
        if (auto done = m_device->bulk().disturb({contents + from, to - from}, m_types[i]); !done) return done;
    }
    return {};
}

Result<void> TrialMemory::reset(std::size_t placement, Outputs outputs)
{
    std::vector<Step> steps;
    for (Group& group : m_groups) {
        if (group.kind == Kind::in_place) continue;
        const std::uint64_t size = group.original.size;
        const std::uint64_t aligned =
            m_device->limits().flat_addresses ? to_strongest_class(group.memory.address.flat() + k_fence) : 0;
        group.start = k_fence + aligned + placement * k_step + group.original.address.offset % k_step;
        const std::uint64_t end = group.start + size;
        steps.push_back(canary_step(Step::What::fill, {group.memory.address, group.start}));
        if (size != 0) steps.push_back(copy_step(group.contents(), group.snapshot.address, size));
        steps.push_back(canary_step(Step::What::fill, {group.memory.address + end, group.memory.size - end}));
        for (const std::size_t i : group.members)
            m_regions[i].address = group.contents() + (m_original[i].address.offset - group.original.address.offset);
    }
    if (auto done = run_all(m_device->bulk(), steps); !done || outputs != Outputs::disturbed) return done;
    for (const Group& group : m_groups)
        if (group.kind != Kind::in_place)
            if (auto done = disturb_outputs(group, group.contents()); !done) return done;
    return {};
}

Result<void> TrialMemory::check_trial() const
{
    std::vector<Step> steps;
    std::vector<const Group*> groups; // of the steps
    const auto add = [&](const Group& group, Step step) {
        steps.push_back(std::move(step));
        groups.push_back(&group);
    };
    for (const Group& group : m_groups) {
        if (group.kind == Kind::in_place) continue;
        const std::uint64_t size = group.original.size, end = group.start + size;
        add(group, canary_step(Step::What::expect_filled, {group.memory.address, group.start}));
        add(group, canary_step(Step::What::expect_filled, {group.memory.address + end, group.memory.size - end}));
        if (group.kind == Kind::read_only)
            add(group, {Step::What::expect_same, {group.contents(), size}, group.snapshot.address, {}});
    }
    const auto found = m_device->bulk().run(steps);
    if (!found) return std::unexpected(found.error());
    if (!*found) return {};
    const Group& group = *groups[(*found)->step];
    if (steps[(*found)->step].what == Step::What::expect_same)
        return fail(ErrorCode::verification_failed,
                    "it writes '{}', which was declared read-only: declare it a read-write state", name(group));
    return fail(ErrorCode::verification_failed,
                "it writes outside '{}', which was declared with {} bytes: declare its real size", name(group),
                group.original.size);
}

Result<void> TrialMemory::check_host_regions() const
{
    for (const Group& group : m_groups) {
        if (!group.on_host || group.kind == Kind::in_place || group.original.size == 0) continue;
        auto differs = m_device->bulk().first_difference(group.contents(), group.snapshot.address, group.original.size);
        if (!differs) return std::unexpected(differs.error());
        if (*differs)
            return fail(ErrorCode::not_recordable,
                        "it writes region '{}' on the host (at byte {}), which a graph cannot do: write it with a "
                        "kernel or a copy",
                        name(group), **differs);
    }
    return {};
}

/// Returns a group of this kind whose memory has other contents than before; nullptr if there is none.
Result<const TrialMemory::Group*> TrialMemory::changed(Kind kind) const
{
    std::vector<const Group*> groups;
    std::vector<Step> steps;
    std::vector<MemoryRef> in_place;
    for (const Group& group : m_groups) {
        if (group.kind != kind || group.original.size == 0) continue;
        groups.push_back(&group);
        if (kind == Kind::in_place)
            in_place.push_back(group.original);
        else
            steps.push_back({Step::What::expect_same, group.original, group.snapshot.address, {}});
    }
    const auto now = m_device->bulk().fingerprints(in_place);
    if (!now) return std::unexpected(now.error());
    for (std::size_t i = 0; i < in_place.size(); ++i)
        if ((*now)[i] != groups[i]->before) return groups[i];
    const auto found = m_device->bulk().run(steps);
    if (!found) return std::unexpected(found.error());
    return *found ? groups[(*found)->step] : nullptr;
}

Result<void> TrialMemory::check_read_only() const
{
    for (const Group& group : m_groups)
        if (group.kind != Kind::writable && group.original.size != 0 && m_device->limits().flat_addresses &&
            !m_device->recording().allocation_at(group.original.address.flat()))
            return fail(ErrorCode::not_recordable,
                        "the memory of '{}' was freed after the call: keep read-only states until they are recorded",
                        name(group));
    for (const Kind kind : {Kind::read_only, Kind::in_place}) {
        const auto group = changed(kind);
        if (!group) return std::unexpected(group.error());
        if (*group != nullptr)
            return fail(ErrorCode::not_recordable,
                        "the contents of '{}' changed after the call began, but it was declared read-only: declare it "
                        "a read-write state, or do not change it until it is recorded",
                        name(**group));
    }
    return {};
}

Result<void> TrialMemory::check_in_place() const
{
    const auto group = changed(Kind::in_place);
    if (!group) return std::unexpected(group.error());
    if (*group == nullptr) return {};
    return fail(ErrorCode::verification_failed,
                "the contents of '{}' changed while it was being recorded, and it was declared read-only: declare it a "
                "read-write state, and load its contents again",
                name(**group));
}

Result<void> TrialMemory::reset_original()
{
    std::vector<Step> copies;
    for (const Group& group : m_groups)
        if (group.kind == Kind::writable && group.original.size != 0)
            copies.push_back(copy_step(group.original.address, group.snapshot.address, group.original.size));
    if (auto done = run_all(m_device->bulk(), copies); !done) return done;
    for (const Group& group : m_groups)
        if (group.kind == Kind::writable)
            if (auto done = disturb_outputs(group, group.original.address); !done) return done;
    return {};
}

Result<void> TrialMemory::write_back()
{
    Result<void> result;
    for (const Group& group : m_groups) { // goes on after an error
        if (group.kind != Kind::writable || group.original.size == 0) continue;
        auto written = m_device->bulk().copy(group.original.address, group.snapshot.address, group.original.size);
        if (!written && result) result = written;
    }
    return result;
}

auto TrialMemory::words_in(std::span<const backends::AddressWindow> windows) const -> Result<std::vector<Word>>
{
    std::vector<Word> result;
    for (const Group& group : m_groups) {
        const Address contents = group.kind == Kind::in_place ? group.original.address : group.snapshot.address;
        for (const std::size_t i : group.members) {
            if (is_real(m_types[i]) || m_interface.regions[i].no_addresses || m_original[i].size == 0) continue;
            const std::uint64_t from = m_original[i].address.offset - group.original.address.offset;
            auto found = m_device->bulk().words_in({contents + from, m_original[i].size}, windows, k_most_words);
            if (!found) return std::unexpected(found.error());
            if (found->total > k_most_words)
                return fail(ErrorCode::not_recordable,
                            "'{}' holds {} words that may be addresses, but at most {} can be checked: declare it with "
                            "its floating-point type, or with no_addresses if it holds no addresses",
                            m_interface.regions[i].name, found->total, k_most_words);
            for (const auto& word : found->words) result.push_back({i, word.offset, word.value});
        }
    }
    return result;
}

} // namespace warmgraph
