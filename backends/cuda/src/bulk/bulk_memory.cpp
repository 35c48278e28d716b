#include "bulk_memory.hpp"

#include <algorithm>
#include <array>
#include <bit>

namespace warmgraph::backends::cuda {
namespace {

using bulk::Kernel;
using bulk::Tally;

constexpr std::uint64_t k_ones = 0x0101010101010101; // one in each of the eight bytes

/// The alignment as kernel_work.hpp defines it.
std::uint64_t alignment_of(std::span<const Address> addresses)
{
    std::uint64_t bits = 16;
    for (const Address& address : addresses) bits |= address.flat();
    return std::uint64_t{1} << static_cast<unsigned>(std::countr_zero(bits));
}

const bulk::Byte* bytes_at(const Address& address) { return address.pointer<const bulk::Byte>(); }

bulk::Numbers numbers_of(DType dtype)
{
    switch (dtype) {
    case DType::f16: return bulk::Numbers::f16;
    case DType::bf16: return bulk::Numbers::bf16;
    case DType::f32: return bulk::Numbers::f32;
    case DType::f64: return bulk::Numbers::f64;
    default: return bulk::Numbers::whole;
    }
}

/// Returns a word with a 1 in the first byte of each element.
std::uint64_t ones_of(std::size_t element)
{
    std::uint64_t ones = 0;
    for (std::size_t at = 0; at < 8; at += element) ones |= std::uint64_t{1} << (8 * at);
    return ones;
}

bool is_comparison(const BulkStep& step)
{
    return step.what == BulkStep::What::expect_same || step.what == BulkStep::What::expect_filled;
}

bool has_other(const BulkStep& step)
{
    return step.what == BulkStep::What::copy || step.what == BulkStep::What::expect_same;
}

bulk::Task task_of(const BulkStep& step)
{
    const auto& [address, size] = step.memory;
    const std::array both{address, step.other};
    switch (step.what) {
    case BulkStep::What::copy: return bulk::CopyTask{address.flat(), step.other.flat(), size};
    case BulkStep::What::fill: return bulk::FillTask{address.flat(), step.pattern, size};
    case BulkStep::What::expect_same:
        return bulk::DifferenceWork{bytes_at(address), bytes_at(step.other), size, alignment_of(both)};
    case BulkStep::What::expect_filled: break;
    }
    return bulk::OtherWork{bytes_at(address), size, alignment_of({&address, 1}),
                           std::to_integer<std::uint64_t>(step.pattern) * k_ones};
}

Result<std::optional<std::uint64_t>> first_of(const Result<Tally>& tally)
{
    if (!tally) return std::unexpected(tally.error());
    if (tally->first == Tally{}.first) return std::nullopt;
    return tally->first;
}

} // namespace

Result<void> CudaBulkMemory::check(std::span<const Address> addresses, std::uint64_t size) const
{
    for (const Address& address : addresses)
        if (auto checked = m_memory.check("bulk memory work", address, size, Touch::run); !checked) return checked;
    return {};
}

bool CudaBulkMemory::is_reached(std::span<const Address> addresses) const
{
    const CurrentContext context(m_core);
    const Driver& driver = *m_core.driver;
    return std::ranges::all_of(addresses, [&](const Address& address) {
        CUdeviceptr seen = 0;
        return driver.status("cuPointerGetAttribute", driver.cuPointerGetAttribute, static_cast<void*>(&seen),
                             CU_POINTER_ATTRIBUTE_DEVICE_POINTER, CUdeviceptr{address.flat()}) == CUDA_SUCCESS &&
               seen == address.flat();
    });
}

bool CudaBulkMemory::is_ours(std::span<const Address> addresses, std::uint64_t size)
{
    return size > 0 && check(addresses, size) && m_launcher.is_ready() && is_reached(addresses);
}

Result<void> CudaBulkMemory::copy(const Address& to, const Address& from, std::uint64_t size)
{
    if (size == 0) return {};
    if (auto checked = check(std::array{to, from}, size); !checked) return checked;
    return m_launcher.copy(to.flat(), from.flat(), size);
}

Result<void> CudaBulkMemory::fill(const MemoryRef& memory, std::byte pattern)
{
    if (memory.size == 0) return {};
    if (auto checked = check({&memory.address, 1}, memory.size); !checked) return checked;
    return m_launcher.fill(memory.address.flat(), pattern, memory.size);
}

Result<void> CudaBulkMemory::disturb(const MemoryRef& memory, DType dtype)
{
    const std::span addresses(&memory.address, 1);
    if (!is_ours(addresses, memory.size)) return BulkMemory::disturb(memory, dtype);
    bulk::DisturbWork work;
    work.memory = memory.address.pointer<bulk::Byte>();
    work.size = memory.size;
    work.alignment = alignment_of(addresses);
    work.element = size_of(dtype);
    work.ones = ones_of(size_of(dtype));
    work.is_real = numbers_of(dtype) == bulk::Numbers::whole ? 0 : 1;
    const auto done = m_launcher.run(Kernel::disturb, work, memory.size);
    if (!done) return std::unexpected(done.error());
    return {};
}

Result<std::optional<std::uint64_t>> CudaBulkMemory::first_difference(const Address& a, const Address& b,
                                                                      std::uint64_t size)
{
    const std::array addresses{a, b};
    if (!is_ours(addresses, size)) return BulkMemory::first_difference(a, b, size);
    const bulk::DifferenceWork work{bytes_at(a), bytes_at(b), size, alignment_of(addresses)};
    return first_of(m_launcher.run(Kernel::first_difference, work, size));
}

Result<std::optional<std::uint64_t>> CudaBulkMemory::first_other(const MemoryRef& memory, std::byte pattern)
{
    const std::span addresses(&memory.address, 1);
    if (!is_ours(addresses, memory.size)) return BulkMemory::first_other(memory, pattern);
    const bulk::OtherWork work{bytes_at(memory.address), memory.size, alignment_of(addresses),
                               std::to_integer<std::uint64_t>(pattern) * k_ones};
    return first_of(m_launcher.run(Kernel::first_other, work, memory.size));
}

Result<Departure> CudaBulkMemory::departure(const Address& candidate, std::span<const Address> others, DType dtype,
                                            std::uint64_t elements, double roundings)
{
    const auto size = check_departure(others, dtype, elements, roundings);
    if (!size) return std::unexpected(size.error());
    std::vector<Address> addresses{candidate};
    addresses.insert(addresses.end(), others.begin(), others.end());
    if (!is_ours(addresses, *size)) return BulkMemory::departure(candidate, others, dtype, elements, roundings);
    bulk::DepartureWork work;
    work.candidate = bytes_at(candidate);
    std::ranges::transform(others, work.others, bytes_at);
    work.count = others.size();
    work.size = *size;
    work.alignment = alignment_of(addresses);
    work.element = size_of(dtype);
    work.numbers = numbers_of(dtype);
    work.roundings = roundings;
    const auto tally = m_launcher.run(Kernel::departure, work, *size);
    if (!tally) return std::unexpected(tally.error());
    if (tally->count == 0) return Departure{};
    return Departure{tally->count, std::bit_cast<double>(tally->farthest), tally->first};
}

Result<Fingerprint> CudaBulkMemory::fingerprint(const MemoryRef& memory)
{
    const std::span addresses(&memory.address, 1);
    if (!is_ours(addresses, memory.size)) return BulkMemory::fingerprint(memory);
    const bulk::FingerprintWork work{bytes_at(memory.address), memory.size, alignment_of(addresses)};
    const auto tally = m_launcher.run(Kernel::fingerprint, work, memory.size);
    if (!tally) return std::unexpected(tally.error());
    return finish({tally->low, tally->high}, memory.size);
}

bool CudaBulkMemory::are_ours(std::span<const BulkStep> steps)
{
    return std::ranges::all_of(steps, [this](const BulkStep& step) {
        const std::array both{step.memory.address, step.other};
        const auto addresses = std::span(both).first(has_other(step) ? 2 : 1);
        return step.memory.size == 0 || (is_comparison(step) ? is_ours(addresses, step.memory.size)
                                                             : check(addresses, step.memory.size).has_value());
    });
}

Result<std::optional<BulkFinding>> CudaBulkMemory::run(std::span<const BulkStep> steps)
{
    if (!m_launcher.is_ready() || !are_ours(steps)) return BulkMemory::run(steps);
    std::vector<bulk::Task> tasks;
    std::vector<std::size_t> compared; // the steps with a tally
    for (std::size_t i = 0; i < steps.size(); ++i) {
        if (steps[i].memory.size == 0) continue;
        tasks.push_back(task_of(steps[i]));
        if (is_comparison(steps[i])) compared.push_back(i);
    }
    const auto tallies = m_launcher.run_all(tasks);
    if (!tallies) return std::unexpected(tallies.error());
    for (std::size_t i = 0; i < compared.size(); ++i)
        if (const auto found = first_of((*tallies)[i]); *found) return BulkFinding{compared[i], **found};
    return std::nullopt;
}

Result<std::vector<Fingerprint>> CudaBulkMemory::fingerprints(std::span<const MemoryRef> memory)
{
    std::vector<bulk::Task> tasks;
    for (const MemoryRef& one : memory) {
        const std::span addresses(&one.address, 1);
        if (one.size == 0) continue;
        if (!is_ours(addresses, one.size)) return BulkMemory::fingerprints(memory);
        tasks.emplace_back(bulk::FingerprintWork{bytes_at(one.address), one.size, alignment_of(addresses)});
    }
    const auto tallies = m_launcher.run_all(tasks);
    if (!tallies) return std::unexpected(tallies.error());
    std::vector<Fingerprint> result;
    auto tally = tallies->begin();
    for (const MemoryRef& one : memory) {
        const bulk::Tally sum = one.size == 0 ? bulk::Tally{} : *tally++;
        result.push_back(finish({sum.low, sum.high}, one.size));
    }
    return result;
}

Result<BulkMemory::AddressMatches> CudaBulkMemory::words_in(const MemoryRef& memory,
                                                            std::span<const AddressWindow> windows, std::size_t most)
{
    const std::span addresses(&memory.address, 1);
    const auto merged = merge(windows);
    if (!check_windows(windows) || merged.empty() || !is_ours(addresses, memory.size))
        return BulkMemory::words_in(memory, windows, most);
    bulk::WordsWork work;
    work.memory = bytes_at(memory.address);
    work.size = memory.size;
    work.alignment = alignment_of(addresses);
    std::ranges::transform(merged, work.windows,
                           [](const AddressWindow& one) { return bulk::Window{one.from, one.to}; });
    work.count = merged.size();
    return search(work, most);
}

/// Finds the words. One launch returns at most k_word_room words, unordered, so a range with more words is halved and
/// searched again.
Result<BulkMemory::AddressMatches> CudaBulkMemory::search(bulk::WordsWork work, std::size_t most)
{
    constexpr std::uint64_t k_block = 16;
    AddressMatches found;
    std::vector<AddressWindow> ranges{{0, work.size}}; // offsets, in descending order
    for (bool is_whole = true; !ranges.empty() && (is_whole || found.words.size() < most); is_whole = false) {
        const auto [begin, end] = ranges.back();
        ranges.pop_back();
        work.begin = begin;
        work.end = end;
        std::vector<bulk::Word> words;
        const auto tally = m_launcher.run(Kernel::words_in, work, end - begin, &words);
        if (!tally) return std::unexpected(tally.error());
        if (is_whole) found.total = tally->count;
        if (tally->count > words.size()) {
            const std::uint64_t middle = begin + (end - begin) / 2 / k_block * k_block;
            ranges.push_back({middle, end});
            ranges.push_back({begin, middle});
            continue;
        }
        std::ranges::sort(words, {}, &bulk::Word::offset);
        for (const bulk::Word& word : words)
            if (found.words.size() < most) found.words.push_back({word.offset, word.value});
    }
    return found;
}

} // namespace warmgraph::backends::cuda
