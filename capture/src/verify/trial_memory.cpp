#include "trial_memory.hpp"

#include <algorithm>
#include <limits>
#include <map>

#include "scratch.hpp"
#include "warmgraph/backends/bulk_memory.hpp"
#include "warmgraph/guards/call_guard.hpp"

namespace warmgraph {

namespace {
constexpr std::uint64_t k_fence = 1024;                     // bytes before and after
constexpr std::uint64_t k_step = cachefmt::k_max_alignment; // between placements: keeps every alignment class
constexpr std::uint64_t k_piece = 16ULL << 20;              // bytes read at once of what is only hashed
constexpr std::byte k_canary{0xC5};
} // namespace

TrialMemory::~TrialMemory()
{
    for (const Group& group : m_groups)
        if (!group.memory.address.is_null()) m_device->release(group.memory);
}

Result<std::unique_ptr<TrialMemory>> TrialMemory::create(std::shared_ptr<backends::Device> device,
                                                         const Interface& interface, const Frame& frame,
                                                         std::uint64_t largest_copied_weights)
{
    std::unique_ptr<TrialMemory> trial{new TrialMemory{std::move(device), interface, frame}};
    std::map<std::uint32_t, std::vector<std::size_t>> groups;
    const auto group_of = guards::alias_groups(frame.tensors);
    for (std::size_t i = 0; i < group_of.size(); ++i) groups[group_of[i]].push_back(i);
    for (auto& [first, members] : groups)
        if (auto added = trial->add_group(frame, std::move(members), largest_copied_weights); !added)
            return std::unexpected(added.error());
    return trial;
}

Result<void> TrialMemory::add_group(const Frame& frame, std::vector<std::size_t> members,
                                    std::uint64_t largest_copied_weights)
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
    group.members = std::move(members);
    if (is_read_only && group.original.size > largest_copied_weights) {
        group.kind = Kind::in_place;
        auto contents = digest(group.original);
        if (!contents) return std::unexpected(contents.error());
        group.digest = *contents;
    } else if (auto copied = copy_group(frame, group); !copied) {
        return copied;
    }
    m_groups.push_back(std::move(group));
    return {};
}

Result<void> TrialMemory::copy_group(const Frame& frame, Group& group)
try {
    auto contents = read(group.original);
    if (!contents) return std::unexpected(contents.error());
    group.contents = std::move(*contents);
    disturb_outputs(frame, group);
    const std::uint64_t size = 2 * k_fence + 2 * k_step + group.contents.size();
    const bool on_host = m_device->space_of(group.original.address) == backends::MemorySpace::host;
    auto memory = on_host ? m_device->allocate_host(size) : m_device->allocate(size);
    if (!memory) return within("allocate memory to verify the recording in", memory.error());
    group.memory = {memory->address, size};
    return {};
} catch (const std::bad_alloc&) {
    return fail(ErrorCode::out_of_memory, "no host memory for a second copy of the outputs");
}

/// Of outputs that share no byte with what the function reads.
void TrialMemory::disturb_outputs(const Frame& frame, Group& group) const
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
        const bool is_read = std::ranges::any_of(group.members, [&](std::size_t other) {
            return !is_output(other) && range(other).first < to && from < range(other).second;
        });
        // Two outputs of one place: its elements are changed once.
        const bool is_done = std::ranges::any_of(group.members, [&](std::size_t other) {
            return other < i && is_output(other) && range(other).first < to && from < range(other).second;
        });
        if (!is_output(i) || is_read || is_done) continue;
        if (group.disturbed.empty()) group.disturbed = group.contents;
        backends::disturb(std::span(group.disturbed).subspan(from, to - from), frame.tensors[i].dtype);
    }
}

