#include "verify/constants.hpp"

#include <algorithm>
#include <cstring>

#include "classify/classify.hpp"
#include "classify/undeclared_memory.hpp"
#include "model/memory_ranges.hpp"
#include "verify/trial_conditions.hpp"
#include "warmgraph/backends/bulk_memory.hpp"
#include "warmgraph/backends/recording.hpp"
#include "warmgraph/base/log.hpp"

namespace warmgraph {

using cachefmt::RegionKind;

namespace {

constexpr std::size_t k_address_bytes = sizeof(std::uint64_t);
// Limit for words that look like addresses; only few words do so by chance.
constexpr std::size_t k_most_lookalikes = 64;

std::uint64_t bytes_of(std::span<const NamedMemory> all) noexcept
{
    std::uint64_t sum = 0;
    for (const auto& [name, memory] : all) sum += memory.size;
    return sum;
}

/// Returns all memory that the captures name or allocate.
std::vector<MemoryRef> memory_of(const Captures& captures)
{
    std::vector<MemoryRef> result;
    for (const CapturedGraph* capture : {&captures.first, captures.moved ? &*captures.moved : nullptr}) {
        if (capture == nullptr) continue;
        result.insert(result.end(), capture->regions.begin(), capture->regions.end());
        for (const auto& [name, memory] : capture->scratch) result.push_back(memory);
        for (const auto& allocation : capture->graph.allocations) result.push_back(allocation.memory);
    }
    return result;
}

std::vector<backends::Module*> modules_of(const backends::RawGraph& graph)
{
    std::vector<backends::Module*> result;
    for (const auto& node : graph.nodes)
        if (const auto* kernel = std::get_if<backends::RawKernel>(&node.work))
            if (kernel->module != nullptr && std::ranges::find(result, kernel->module) == result.end())
                result.push_back(kernel->module);
    return result;
}

/// Whether addresses in the memory have a small number as their lower half. An uninitialised word of a struct may hold
/// a small number, followed by the upper half of an old pointer (ATen's reductions have such words). Such a word would
/// become an address in the constant, and a kernel that uses the new lower half as a size would destroy the process's
/// context.
bool has_small_lower_halves(const MemoryRef& memory) noexcept
{
    constexpr std::uint64_t k_boundary = 1ULL << 32U, k_small = 1ULL << 24U;
    const std::uint64_t begin = memory.address.flat();
    const std::uint64_t to_next = (k_boundary - begin % k_boundary) % k_boundary;
    return begin % k_boundary < k_small || to_next < memory.size;
}

} // namespace

Constants::Constants(std::shared_ptr<backends::Device> device, std::vector<NamedMemory> declared, std::uint64_t most)
    : m_device(std::move(device)), m_all(std::move(declared)), m_declared(m_all.size()), m_most(most)
{
}

/// Whether the memory cannot be a constant because the host may write it. Declared page-locked memory cannot be a
/// constant; a library's own page-locked memory can (flags of cuDNN's batch norm).
bool Constants::is_open_to_host(const MemoryRef& memory, Declared declared) const
{
    return m_device->recording().is_managed(memory.address) ||
           (declared == Declared::yes && m_device->space_of(memory.address) == cachefmt::MemorySpace::host);
}

/// Describes the first address that the memory holds, as the end of a sentence; empty if it holds no address.
Result<std::string> Constants::address_in(const MemoryRef& memory, std::span<const MemoryRef> in_use) const
{
    if (!m_device->limits().flat_addresses) return std::string{};
    std::vector<MemoryRef> known{in_use.begin(), in_use.end()};
    for (const auto& [name, other] : m_all) known.push_back(other);
    known.push_back(memory);
    const auto found = m_device->bulk().words_in(memory, windows_around(known), k_most_lookalikes);
    if (!found) return std::unexpected(found.error());
    for (const auto& word : found->words) {
        const bool is_used = std::ranges::any_of(in_use, [&](const MemoryRef& one) { return holds(one, word.value); });
        if (is_used || m_device->recording().allocation_at(word.value))
            return fmt::format("holds at byte {} the address {:#x}", word.offset, word.value);
    }
    if (found->total > found->words.size()) return fmt::format("holds {} words that look like addresses", found->total);
    return std::string{};
}

Result<void> Constants::keep(std::span<const MemoryRef> allocations, std::span<const MemoryRef> in_use)
{
    for (const MemoryRef& allocation : allocations) {
        std::string why;
        if (is_open_to_host(allocation, Declared::no))
            why = "is managed memory, which the host may write unnoticed";
        else if (std::ranges::any_of(in_use, [&](const MemoryRef& memory) { return overlap(allocation, memory); }))
            why = "overlaps memory of the call";
        else if (has_small_lower_halves(allocation))
            why = "lies at a multiple of 4 GiB, so that a number next to the rest of an old pointer may look like its "
                  "address";
        else if (bytes_of(m_all) + allocation.size > m_most)
            why = fmt::format("would exceed the {} bytes that may be stored (Spec::max_constant_bytes)", m_most);
        else if (auto address = address_in(allocation, in_use); !address)
            return std::unexpected(address.error());
        else
            why = std::move(*address);
        if (why.empty()) {
            log().info("an undeclared allocation of {} bytes is stored as a constant", allocation.size);
            m_all.emplace_back(fmt::format("constant {}", m_all.size()), allocation);
        } else {
            log().info("the allocation of {} bytes at {:#x} is not stored as a constant: it {}", allocation.size,
                       allocation.address.flat(), why);
            m_why_not += fmt::format("; the allocation of {} bytes at {:#x} is not stored as a constant: it {}",
                                     allocation.size, allocation.address.flat(), why);
        }
    }
    return {};
}

Result<void> Constants::look_before(const Interface& interface, std::span<const MemoryRef> in_use)
{
    if (bytes_of(m_all) > m_most)
        return fail(ErrorCode::not_recordable,
                    "its constants have {} bytes, expected at most {}: declare them as weights, or raise "
                    "Spec::max_constant_bytes",
                    bytes_of(m_all), m_most);
    for (const NamedConstant& constant : interface.constants)
        if (constant.memory.address.is_null())
            return fail(ErrorCode::not_recordable,
                        "the constant '{}' has no memory in this process, so its contents cannot be stored",
                        constant.name);
    m_before.clear();
    for (std::size_t i = 0; i < m_all.size(); ++i) {
        const auto& [name, memory] = m_all[i];
        if (is_open_to_host(memory, i < m_declared ? Declared::yes : Declared::no))
            return fail(ErrorCode::not_recordable,
                        "the constant '{}' lies in managed or page-locked memory, which the host may write unnoticed: "
                        "pass device memory",
                        name);
        if (std::ranges::any_of(in_use, [&](const MemoryRef& one) { return overlap(one, memory); }))
            return fail(ErrorCode::not_recordable,
                        "the constant '{}' overlaps memory of the call: declare one of the two", name);
        if (i < interface.constants.size() && !interface.constants[i].no_addresses) {
            const auto address = address_in(memory, in_use);
            if (!address) return std::unexpected(address.error());
            if (!address->empty())
                return fail(ErrorCode::not_recordable,
                            "the constant '{}' {}, which has other contents in another process: declare it as weights; "
                            "if the value is a number: name the constant in no_addresses",
                            name, *address);
        }
        auto fingerprint = m_device->bulk().fingerprint(memory);
        if (!fingerprint) return within(fmt::format("read constant '{}'", name), fingerprint.error());
        m_before.push_back(*fingerprint);
    }
    return {};
}

Result<void> Constants::check_unchanged() const
{
    for (std::size_t i = 0; i < m_before.size(); ++i) {
        const auto now = m_device->bulk().fingerprint(m_all[i].second);
        if (!now) return within(fmt::format("read constant '{}'", m_all[i].first), now.error());
        if (*now != m_before[i])
            return fail(ErrorCode::not_recordable, "it changes the constant '{}': declare it as a state",
                        m_all[i].first);
    }
    return {};
}

Result<void> Constants::find(const Interface& interface, Captures& captures, std::span<const MemoryRef> also_in_use)
{
    auto in_use = memory_of(captures);
    in_use.insert(in_use.end(), also_in_use.begin(), also_in_use.end());
    if (auto kept = keep(undeclared_memory(interface, captures), in_use); !kept) return kept;
    const auto state = read_module_state(modules_of(captures.first.graph));
    if (!state) return std::unexpected(state.error());
    if (auto kept = keep(allocations_in(*state, in_use), in_use); !kept) return kept;
    captures.constants = m_all;
    return {};
}

std::vector<MemoryRef> Constants::allocations_in(const ModuleState& state, std::span<const MemoryRef> in_use) const
{
    std::vector<MemoryRef> found;
    const auto look_at = [&](std::uint64_t word) {
        const auto holds_it = [word](const MemoryRef& memory) { return holds(memory, word); };
        if (std::ranges::any_of(found, holds_it) || std::ranges::any_of(in_use, holds_it)) return;
        if (std::ranges::any_of(m_all, [&](const NamedMemory& one) { return holds_it(one.second); })) return;
        if (const auto allocation = m_device->recording().allocation_at(word)) found.push_back(*allocation);
    };
    for (const auto& module : state)
        for (const auto& variable : module)
            for (std::size_t at = 0; at + k_address_bytes <= variable.contents.size(); at += k_address_bytes)
                look_at(load<std::uint64_t>(variable.contents, at));
    return found;
}

ModuleState Constants::relocated(ModuleState state, std::size_t first_region) const
{
    for (auto& module : state)
        for (auto& variable : module)
            for (std::size_t at = 0; at + k_address_bytes <= variable.contents.size(); at += k_address_bytes) {
                const auto word = load<std::uint64_t>(variable.contents, at);
                for (std::size_t i = m_declared; i < m_all.size(); ++i) {
                    if (!holds(m_all[i].second, word)) continue;
                    variable.slots.push_back({cachefmt::SlotKind::region, static_cast<std::uint32_t>(first_region + i),
                                              static_cast<std::uint32_t>(at), k_address_bytes,
                                              static_cast<std::int64_t>(word - m_all[i].second.address.flat())});
                    std::memset(variable.contents.data() + at, 0, k_address_bytes);
                    break;
                }
            }
    return state;
}

Result<std::vector<std::pair<Digest, Bytes>>> Constants::read_into(cachefmt::Graph& graph) const
{
    std::vector<std::pair<Digest, Bytes>> result;
    std::size_t next = 0;
    for (auto& region : graph.regions) {
        if (region.kind != RegionKind::constant || region.inside) continue;
        region.exclusive = next >= m_declared;
        const auto& [name, memory] = m_all[next++];
        Bytes contents(memory.size);
        if (auto read = m_device->download(contents, memory.address); !read)
            return within(fmt::format("read constant '{}'", name), read.error());
        region.digest = sha256(contents);
        const auto is_same = [&](const auto& known) { return known.first == region.digest; };
        if (std::ranges::none_of(result, is_same)) result.emplace_back(region.digest, std::move(contents));
    }
    return result;
}

Result<std::optional<std::pair<Digest, Bytes>>> Constants::contents_of(const MemoryRef& memory)
{
    if (bytes_of(m_all) + m_other_bytes + memory.size > m_most) return std::nullopt;
    m_other_bytes += memory.size;
    Bytes contents(memory.size);
    if (auto read = m_device->download(contents, memory.address); !read) return std::unexpected(read.error());
    const Digest digest = sha256(contents);
    return std::pair{digest, std::move(contents)};
}

Result<void> Constants::check_restored(const replay::Executable& executable) const
{
    const auto& regions = executable.graph().regions;
    std::size_t next = 0;
    for (std::size_t i = 0; i < regions.size(); ++i) {
        if (regions[i].kind != RegionKind::constant || regions[i].inside) continue;
        const auto now = m_device->bulk().fingerprint(executable.constant(i));
        if (!now) return within(fmt::format("read constant '{}'", regions[i].name), now.error());
        if (*now != m_before[next++])
            return fail(ErrorCode::verification_failed,
                        "the restored graph writes the constant '{}': declare it as a state", regions[i].name);
    }
    return {};
}

} // namespace warmgraph
