#include "validate_header.hpp"

#include <bit>
#include <cmath>

#include "describe.hpp"
#include "footprint.hpp"

namespace warmgraph::cachefmt {
namespace {

constexpr std::uint64_t k_extent_max = 1ULL << 48; // limit for one tensor's bytes, as for regions

Result<void> check_facts(const std::vector<Fact>& facts)
{
    for (std::size_t i = 0; i < facts.size(); ++i) {
        if (facts[i].name.empty()) return fail(ErrorCode::corrupt, "fact {} has no name", i);
        if (facts[i].role > Role::advisory)
            return fail(ErrorCode::corrupt, "fact '{}': role {} is unknown", printable(facts[i].name),
                        static_cast<int>(facts[i].role));
        if (i > 0 && !(facts[i - 1].name < facts[i].name))
            return fail(ErrorCode::corrupt, "fact '{}' is repeated or out of order, facts are sorted by name",
                        printable(facts[i].name));
    }
    return {};
}

bool extent_fits(const TensorSpec& tensor)
{
    std::uint64_t last = 0; // index of the last element; at most 8 steps of 2^48
    for (std::size_t i = 0; i < tensor.sizes.size(); ++i) {
        if (tensor.sizes[i] == 0) return true;
        std::uint64_t step = 0;
        if (__builtin_mul_overflow(tensor.sizes[i] - 1, tensor.strides[i], &step) || step > k_extent_max) return false;
        last += step;
    }
    return (last + 1) * size_of(tensor.dtype) <= k_extent_max;
}

Result<void> check_tensor(const TensorSpec& tensor, std::size_t index)
{
    if (tensor.name.empty()) return fail(ErrorCode::corrupt, "the tensor has no name");
    if (static_cast<std::uint8_t>(tensor.dtype) >= k_dtype_count)
        return fail(ErrorCode::corrupt, "dtype {} is unknown", static_cast<int>(tensor.dtype));
    if (tensor.sizes.size() > k_max_rank || tensor.strides.size() != tensor.sizes.size())
        return fail(ErrorCode::corrupt, "{} sizes and {} strides, expected as many of each and at most {}",
                    tensor.sizes.size(), tensor.strides.size(), k_max_rank);
    for (std::size_t i = 0; i < tensor.sizes.size(); ++i)
        if (tensor.sizes[i] < 0 || tensor.strides[i] < 0)
            return fail(ErrorCode::corrupt, "dimension {}: size {} or stride {} is negative", i, tensor.sizes[i],
                        tensor.strides[i]);
    if (!extent_fits(tensor)) return fail(ErrorCode::corrupt, "it spans more than {} bytes", k_extent_max);
    if (!std::has_single_bit(tensor.alignment) || tensor.alignment > k_max_alignment)
        return fail(ErrorCode::corrupt, "alignment {} is not a power of two up to {}", tensor.alignment,
                    k_max_alignment);
    if (tensor.alias_group > index)
        return fail(ErrorCode::corrupt, "alias group {} is not an earlier tensor", tensor.alias_group);
    return {};
}

Result<void> check_value(const ValueSpec& value)
{
    if (value.name.empty()) return fail(ErrorCode::corrupt, "the value has no name");
    if (static_cast<std::uint8_t>(value.dtype) >= k_dtype_count)
        return fail(ErrorCode::corrupt, "dtype {} is unknown", static_cast<int>(value.dtype));
    if (const std::size_t bits = 8 * size_of(value.dtype); bits < 64 && (value.bits >> bits) != 0)
        return fail(ErrorCode::corrupt, "bits {:#x} do not fit a {}", value.bits, warmgraph::to_string(value.dtype));
    return {};
}

Result<void> check_time(double ms)
{
    if (!std::isfinite(ms) || ms < 0) return fail(ErrorCode::corrupt, "{} ms is not a valid time", ms);
    return {};
}

} // namespace

Result<void> validate_header(const EntryHeader& header, const Limits& limits)
{
    if (const auto size = footprint(header); size > limits.header_bytes)
        return fail(ErrorCode::corrupt, "header takes {} bytes of memory, over the limit of {}", size,
                    limits.header_bytes);
    if (header.kind != EntryKind::graph && header.kind != EntryKind::tombstone)
        return fail(ErrorCode::corrupt, "entry kind {} is unknown", static_cast<int>(header.kind));
    if (header.recording && header.recording->part > Part::backward)
        return fail(ErrorCode::corrupt, "part {} of a recording is unknown", static_cast<int>(header.recording->part));
    for (const double time : {header.info.record_ms, header.info.answer_ms})
        if (auto ok = check_time(time); !ok) return ok;
    for (const CompiledWithin& program : header.info.compiled)
        if (auto ok = check_time(program.ms); !ok) return ok;
    const Guards& guards = header.guards;
    if (auto ok = check_facts(guards.facts); !ok) return ok;
    for (std::size_t i = 0; i < guards.tensors.size(); ++i)
        if (auto ok = check_tensor(guards.tensors[i], i); !ok)
            return within(fmt::format("guard of tensor {} '{}'", i, printable(guards.tensors[i].name)),
                          std::move(ok.error()));
    for (std::size_t i = 0; i < guards.values.size(); ++i)
        if (auto ok = check_value(guards.values[i]); !ok)
            return within(fmt::format("guard of value {} '{}'", i, printable(guards.values[i].name)),
                          std::move(ok.error()));
    return {};
}

} // namespace warmgraph::cachefmt