Result<void> TrialMemory::reset(std::size_t placement)
{
    for (Group& group : m_groups) {
        if (group.kind == Kind::in_place) continue;
        group.start = k_fence + placement * k_step + group.original.address.offset % k_step;
        const Address contents = group.memory.address + group.start;
        const std::uint64_t end = group.start + group.contents.size();
        if (auto done = fill_memory(*m_device, {group.memory.address, group.start}, k_canary); !done) return done;
        if (!group.contents.empty())
            if (auto done = m_device->upload(contents, group.start_contents()); !done) return done;
        if (auto done = fill_memory(*m_device, {group.memory.address + end, group.memory.size - end}, k_canary); !done)
            return done;
        for (const std::size_t i : group.members)
            m_regions[i].address = contents + (m_original[i].address.offset - group.original.address.offset);
    }
    return {};
}

Result<Bytes> TrialMemory::read(const MemoryRef& memory) const
try {
    Bytes bytes(memory.size);
    if (bytes.empty()) return bytes;
    if (auto read = m_device->download(bytes, memory.address); !read) return std::unexpected(read.error());
    return bytes;
} catch (const std::exception&) { // of the allocation: nothing else throws here
    return fail(ErrorCode::out_of_memory, "no host memory for a copy of {} bytes of the caller's memory", memory.size);
}

Result<Digest> TrialMemory::digest(const MemoryRef& memory) const
{
    Sha256 hash;
    for (std::uint64_t at = 0; at < memory.size; at += k_piece) {
        auto piece = read({memory.address + at, std::min(k_piece, memory.size - at)});
        if (!piece) return std::unexpected(piece.error());
        hash.update(*piece);
    }
    return hash.finish();
}

Result<void> TrialMemory::check_fences(const Group& group) const
{
    const std::uint64_t end = group.start + group.contents.size();
    for (const MemoryRef& fence : {MemoryRef{group.memory.address, group.start},
                                   MemoryRef{group.memory.address + end, group.memory.size - end}}) {
        auto bytes = read(fence);
        if (!bytes) return std::unexpected(bytes.error());
        if (std::ranges::any_of(*bytes, [](std::byte value) { return value != k_canary; }))
            return fail(ErrorCode::verification_failed,
                        "it writes outside '{}', whose {} bytes were declared: declare its real size",
                        m_interface.regions[group.members.front()].name, group.contents.size());
    }
    return {};
}

Result<std::vector<Bytes>> TrialMemory::read_all(const std::vector<MemoryRef>& regions) const
{
    std::vector<Bytes> result(regions.size());
    for (const Group& group : m_groups) {
        if (group.kind == Kind::in_place) continue;
        for (const std::size_t i : group.members) {
            auto bytes = read(regions[i]);
            if (!bytes) return std::unexpected(bytes.error());
            result[i] = std::move(*bytes);
        }
    }
    return result;
}

Result<std::vector<Bytes>> TrialMemory::collect() const
{
    for (const Group& group : m_groups)
        if (group.kind == Kind::copied)
            if (auto checked = check_fences(group); !checked) return std::unexpected(checked.error());
    return read_all(m_regions);
}

Result<void> TrialMemory::check_in_place() const
{
    for (const Group& group : m_groups) {
        if (group.kind == Kind::copied) continue;
        auto now = digest(group.original);
        if (!now) return std::unexpected(now.error());
        if (*now == group.digest) continue;
        return fail(ErrorCode::verification_failed,
                    "the contents of '{}' changed while it was being recorded, and it was declared read-only: declare "
                    "it a read-write state, and load its contents again",
                    m_interface.regions[group.members.front()].name);
    }
    return {};
}

Result<void> TrialMemory::reset_original()
{
    for (const Group& group : m_groups)
        if (!group.contents.empty())
            if (auto done = m_device->upload(group.original.address, group.start_contents()); !done) return done;
    return {};
}

Result<void> TrialMemory::write_back()
{
    for (const Group& group : m_groups)
        if (!group.contents.empty())
            if (auto written = m_device->upload(group.original.address, group.contents); !written) return written;
    return {};
}

Result<std::vector<Bytes>> TrialMemory::collect_original() const { return read_all(m_original); }

} // namespace warmgraph
