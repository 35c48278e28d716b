#include "warmgraph/call/padding.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <set>

#include "warmgraph/cachefmt/graph.hpp"

namespace warmgraph {
namespace {

constexpr std::size_t k_most_of_an_argument = 2; ///< most padded dimensions of one argument
/// Most copies for one argument, one for each row of a padded inner dimension.
constexpr std::uint64_t k_most_pieces = 4096;

template <class T>
Bytes bytes_of(const T& value)
{
    const auto bytes = std::as_bytes(std::span{&value, 1});
    return {bytes.begin(), bytes.end()};
}

template <class T>
std::optional<Bytes> integer_bytes(double value)
{
    constexpr long double k_low = std::numeric_limits<T>::min(), k_high = std::numeric_limits<T>::max();
    if (!std::isfinite(value) || value != std::trunc(value)) return std::nullopt;
    const long double wide = value;
    if (wide < k_low || wide > k_high) return std::nullopt;
    return bytes_of(static_cast<T>(wide));
}

/// Rounds to the nearest value, ties to even (IEEE 754). Rounds to f32 first, as the frameworks do.
std::uint16_t to_half(float value) noexcept
{
    const auto bits = std::bit_cast<std::uint32_t>(value);
    const auto sign = static_cast<std::uint16_t>((bits >> 16U) & 0x8000U);
    std::uint32_t rest = bits & 0x7FFF'FFFFU;
    if (rest > 0x7F80'0000U) return sign | 0x7E00U;  // NaN
    if (rest >= 0x477F'F000U) return sign | 0x7C00U; // a value that would round to more than 65504 becomes infinity
    if (rest < 0x3880'0000U) {                       // less than 2^-14: adding in f32 rounds to subnormal steps of f16
        constexpr std::uint32_t k_magic = 126U << 23U;
        const float shifted = std::bit_cast<float>(rest) + std::bit_cast<float>(k_magic);
        return static_cast<std::uint16_t>(sign | (std::bit_cast<std::uint32_t>(shifted) - k_magic));
    }
    rest += 0xC800'0FFFU + ((rest >> 13U) & 1U); // changes the exponent's bias and adds half a step
    return static_cast<std::uint16_t>(sign | (rest >> 13U));
}

std::uint16_t to_bfloat(float value) noexcept
{
    const auto bits = std::bit_cast<std::uint32_t>(value);
    if (std::isnan(value)) return static_cast<std::uint16_t>((bits >> 16U) | 0x40U);
    return static_cast<std::uint16_t>((bits + 0x7FFFU + ((bits >> 16U) & 1U)) >> 16U);
}

/// Returns one element's bytes; nullopt if the type cannot hold the value. Floats are rounded.
std::optional<Bytes> element_of(DType type, double value)
{
    switch (type) {
    case DType::u8: return integer_bytes<std::uint8_t>(value);
    case DType::i8: return integer_bytes<std::int8_t>(value);
    case DType::u16: return integer_bytes<std::uint16_t>(value);
    case DType::i16: return integer_bytes<std::int16_t>(value);
    case DType::u32: return integer_bytes<std::uint32_t>(value);
    case DType::i32: return integer_bytes<std::int32_t>(value);
    case DType::u64: return integer_bytes<std::uint64_t>(value);
    case DType::i64: return integer_bytes<std::int64_t>(value);
    case DType::f16: return bytes_of(to_half(static_cast<float>(value)));
    case DType::bf16: return bytes_of(to_bfloat(static_cast<float>(value)));
    case DType::f32: return bytes_of(static_cast<float>(value));
    case DType::f64: return bytes_of(value);
    case DType::boolean:
        return value == 0 || value == 1 ? std::optional(bytes_of(static_cast<std::uint8_t>(value))) : std::nullopt;
    }
    return std::nullopt;
}

bool is_written(const RegionDecl& region) noexcept
{
    return region.kind == cachefmt::RegionKind::output || region.kind == cachefmt::RegionKind::state;
}

Result<void> check_sizes(const Buckets& buckets)
{
    if (buckets.multiple_of < 1 || buckets.multiple_of > profile::k_largest_size)
        return fail(ErrorCode::invalid_argument, "buckets are multiples of {}, expected 1 or more",
                    buckets.multiple_of);
    if (buckets.rule == BucketRule::learnt && (buckets.most == 0 || buckets.most > profile::k_most_buckets))
        return fail(ErrorCode::invalid_argument, "the limit of learned buckets is {}, expected 1 to {}", buckets.most,
                    profile::k_most_buckets);
    const bool is_given = buckets.rule == BucketRule::given;
    if (is_given == buckets.sizes.empty() || buckets.sizes.size() > profile::k_most_buckets)
        return fail(ErrorCode::invalid_argument, "{} bucket sizes are given, expected {}", buckets.sizes.size(),
                    is_given ? "1 to 256 with the rule `given`" : "none: they go with the rule `given`");
    for (std::size_t i = 0; i < buckets.sizes.size(); ++i) {
        const std::int64_t size = buckets.sizes[i];
        if (size < 1 || size > profile::k_largest_size || size % buckets.multiple_of != 0 ||
            (i > 0 && size <= buckets.sizes[i - 1]))
            return fail(ErrorCode::invalid_argument,
                        "the bucket size {} is not a multiple of {}, or the sizes are not in ascending order", size,
                        buckets.multiple_of);
    }
    return {};
}

Result<void> check_dimension(const PaddedDimension& padded, const Interface& interface,
                             std::map<std::string, std::set<std::size_t>>& known)
{
    const auto index = interface.region(padded.argument);
    const RegionDecl* const region = index ? &interface.regions[*index] : nullptr;
    if (region == nullptr ||
        (region->kind != cachefmt::RegionKind::input && region->kind != cachefmt::RegionKind::output))
        return fail(ErrorCode::invalid_argument,
                    "buckets name '{}', which is not an input or output: name a declared one", padded.argument);
    if (padded.dimension >= region->sizes.size())
        return fail(ErrorCode::invalid_argument,
                    "buckets name dimension {} of '{}', which is declared with {} dimensions", padded.dimension,
                    padded.argument, region->sizes.size());
    auto& dimensions = known[padded.argument];
    if (!dimensions.insert(padded.dimension).second)
        return fail(ErrorCode::invalid_argument, "buckets name dimension {} of '{}' twice", padded.dimension,
                    padded.argument);
    if (dimensions.size() > k_most_of_an_argument)
        return fail(ErrorCode::invalid_argument, "buckets name {} dimensions of '{}', at most {} are padded",
                    dimensions.size(), padded.argument, k_most_of_an_argument);
    if (!element_of(region->dtype, padded.value))
        return fail(ErrorCode::invalid_argument, "'{}' is padded with {}, which {} cannot hold", padded.argument,
                    padded.value, to_string(region->dtype));
    return {};
}

std::uint64_t elements_of(const guards::TensorArg& tensor) noexcept
{
    std::uint64_t count = 1;
    for (std::size_t d = 0; d < tensor.rank; ++d) count *= static_cast<std::uint64_t>(tensor.sizes[d]);
    return count;
}

void make_contiguous(guards::TensorArg& tensor) noexcept
{
    std::int64_t stride = 1;
    for (std::size_t d = tensor.rank; d-- > 0;) {
        tensor.strides[d] = stride;
        stride *= std::max<std::int64_t>(tensor.sizes[d], 1);
    }
}

bool is_contiguous(const guards::TensorArg& tensor) noexcept
{
    guards::TensorArg other = tensor;
    make_contiguous(other);
    for (std::size_t d = 0; d < tensor.rank; ++d)
        if (tensor.sizes[d] > 1 && tensor.strides[d] != other.strides[d]) return false;
    return true;
}

/// The runs of bytes that two contiguous tensors share.
struct Pieces {
    Pieces(const guards::TensorArg& small, const guards::TensorArg& large) : m_small(small), m_large(large)
    {
        bytes = size_of(small.dtype);
        m_outer = small.rank;
        while (m_outer > 0 && small.sizes[m_outer - 1] == large.sizes[m_outer - 1])
            bytes *= static_cast<std::uint64_t>(small.sizes[--m_outer]);
        if (m_outer > 0) bytes *= static_cast<std::uint64_t>(small.sizes[--m_outer]);
        for (std::size_t d = 0; d < m_outer; ++d) count *= static_cast<std::uint64_t>(small.sizes[d]);
        if (bytes == 0) count = 0;
    }
    /// Returns the offset of the piece's start in a tensor, in bytes.
    [[nodiscard]] std::uint64_t offset(std::uint64_t piece, const guards::TensorArg& tensor) const noexcept
    {
        std::uint64_t elements = 0;
        for (std::size_t d = m_outer; d-- > 0;) {
            const auto size = static_cast<std::uint64_t>(m_small.sizes[d]);
            elements += piece % size * static_cast<std::uint64_t>(tensor.strides[d]);
            piece /= size;
        }
        return elements * size_of(tensor.dtype);
    }
    [[nodiscard]] std::uint64_t in_small(std::uint64_t piece) const noexcept { return offset(piece, m_small); }
    [[nodiscard]] std::uint64_t in_large(std::uint64_t piece) const noexcept { return offset(piece, m_large); }

    std::uint64_t bytes = 0, count = 1;

private:
    guards::TensorArg m_small;
    const guards::TensorArg& m_large;
    std::size_t m_outer = 0; ///< number of dimensions outside one piece
};

} // namespace

Result<void> check_buckets(const Spec& spec, const Interface& interface)
{
    if (spec.buckets.size() > profile::k_most_learnt)
        return fail(ErrorCode::invalid_argument, "there are {} groups of buckets, expected at most {}",
                    spec.buckets.size(), profile::k_most_learnt);
    std::map<std::string, std::set<std::size_t>> known;
    std::map<std::string, double> values;
    for (const Buckets& buckets : spec.buckets) {
        if (auto ok = check_sizes(buckets); !ok) return ok;
        if (buckets.dimensions.empty()) return fail(ErrorCode::invalid_argument, "buckets name no dimension to pad");
        for (const PaddedDimension& padded : buckets.dimensions) {
            if (auto ok = check_dimension(padded, interface, known); !ok) return ok;
            const auto [value, is_new] = values.try_emplace(padded.argument, padded.value);
            if (!is_new && value->second != padded.value)
                return fail(ErrorCode::invalid_argument, "'{}' is padded with {} and with {}, expected one value",
                            padded.argument, value->second, padded.value);
        }
    }
    return {};
}

Padding::Padding(const Spec& spec, const Interface& interface, backends::Device& device)
    : m_interface(interface), m_device(device)
{
    for (const Buckets& buckets : spec.buckets) {
        Group& group = m_groups.emplace_back();
        group.rule = buckets.rule;
        group.buckets = buckets.sizes;
        group.wish = {{}, buckets.most, buckets.multiple_of};
        for (const PaddedDimension& padded : buckets.dimensions) {
            const std::size_t region = interface.region(padded.argument).value();
            group.wish.dimensions.push_back({padded.argument, padded.dimension});
            group.regions.push_back(region);
            if (std::ranges::find(m_regions, region) == m_regions.end()) m_regions.push_back(region);
            m_values[region] = element_of(interface.regions[region].dtype, padded.value).value();
        }
    }
}

Padding::~Padding()
{
    for (const auto& [region, memory] : m_memory) m_device.release(memory);
    for (const MemoryRef& memory : m_outgrown) m_device.release(memory);
}

bool Padding::learns() const noexcept
{
    return std::ranges::any_of(m_groups, [](const Group& group) { return group.rule == BucketRule::learnt; });
}

void Padding::stop_learning() noexcept
{
    for (Group& group : m_groups)
        if (group.rule == BucketRule::learnt) group.rule = BucketRule::fixed;
}

Result<std::int64_t> Padding::target(const Group& group, std::int64_t size, std::string& outside) const
{
    const auto up = profile::rounded(size, group.wish.multiple_of);
    if (!up)
        return fail(ErrorCode::invalid_argument, "{} is {}, which is too large to be padded",
                    to_text(group.wish.dimensions.front()), size);
    if (group.rule == BucketRule::fixed) return *up;
    if (const auto bucket = profile::bucket_for(group.buckets, size)) return *bucket;
    if (outside.empty())
        outside = group.buckets.empty()
                      ? fmt::format(
                            "no buckets are learned yet for {}: call Cache::record_profile, or start the program again",
                            to_text(group.wish.dimensions.front()))
                      : fmt::format("{} is {}, the largest bucket is {}", to_text(group.wish.dimensions.front()), size,
                                    group.buckets.back());
    return *up;
}

Result<PaddedSizes> Padding::choose(const Frame& frame) const
{
    PaddedSizes padded;
    for (const Group& group : m_groups) {
        std::optional<std::int64_t> size;
        for (std::size_t i = 0; i < group.regions.size(); ++i) {
            const auto& tensor = frame.tensors[group.regions[i]];
            const auto& [argument, index] = group.wish.dimensions[i];
            if (index >= tensor.rank)
                return fail(ErrorCode::invalid_argument, "'{}' has {} dimensions, and dimension {} is padded", argument,
                            tensor.rank, index);
            if (size && *size != tensor.sizes[index])
                return fail(ErrorCode::invalid_argument,
                            "{} is {} and {} is {}: they are padded together, expected one size",
                            to_text(group.wish.dimensions.front()), *size, to_text(group.wish.dimensions[i]),
                            tensor.sizes[index]);
            size = tensor.sizes[index];
        }
        auto up = target(group, size.value_or(0), padded.outside);
        if (!up) return std::unexpected(up.error());
        padded.sizes.push_back(*up);
    }
    return padded;
}

std::optional<PaddedSizes> Padding::choose(const profile::Sizes& sizes) const
{
    Frame frame; // only the padded arguments are filled in, because choose() uses no other arguments
    frame.tensors.resize(m_interface.regions.size());
    for (const std::size_t region : m_regions) {
        const auto given = sizes.find(m_interface.regions[region].name);
        if (given == sizes.end() || given->second.size() > cachefmt::k_max_rank) return std::nullopt;
        frame.tensors[region].rank = static_cast<std::uint8_t>(given->second.size());
        std::ranges::copy(given->second, frame.tensors[region].sizes.begin());
    }
    auto padded = choose(frame);
    return padded ? std::optional(std::move(*padded)) : std::nullopt;
}

void Padding::apply(const PaddedSizes& padded, std::size_t region, std::span<std::int64_t> sizes) const
{
    for (std::size_t g = 0; g < m_groups.size(); ++g)
        for (std::size_t i = 0; i < m_groups[g].regions.size(); ++i)
            if (m_groups[g].regions[i] == region) sizes[m_groups[g].wish.dimensions[i].index] = padded.sizes[g];
}

profile::Sizes Padding::applied(const PaddedSizes& padded, const profile::Sizes& sizes) const
{
    profile::Sizes result;
    for (const std::size_t region : m_regions) {
        const std::string& name = m_interface.regions[region].name;
        auto extents = sizes.at(name);
        apply(padded, region, extents);
        result[name] = std::move(extents);
    }
    return result;
}

/// Refuses padded arguments that share memory with a written argument: a copy would not see the writes.
Result<void> Padding::check(const Frame& frame) const
{
    for (const std::size_t region : m_regions) {
        const auto& decl = m_interface.regions[region];
        const auto& tensor = frame.tensors[region];
        if (tensor.dtype != decl.dtype)
            return fail(ErrorCode::invalid_argument, "'{}' is {}, and is padded as {}: pass the declared type",
                        decl.name, to_string(tensor.dtype), to_string(decl.dtype));
        if (!is_contiguous(tensor))
            return fail(ErrorCode::invalid_argument,
                        "'{}' is padded and not contiguous: copy it to a contiguous tensor first", decl.name);
        const std::uint64_t begin = tensor.offset, end = begin + guards::extent_bytes(tensor);
        for (std::size_t other = 0; other < frame.tensors.size(); ++other) {
            if (other == region || (!is_written(decl) && !is_written(m_interface.regions[other]))) continue;
            const auto& place = frame.tensors[other];
            if (place.base != tensor.base || begin >= place.offset + guards::extent_bytes(place) || end <= place.offset)
                continue;
            return fail(
                ErrorCode::invalid_argument,
                "'{}' is padded and overlaps '{}', and the function writes one of them: give each its own memory",
                decl.name, m_interface.regions[other].name);
        }
    }
    return {};
}

Result<MemoryRef> Padding::memory_for(std::size_t region, std::uint64_t bytes)
{
    const auto known = m_memory.find(region);
    if (known != m_memory.end() && known->second.size >= bytes) return known->second;
    // At least doubles the size, so that outgrown memory is never larger than the memory in use.
    const std::uint64_t least = known != m_memory.end() ? 2 * known->second.size : 0;
    auto memory = m_device.allocate(std::max<std::uint64_t>({bytes, least, 1}));
    if (!memory && least > bytes) memory = m_device.allocate(bytes);
    if (!memory) return within(fmt::format("'{}' cannot be padded", m_interface.regions[region].name), memory.error());
    if (known != m_memory.end()) m_outgrown.push_back(known->second);
    return m_memory[region] = *memory;
}

Result<void> Padding::pad_one(std::size_t region, Frame& frame, const PaddedSizes& padded, backends::Stream& stream)
{
    PaddedRegion saved{region, frame.tensors[region], frame.tensors[region], frame.memory[region], {}};
    apply(padded, region, saved.padded.sizes);
    make_contiguous(saved.padded);
    make_contiguous(saved.given); // strides of dimensions with one element may have any value
    const std::uint64_t bytes = elements_of(saved.padded) * size_of(saved.padded.dtype);
    if (bytes == 0) return {};
    const auto memory = memory_for(region, bytes);
    if (!memory) return std::unexpected(memory.error());
    saved.own = {memory->address, bytes};
    const Pieces pieces(saved.given, saved.padded);
    if (pieces.count > k_most_pieces)
        return fail(ErrorCode::invalid_argument,
                    "padding '{}' needs {} copies, expected at most {}: pad an outer dimension",
                    m_interface.regions[region].name, pieces.count, k_most_pieces);
    if (elements_of(saved.given) != elements_of(saved.padded))
        if (auto filled = stream.fill({saved.own.address, m_values.at(region), bytes}); !filled) return filled;
    // Copies outputs too, because a function may leave parts of an output unwritten.
    for (std::uint64_t i = 0; i < pieces.count; ++i)
        if (auto copied = stream.copy(
                {saved.from.address + pieces.in_small(i), saved.own.address + pieces.in_large(i), pieces.bytes});
            !copied)
            return copied;
    frame.memory[region] = saved.own;
    frame.tensors[region] = saved.padded;
    frame.tensors[region].base = saved.own.address.base;
    frame.tensors[region].offset = saved.own.address.offset;
    m_saved.push_back(saved);
    return {};
}

Result<void> Padding::pad(Frame& frame, const PaddedSizes& padded, backends::Stream& stream)
{
    m_saved.clear();
    if (auto ok = check(frame); !ok) return ok;
    for (const std::size_t region : m_regions)
        if (auto done = pad_one(region, frame, padded, stream); !done) return done;
    return {};
}

Result<void> Padding::give_back(backends::Stream& stream)
{
    for (const PaddedRegion& saved : m_saved) {
        if (!is_written(m_interface.regions[saved.region])) continue;
        const Pieces pieces(saved.given, saved.padded);
        for (std::uint64_t i = 0; i < pieces.count; ++i)
            if (auto copied = stream.copy(
                    {saved.own.address + pieces.in_large(i), saved.from.address + pieces.in_small(i), pieces.bytes});
                !copied)
                return within(fmt::format("give back '{}'", m_interface.regions[saved.region].name), copied.error());
    }
    m_saved.clear();
    return {};
}

} // namespace warmgraph
