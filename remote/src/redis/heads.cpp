#include "redis/heads.hpp"

#include <algorithm>

namespace warmgraph::remote::redis {

Head head_of(ByteView entry) { return {entry.size(), head_of_entry(entry)}; }

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
    if (head.bytes.size() > std::min(head.size, k_most_head)) return std::nullopt;
    return head;
}

bool suffices(const Head& head, const store::ReadLimit& extent)
{
    const std::uint64_t size = head.bytes.size();
    if (size >= std::min(store::end_of(extent), head.size)) return true;
    if (extent.whole || store::end_of(extent) > k_most_head) return false;
    return has_header(head.bytes);
}

} // namespace warmgraph::remote::redis
