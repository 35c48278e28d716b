#include "redis/heads.hpp"

#include <algorithm>

#include "warmgraph/cachefmt/codec.hpp"

namespace warmgraph::remote::redis {

Head head_of(ByteView entry)
{
    constexpr std::uint64_t k_unknown = 4 * 1024;
    const std::uint64_t extent = cachefmt::header_extent(entry).value_or(k_unknown);
    return {entry.size(), entry.first(std::min<std::uint64_t>({extent, k_head_bytes, entry.size()}))};
}

Bytes encode(const Head& head)
{
    Bytes field;
    field.reserve(sizeof head.size + head.bytes.size());
    append(field, head.size);
    append(field, head.bytes);
    return field;
}

std::optional<Head> decode_head(ByteView field)
{
    Head head;
    if (field.size() < sizeof head.size) return std::nullopt;
    head = {load<std::uint64_t>(field), field.subspan(sizeof head.size)};
    if (head.bytes.size() > std::min(head.size, k_head_bytes)) return std::nullopt;
    return head;
}

bool suffices(const Head& head, const store::ReadLimit& extent)
{
    const std::uint64_t size = head.bytes.size();
    if (size >= std::min(store::end_of(extent), head.size)) return true;
    if (extent.whole || store::end_of(extent) > k_head_bytes) return false;
    const auto header = cachefmt::header_extent(head.bytes);
    return header && *header <= size;
}

} // namespace warmgraph::remote::redis
