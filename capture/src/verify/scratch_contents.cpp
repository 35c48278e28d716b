#include "verify/scratch_contents.hpp"

#include <algorithm>
#include <functional>
#include <utility>

#include "verify/trial_conditions.hpp"
#include "warmgraph/backends/recording.hpp"
#include "warmgraph/base/log.hpp"

namespace warmgraph {

namespace {

constexpr std::uint64_t k_unit = 256;     // bytes; size of the smallest blocks of memory pools
constexpr std::size_t k_most_ranges = 64; // most ranges that one graph may read before writing
constexpr std::size_t k_at_once = 4096;   // most words that one search returns
constexpr std::size_t k_attempts = 3;
constexpr std::uint64_t k_filled_at_once = 64ULL << 10; // most bytes that are written from the host at once
constexpr std::size_t k_most_copies = 256;              // most copies of single runs of address words
constexpr std::uint64_t k_piece = 16ULL << 20;          // bytes of host memory that rewrite() uses at a time
constexpr std::uint64_t k_whole = 1; // whole numbers: each word of 8 bytes is 1, and so is every second word of 4 bytes
// Real numbers: the pattern is 0.0078 as f32 and bf16, and 1 as f16.
constexpr std::uint64_t k_real = 0x3C00'3C00'3C00'3C00;

} // namespace

/// Joins words that overlap or touch.
std::vector<ScratchContents::Run> ScratchContents::runs_of(std::span<const backends::AddressWord> words)
{
    std::vector<Run> runs;
    for (const auto& word : words) {
        const std::uint64_t to = word.offset + sizeof word.value;
        if (!runs.empty() && word.offset <= runs.back().to)
            runs.back().to = to;
        else
            runs.push_back({word.offset, to});
    }
    return runs;
}

ScratchContents::~ScratchContents()
{
    static_cast<void>(put_back()); // NOLINT(bugprone-unused-return-value): a destructor cannot report it
    for (const SavedMemory& saved : m_saved) m_device.release(saved.copy);
}

Result<void> ScratchContents::save(const std::vector<NamedMemory>& scratch, std::span<const MemoryRef> known)
{
    std::vector<MemoryRef> around{known.begin(), known.end()};
    for (const auto& [name, memory] : scratch) around.push_back(memory);
    m_windows = windows_around(around);
    for (const auto& [name, memory] : scratch) {
        if (memory.size == 0) continue;
        auto copy = m_device.allocate(memory.size);
        if (!copy) return within(fmt::format("save the contents of scratch '{}'", name), copy.error());
        m_saved.push_back({name, memory, *copy, {}, {}});
        if (auto read = m_device.bulk().copy(copy->address, memory.address, memory.size); !read) {
            m_saved.back().memory.size = 0; // put_back() must not restore memory that was not saved
            return within(fmt::format("read scratch '{}'", name), read.error());
        }
        if (!m_device.limits().flat_addresses) continue;
        if (auto found = find_addresses(m_saved.back(), 0, memory.size); !found) return found;
        m_saved.back().runs = runs_of(m_saved.back().addresses);
        if (const auto& words = m_saved.back().addresses; words.size() > k_at_once)
            log().debug("scratch '{}' of {} bytes holds {} words that look like addresses, the first is {:#x} at {}",
                        name, memory.size, words.size(), words[0].value, words[0].offset);
    }
    return {};
}

/// Searches each half of the range if the range has more words than one search returns.
Result<void> ScratchContents::find_addresses(SavedMemory& saved, std::uint64_t from, std::uint64_t to)
{
    auto found = m_device.bulk().words_in({saved.copy.address + from, to - from}, m_windows, k_at_once);
    if (!found) return within(fmt::format("search scratch '{}'", saved.name), found.error());
    if (found->total > found->words.size()) {
        const std::uint64_t middle = from + (to - from) / 2 / k_unit * k_unit;
        // A word may begin 4 bytes before the middle.
        if (auto lower = find_addresses(saved, from, middle + sizeof(std::uint32_t)); !lower) return lower;
        return find_addresses(saved, middle, to);
    }
    for (const auto& word : found->words) saved.addresses.push_back({from + word.offset, word.value});
    return {};
}

Result<void> ScratchContents::restore()
{
    for (const SavedMemory& saved : m_saved)
        if (auto copied = m_device.bulk().copy(saved.memory.address, saved.copy.address, saved.memory.size); !copied)
            return within(fmt::format("fill scratch '{}'", saved.name), copied.error());
    return {};
}

/// Fills the memory with the word: copies the part that is already filled behind it, until all is filled.
Result<void> ScratchContents::fill_words(const MemoryRef& memory, std::uint64_t word) const
{
    Bytes start;
    while (start.size() < std::min(memory.size, k_filled_at_once)) append(start, word);
    start.resize(std::min<std::uint64_t>(start.size(), memory.size));
    if (auto written = m_device.upload(memory.address, start); !written) return written;
    for (std::uint64_t filled = start.size(); filled < memory.size;) {
        const std::uint64_t more = std::min(filled, memory.size - filled);
        if (auto copied = m_device.bulk().copy(memory.address + filled, memory.address, more); !copied) return copied;
        filled += more;
    }
    return {};
}

Result<void> ScratchContents::fill(const Range& range, Fill with, std::span<const Range> kept)
{
    if (auto restored = restore(); !restored) return restored;
    const SavedMemory& saved = m_saved[range.scratch];
    const std::uint64_t word = with == Fill::zeros ? 0 : with == Fill::whole_numbers ? k_whole : k_real;
    const auto begin = std::ranges::lower_bound(saved.runs, range.from, std::less{}, &Run::to);
    const auto end = std::ranges::lower_bound(begin, saved.runs.end(), range.to, std::less{}, &Run::from);
    const std::span<const Run> runs{begin, end};
    if (runs.size() > k_most_copies) {
        if (auto filled = fill_around(saved, range, word, runs); !filled) return filled;
    } else {
        auto filled =
            with == Fill::zeros ? m_device.bulk().fill(memory(range), std::byte{0}) : fill_words(memory(range), word);
        if (!filled) return filled;
        for (const Run& run : runs)
            if (auto copied = copy_back(saved, run); !copied) return copied;
    }
    for (const Range& one : kept) {
        const Run run{std::max(one.from, range.from), std::min(one.to, range.to)};
        if (one.scratch != range.scratch || run.from >= run.to) continue;
        if (auto copied = copy_back(saved, run); !copied) return copied;
    }
    return {};
}

Result<void> ScratchContents::copy_back(const SavedMemory& saved, const Run& run) const
{
    return m_device.bulk().copy(saved.memory.address + run.from, saved.copy.address + run.from, run.to - run.from);
}

/// Fills the range by way of host memory: a copy for each run would take minutes if the pool once held a table of
/// addresses.
Result<void> ScratchContents::fill_around(const SavedMemory& saved, const Range& range, std::uint64_t word,
                                          std::span<const Run> runs) const
{
    return rewrite(saved, {range.from, range.to}, [&](std::uint64_t offset, Bytes& piece) -> Result<void> {
        const std::uint64_t end = offset + piece.size();
        std::uint64_t filled = offset;
        const auto fill_to = [&](std::uint64_t to) {
            for (; filled < to; ++filled)
                piece[filled - offset] = static_cast<std::byte>(word >> (8 * ((filled - range.from) % sizeof word)));
        };
        for (auto run = std::ranges::lower_bound(runs, offset, std::less{}, &Run::to);
             run != runs.end() && run->from < end; ++run) {
            fill_to(run->from);
            filled = std::max(filled, run->to);
        }
        fill_to(end);
        return {};
    });
}

Result<void> ScratchContents::rewrite(const SavedMemory& saved, const Run& part,
                                      const std::function<Result<void>(std::uint64_t, Bytes&)>& change) const
{
    for (std::uint64_t from = part.from; from < part.to; from += k_piece) {
        Bytes piece(std::min(part.to - from, k_piece));
        if (auto read = m_device.download(piece, saved.copy.address + from); !read) return read;
        if (auto changed = change(from, piece); !changed) return changed;
        if (auto written = m_device.upload(saved.memory.address + from, piece); !written) return written;
    }
    return {};
}

Result<void> ScratchContents::put_back()
{
    Result<void> result;
    if (std::exchange(m_is_back, true)) return result;
    for (const SavedMemory& saved : m_saved) { // goes on after an error
        auto written = m_device.bulk().copy(saved.memory.address, saved.copy.address, saved.memory.size);
        if (!written && result) result = written;
    }
    return result;
}

Result<bool> ScratchContents::matters(const Range& range, Fill with, std::span<const Range> kept,
                                      const std::function<Result<bool>()>& accepts)
{
    if (range.from >= range.to) return false;
    // The results of a graph that vary may be outside the spread now and then. The results of a graph that reads the
    // range are outside it each time.
    for (std::size_t attempt = 0; attempt < k_attempts; ++attempt) {
        if (auto filled = fill(range, with, kept); !filled) return std::unexpected(filled.error());
        auto accepted = accepts();
        if (!accepted) return accepted;
        if (*accepted) return false;
    }
    return true;
}

/// Halves the range as long as one half alone changes the results.
Result<ScratchContents::Range> ScratchContents::narrowed(Range range, Fill with, std::span<const Range> kept,
                                                         const std::function<Result<bool>()>& accepts)
{
    while (range.to - range.from > k_unit) {
        const std::uint64_t middle = range.from + ((range.to - range.from) / 2 + k_unit - 1) / k_unit * k_unit;
        const Range halves[] = {{range.scratch, range.from, middle}, {range.scratch, middle, range.to}};
        bool is_narrower = false;
        for (const Range& half : halves) {
            auto does = matters(half, with, kept, accepts);
            if (!does) return std::unexpected(does.error());
            if (!*does) continue;
            range = half;
            is_narrower = true;
            break;
        }
        if (!is_narrower) break;
    }
    return range;
}

Result<void> ScratchContents::add_ranges(std::size_t scratch, Fill with, std::vector<Range>& found,
                                         const std::function<Result<bool>()>& accepts)
{
    const Range all{scratch, 0, m_saved[scratch].memory.size};
    while (true) {
        const auto does = matters(all, with, found, accepts);
        if (!does) return std::unexpected(does.error());
        if (!*does) return {};
        auto range = narrowed(all, with, found, accepts);
        if (!range) return std::unexpected(range.error());
        const bool is_known = std::ranges::any_of(found, [&](const Range& one) {
            return one.scratch == scratch && one.from == range->from && one.to == range->to;
        });
        if (is_known || found.size() == k_most_ranges)
            return fail(ErrorCode::not_recordable,
                        "it reads more than {} parts of scratch '{}' before it writes them: declare them as states",
                        found.size(), m_saved[scratch].name);
        found.push_back(*range);
    }
}

Result<std::vector<ScratchContents::Range>> ScratchContents::read_before_written(
    const std::function<Result<bool>()>& accepts)
{
    std::vector<Range> found;
    for (const Fill with : {Fill::zeros, Fill::whole_numbers, Fill::real_numbers})
        for (std::size_t i = 0; i < m_saved.size(); ++i)
            if (auto added = add_ranges(i, with, found, accepts); !added) return std::unexpected(added.error());
    return found;
}

/// Zeroed memory that replaces the live memory that words point into.
class ScratchContents::ZeroedMemory {
public:
    ZeroedMemory(backends::Device& device, std::span<const backends::AddressWindow> windows) noexcept
        : m_device(device), m_windows(windows), m_most(device.free_memory() / 2)
    {
    }
    ZeroedMemory(const ZeroedMemory&) = delete;
    ZeroedMemory& operator=(const ZeroedMemory&) = delete;
    ~ZeroedMemory()
    {
        for (const auto& [original, zeros] : m_all) m_device.release(zeros);
    }
    /// Returns the address in the replacing memory for `address`. Returns 0 if no memory is at the address, because no
    /// kernel can then follow it.
    [[nodiscard]] Result<std::uint64_t> of(std::uint64_t address)
    {
        const auto at = [address](const auto& one) { return address - one.first.address.flat() < one.first.size; };
        auto known = std::ranges::find_if(m_all, at);
        if (known == m_all.end()) {
            const auto original = m_device.recording().allocation_at(address);
            if (!original) return std::uint64_t{0};
            if (original->size > m_most - m_taken)
                return fail(ErrorCode::out_of_memory, "an allocation of {} bytes", original->size);
            // A kernel that used zeros as addresses would destroy the process's context.
            const auto nested = m_device.bulk().words_in(*original, m_windows, 1);
            if (!nested) return std::unexpected(nested.error());
            if (nested->total > 0)
                return fail(ErrorCode::unsupported, "an allocation of {} bytes that holds addresses", original->size);
            auto zeros = m_device.allocate(original->size);
            if (!zeros) return std::unexpected(zeros.error());
            m_taken += original->size;
            m_all.emplace_back(*original, MemoryRef{zeros->address, original->size});
            known = std::prev(m_all.end());
            if (auto filled = m_device.bulk().fill(known->second, std::byte{0}); !filled)
                return std::unexpected(filled.error());
        }
        return address - known->first.address.flat() + known->second.address.flat();
    }

private:
    backends::Device& m_device;
    std::span<const backends::AddressWindow> m_windows;
    std::uint64_t m_most = 0, m_taken = 0;
    std::vector<std::pair<MemoryRef, MemoryRef>> m_all;
};

/// Words may overlap; the later word's bytes win.
Result<void> ScratchContents::move_addresses(const SavedMemory& saved, ZeroedMemory& elsewhere) const
{
    std::vector<backends::AddressWord> moved;
    moved.reserve(saved.addresses.size());
    std::uint64_t before = 0; // the previous word: tables repeat values, and the driver's lookups are slow
    Result<std::uint64_t> other = std::uint64_t{0};
    for (const auto& word : saved.addresses) {
        if (std::exchange(before, word.value) != word.value) other = elsewhere.of(word.value);
        if (!other)
            return fail(ErrorCode::not_recordable,
                        "scratch '{}' held at byte {} the address {:#x} before the graph ran, and whether the graph "
                        "uses that address cannot be tested ({}): clear the scratch before the capture",
                        saved.name, word.offset, word.value, other.error().message);
        moved.push_back({word.offset, *other});
    }
    const Run all{moved.front().offset, moved.back().offset + sizeof(std::uint64_t)};
    return rewrite(saved, all, [&](std::uint64_t offset, Bytes& piece) -> Result<void> {
        const auto ends_by = [](const backends::AddressWord& word) { return word.offset + sizeof word.value - 1; };
        for (auto word = std::ranges::lower_bound(moved, offset, std::less{}, ends_by);
             word != moved.end() && word->offset < offset + piece.size(); ++word) {
            const auto bytes = std::as_bytes(std::span(&word->value, 1));
            for (std::size_t i = 0; i < bytes.size(); ++i)
                if (const std::uint64_t at = word->offset + i; at >= offset && at < offset + piece.size())
                    piece[at - offset] = bytes[i];
        }
        return {};
    });
}

Result<void> ScratchContents::check_addresses(const std::function<Result<bool>()>& accepts)
{
    ZeroedMemory elsewhere{m_device, m_windows};
    if (auto restored = restore(); !restored) return restored;
    const SavedMemory* first = nullptr;
    for (const SavedMemory& saved : m_saved) {
        if (saved.addresses.empty()) continue;
        if (first == nullptr) first = &saved;
        if (auto moved = move_addresses(saved, elsewhere); !moved) return moved;
    }
    if (first == nullptr) return {};
    auto accepted = accepts();
    if (!accepted) return std::unexpected(accepted.error());
    if (*accepted) return {};
    return fail(
        ErrorCode::not_recordable,
        "its results depend on addresses that scratch held before the graph ran (the first is {:#x}, at byte {} of "
        "'{}'), but a replay has other memory: write such tables in the graph, or pass pointers as kernel parameters",
        first->addresses[0].value, first->addresses[0].offset, first->name);
}

std::string ScratchContents::text(const Range& range) const
{
    return fmt::format("bytes {} to {} of scratch '{}'", range.from, range.to, m_saved[range.scratch].name);
}

MemoryRef ScratchContents::memory(const Range& range) const
{
    return {m_saved[range.scratch].memory.address + range.from, range.to - range.from};
}

Result<bool> ScratchContents::is_unchanged(const Range& range) const
{
    const SavedMemory& saved = m_saved[range.scratch];
    const auto differs = m_device.bulk().first_difference(saved.memory.address + range.from,
                                                          saved.copy.address + range.from, range.to - range.from);
    if (!differs) return std::unexpected(differs.error());
    return !differs->has_value();
}

std::optional<std::uint64_t> ScratchContents::address_in(const Range& range) const
{
    for (const auto& word : m_saved[range.scratch].addresses)
        if (word.offset + sizeof word.value > range.from && word.offset < range.to) return word.offset - range.from;
    return std::nullopt;
}

} // namespace warmgraph
