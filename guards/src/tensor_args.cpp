#include <algorithm>
#include <bit>
#include <numeric>

#include "alias_sweep.hpp"
#include "warmgraph/guards/call_guard.hpp"

namespace warmgraph::guards {

namespace {

constexpr std::uint64_t k_all = ~std::uint64_t{0};

std::uint64_t saturating_add(std::uint64_t a, std::uint64_t b) noexcept
{
    std::uint64_t sum = 0;
    return __builtin_add_overflow(a, b, &sum) ? k_all : sum;
}

std::uint64_t saturating_multiply(std::uint64_t a, std::uint64_t b) noexcept
{
    std::uint64_t product = 0;
    return __builtin_mul_overflow(a, b, &product) ? k_all : product;
}

std::uint64_t magnitude(std::int64_t value) noexcept
{
    return value < 0 ? std::uint64_t{0} - static_cast<std::uint64_t>(value) : static_cast<std::uint64_t>(value);
}

std::size_t rank_of(const TensorArg& tensor) noexcept
{
    return std::min<std::size_t>(tensor.rank, cachefmt::k_max_rank);
}

} // namespace

std::uint64_t extent_bytes(const TensorArg& tensor) noexcept
{
    std::uint64_t last = 0; // index of the last element
    for (std::size_t i = 0; i < rank_of(tensor); ++i) {
        if (tensor.sizes[i] <= 0) return 0;
        last = saturating_add(
            last, saturating_multiply(static_cast<std::uint64_t>(tensor.sizes[i] - 1), magnitude(tensor.strides[i])));
    }
    return saturating_multiply(saturating_add(last, 1), size_of(tensor.dtype));
}

std::uint32_t alignment_class(std::uint64_t offset) noexcept
{
    const std::uint64_t lowest = offset & (~offset + 1); // 0 if the offset is 0
    return lowest == 0 ? cachefmt::k_max_alignment
                       : static_cast<std::uint32_t>(std::min<std::uint64_t>(lowest, cachefmt::k_max_alignment));
}

void sweep_aliases(std::span<const TensorArg> tensors, std::span<std::uint32_t> order,
                   std::span<std::uint32_t> groups) noexcept
{
    std::iota(groups.begin(), groups.end(), 0U);
    std::iota(order.begin(), order.end(), 0U);
    const auto end =
        std::remove_if(order.begin(), order.end(), [&](std::uint32_t i) { return extent_bytes(tensors[i]) == 0; });
    std::sort(order.begin(), end, [&](std::uint32_t a, std::uint32_t b) {
        return tensors[a].base != tensors[b].base ? tensors[a].base < tensors[b].base
                                                  : tensors[a].offset < tensors[b].offset;
    });
    // Sorted by start, overlapping ranges form a run. The run ends at a range that starts at or after all ends so far.
    for (auto run = order.begin(); run != end;) {
        const std::uint64_t base = tensors[*run].base;
        std::uint64_t run_end = 0;
        std::uint32_t leader = *run;
        auto next = run;
        do {
            run_end = std::max(run_end, saturating_add(tensors[*next].offset, extent_bytes(tensors[*next])));
            leader = std::min(leader, *next);
            ++next;
        } while (next != end && tensors[*next].base == base && tensors[*next].offset < run_end);
        for (; run != next; ++run) groups[*run] = leader;
    }
}

std::vector<std::uint32_t> alias_groups(std::span<const TensorArg> tensors)
{
    std::vector<std::uint32_t> order(tensors.size());
    std::vector<std::uint32_t> groups(tensors.size());
    sweep_aliases(tensors, order, groups);
    return groups;
}

void guard_distances(std::span<TensorSpec> specs, std::span<const TensorArg> tensors)
{
    std::vector<std::uint8_t> is_shared(specs.size());
    for (std::size_t i = 0; i < specs.size(); ++i)
        if (specs[i].alias_group != i) is_shared[i] = is_shared[specs[i].alias_group] = 1;
    for (std::size_t i = 0; i < specs.size(); ++i)
        if (is_shared[i] != 0)
            specs[i].distance = static_cast<std::int64_t>(tensors[i].offset - tensors[specs[i].alias_group].offset);
}

void forget_distances(std::span<TensorSpec> specs) noexcept
{
    for (TensorSpec& spec : specs) spec.distance.reset();
}

std::vector<TensorSpec> describe(std::span<const TensorArg> tensors, std::span<const std::string> names,
                                 const std::string& device_prefix)
{
    const std::vector<std::uint32_t> groups = alias_groups(tensors);
    std::vector<TensorSpec> specs;
    specs.reserve(tensors.size());
    for (std::size_t i = 0; i < tensors.size(); ++i) {
        const TensorArg& tensor = tensors[i];
        const auto rank = static_cast<std::ptrdiff_t>(rank_of(tensor));
        specs.push_back({.name = names[i],
                         .dtype = tensor.dtype,
                         .sizes = {tensor.sizes.begin(), tensor.sizes.begin() + rank},
                         .strides = {tensor.strides.begin(), tensor.strides.begin() + rank},
                         .device = device_prefix + std::to_string(tensor.device),
                         .alignment = extent_bytes(tensor) == 0 ? 1 : alignment_class(tensor.offset),
                         .alias_group = groups[i]});
    }
    return specs;
}

} // namespace warmgraph::guards
