#include "warmgraph/backends/bulk_memory.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>

#include "departure.hpp"
#include "fingerprint.hpp"
#include "warmgraph/backends/device.hpp"
#include "warmgraph/base/bytes.hpp"

namespace warmgraph::backends {
namespace {

/// Returns `high` with a changed exponent. `high` is the byte that holds most of a floating-point number's exponent.
std::byte other_exponent(std::byte high) noexcept
{
    constexpr std::byte k_sign{0x80}, k_small{0x30}, k_near_one{0x3F};
    const std::byte exponent = high & ~k_sign;
    return (high & k_sign) | (exponent < k_small ? k_near_one : exponent ^ std::byte{1});
}

enum class Next : std::uint8_t { go_on, stop };

/// Calls `use(offset, views)` for each piece, which covers the same range of each source. `room` is the size in bytes
/// of all pieces together. Each piece begins at a multiple of 8 and reaches `overlap` bytes into the next.
template <class Use>
Result<void> each_piece(Device& device, std::span<const Address> sources, std::uint64_t size, std::uint64_t room,
                        Use use, std::uint64_t overlap = 0)
{
    const std::uint64_t step = std::max<std::uint64_t>(room / sources.size() / 8 * 8, 8);
    std::vector<Bytes> buffers(sources.size(), Bytes(std::min(step + overlap, size)));
    std::vector<ByteView> views(sources.size());
    for (std::uint64_t at = 0; at < size; at += step) {
        const std::uint64_t count = std::min(step + overlap, size - at);
        for (std::size_t i = 0; i < sources.size(); ++i) {
            const auto buffer = std::span(buffers[i]).first(count);
            if (auto read = device.download(buffer, sources[i] + at); !read) return read;
            views[i] = buffer;
        }
        if (use(at, std::span<const ByteView>(views)) == Next::stop) break;
    }
    return {};
}

std::uint64_t mismatch(ByteView a, ByteView b)
{
    return static_cast<std::uint64_t>(std::ranges::mismatch(a, b).in1 - a.begin());
}

bool lies_in(std::span<const AddressWindow> merged, std::uint64_t value) noexcept
{
    const auto after = std::ranges::upper_bound(merged, value, {}, &AddressWindow::from);
    return after != merged.begin() && value < std::prev(after)->to;
}

} // namespace

void disturb(std::span<std::byte> bytes, DType dtype) noexcept
{
    const std::size_t size = size_of(dtype);
    const bool is_real = dtype == DType::f16 || dtype == DType::bf16 || dtype == DType::f32 || dtype == DType::f64;
    for (std::size_t at = is_real ? size - 1 : 0; at < bytes.size(); at += size)
        bytes[at] = is_real ? other_exponent(bytes[at]) : bytes[at] ^ std::byte{1};
}

std::vector<AddressWindow> merge(std::span<const AddressWindow> windows)
{
    std::vector<AddressWindow> sorted(windows.begin(), windows.end());
    std::erase_if(sorted, [](const AddressWindow& window) { return window.from >= window.to; });
    std::ranges::sort(sorted);
    std::vector<AddressWindow> merged;
    for (const AddressWindow& window : sorted) {
        if (merged.empty() || window.from > merged.back().to)
            merged.push_back(window);
        else
            merged.back().to = std::max(merged.back().to, window.to);
    }
    return merged;
}

Result<void> BulkMemory::copy(const Address& to, const Address& from, std::uint64_t size)
{
    Result<void> written;
    const auto write = [&](std::uint64_t at, std::span<const ByteView> piece) {
        written = m_device.upload(to + at, piece[0]);
        return written ? Next::go_on : Next::stop;
    };
    if (auto read = each_piece(m_device, {&from, 1}, size, m_piece, write); !read) return read;
    return written;
}

Result<void> BulkMemory::fill(const MemoryRef& memory, std::byte pattern)
{
    const std::uint64_t step = std::max<std::uint64_t>(m_piece, 1);
    const Bytes piece(std::min(memory.size, step), pattern);
    for (std::uint64_t at = 0; at < memory.size; at += step) {
        const auto bytes = ByteView(piece).first(std::min(memory.size - at, step));
        if (auto filled = m_device.upload(memory.address + at, bytes); !filled) return filled;
    }
    return {};
}

Result<void> BulkMemory::disturb(const MemoryRef& memory, DType dtype)
{
    Result<void> written;
    const auto change = [&](std::uint64_t at, std::span<const ByteView> piece) {
        Bytes bytes(piece[0].begin(), piece[0].end());
        backends::disturb(bytes, dtype);
        written = m_device.upload(memory.address + at, bytes);
        return written ? Next::go_on : Next::stop;
    };
    // Half the size, because there are two copies of a piece.
    if (auto read = each_piece(m_device, {&memory.address, 1}, memory.size, m_piece / 2, change); !read) return read;
    return written;
}

Result<std::optional<std::uint64_t>> BulkMemory::first_difference(const Address& a, const Address& b,
                                                                  std::uint64_t size)
{
    std::optional<std::uint64_t> found;
    const auto compare = [&](std::uint64_t at, std::span<const ByteView> pieces) {
        if (std::memcmp(pieces[0].data(), pieces[1].data(), pieces[0].size()) == 0) return Next::go_on;
        found = at + mismatch(pieces[0], pieces[1]);
        return Next::stop;
    };
    if (auto read = each_piece(m_device, std::array{a, b}, size, m_piece, compare); !read)
        return std::unexpected(read.error());
    return found;
}

Result<std::optional<BulkFinding>> BulkMemory::run(std::span<const BulkStep> steps)
{
    for (std::size_t i = 0; i < steps.size(); ++i) {
        const BulkStep& step = steps[i];
        Result<void> done;
        Result<std::optional<std::uint64_t>> found = std::nullopt;
        switch (step.what) {
        case BulkStep::What::copy: done = copy(step.memory.address, step.other, step.memory.size); break;
        case BulkStep::What::fill: done = fill(step.memory, step.pattern); break;
        case BulkStep::What::expect_same:
            found = first_difference(step.memory.address, step.other, step.memory.size);
            break;
        case BulkStep::What::expect_filled: found = first_other(step.memory, step.pattern); break;
        }
        if (!done) return std::unexpected(done.error());
        if (!found) return std::unexpected(found.error());
        if (*found) return BulkFinding{i, **found};
    }
    return std::nullopt;
}

Result<std::vector<Fingerprint>> BulkMemory::fingerprints(std::span<const MemoryRef> memory)
{
    std::vector<Fingerprint> result;
    for (const MemoryRef& one : memory) {
        auto found = fingerprint(one);
        if (!found) return std::unexpected(found.error());
        result.push_back(*found);
    }
    return result;
}

Result<std::optional<std::uint64_t>> BulkMemory::first_other(const MemoryRef& memory, std::byte pattern)
{
    std::optional<std::uint64_t> found;
    const auto compare = [&](std::uint64_t at, std::span<const ByteView> pieces) {
        const ByteView piece = pieces[0];
        // All bytes are the pattern if the first one is and each byte equals the next.
        if (piece[0] == pattern && std::memcmp(piece.data(), piece.data() + 1, piece.size() - 1) == 0)
            return Next::go_on;
        found = at + static_cast<std::uint64_t>(
                         std::ranges::find_if(piece, [&](std::byte one) { return one != pattern; }) - piece.begin());
        return Next::stop;
    };
    if (auto read = each_piece(m_device, {&memory.address, 1}, memory.size, m_piece, compare); !read)
        return std::unexpected(read.error());
    return found;
}

Result<std::uint64_t> BulkMemory::check_departure(std::span<const Address> others, DType dtype, std::uint64_t elements,
                                                  double roundings)
{
    if (others.empty() || others.size() > k_most_others)
        return fail(ErrorCode::invalid_argument, "{} regions are given to compare with, expected 1 to {}",
                    others.size(), k_most_others);
    if (std::isnan(roundings) || roundings < 0)
        return fail(ErrorCode::invalid_argument, "the tolerance is {} roundings, expected 0 or more", roundings);
    if (elements > std::numeric_limits<std::uint64_t>::max() / size_of(dtype))
        return fail(ErrorCode::invalid_argument, "{} elements of {} are larger than the address space", elements,
                    to_string(dtype));
    return elements * size_of(dtype);
}

Result<Departure> BulkMemory::departure(const Address& candidate, std::span<const Address> others, DType dtype,
                                        std::uint64_t elements, double roundings)
{
    const auto size = check_departure(others, dtype, elements, roundings);
    if (!size) return std::unexpected(size.error());
    std::vector<Address> sources{candidate};
    sources.insert(sources.end(), others.begin(), others.end());
    Departure departure;
    const auto compare = [&](std::uint64_t at, std::span<const ByteView> pieces) {
        add_departures(departure, pieces[0], pieces.subspan(1), dtype, at / size_of(dtype), roundings);
        return Next::go_on;
    };
    if (auto read = each_piece(m_device, sources, *size, m_piece, compare); !read) return std::unexpected(read.error());
    return departure;
}

Result<Fingerprint> BulkMemory::fingerprint(const MemoryRef& memory)
{
    Fingerprint sum;
    const auto add = [&](std::uint64_t at, std::span<const ByteView> pieces) {
        add_words(sum, pieces[0], at);
        return Next::go_on;
    };
    if (auto read = each_piece(m_device, {&memory.address, 1}, memory.size, m_piece, add); !read)
        return std::unexpected(read.error());
    return finish(sum, memory.size);
}

Result<void> BulkMemory::check_windows(std::span<const AddressWindow> windows)
{
    if (windows.size() <= k_most_windows) return {};
    return fail(ErrorCode::invalid_argument, "{} address ranges are given to search for, expected at most {}",
                windows.size(), k_most_windows);
}

Result<BulkMemory::AddressMatches> BulkMemory::words_in(const MemoryRef& memory, std::span<const AddressWindow> windows,
                                                        std::size_t most)
{
    constexpr std::uint64_t k_word = 8, k_stride = 4;
    if (auto checked = check_windows(windows); !checked) return std::unexpected(checked.error());
    AddressMatches found;
    const auto merged = merge(windows);
    if (merged.empty()) return found;
    const auto search = [&](std::uint64_t begin, std::span<const ByteView> pieces) {
        for (std::uint64_t at = 0; at + k_word <= pieces[0].size(); at += k_stride) {
            const auto value = load<std::uint64_t>(pieces[0], at);
            if (value < merged.front().from || value >= merged.back().to || !lies_in(merged, value)) continue;
            ++found.total;
            if (found.words.size() < most) found.words.push_back({begin + at, value});
        }
        return Next::go_on;
    };
    // Pieces overlap, because the last word of a piece may reach half into the next.
    if (auto read = each_piece(m_device, {&memory.address, 1}, memory.size, m_piece, search, k_word - k_stride); !read)
        return std::unexpected(read.error());
    return found;
}

} // namespace warmgraph::backends
