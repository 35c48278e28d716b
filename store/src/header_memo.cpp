#include "header_memo.hpp"

#include <algorithm>

namespace warmgraph::store {
namespace {

constexpr std::uint64_t k_most_bytes = 16 << 20; ///< of host memory. A model of 16 layers has headers of 150 KB

/// Of host memory, about.
std::uint64_t bytes_of(const cachefmt::EntryHeader& header)
{
    std::uint64_t bytes = sizeof(header) + header.info.verification.size();
    for (const auto& fact : header.guards.facts) bytes += sizeof(fact) + fact.name.size() + fact.value.size();
    for (const auto& tensor : header.guards.tensors)
        bytes += sizeof(tensor) + tensor.name.size() + 2 * tensor.sizes.size() * sizeof(std::int64_t);
    return bytes + header.guards.values.size() * sizeof(header.guards.values.front());
}

} // namespace

std::optional<cachefmt::EntryHeader> HeaderMemo::find(const EntryKey& key, const Stamp& stamp) const
{
    const std::scoped_lock lock{m_mutex};
    const auto kept = std::ranges::find_if(m_kept, [&](const Kept& one) { return one.header.key == key; });
    return kept != m_kept.end() && kept->stamp == stamp ? std::optional{kept->header} : std::nullopt;
}

bool HeaderMemo::knows(const FunctionKey& function) const
{
    const std::scoped_lock lock{m_mutex};
    return std::ranges::any_of(m_kept, [&](const Kept& one) { return one.header.key.function == function; });
}

void HeaderMemo::keep(const Stamp& stamp, const cachefmt::EntryHeader& header)
{
    if (stamp.version == 0) return;
    const std::uint64_t bytes = bytes_of(header);
    if (bytes > k_most_bytes) return;
    std::list<Kept> one;
    one.push_back({stamp, header, bytes}); // outside the lock: it is copied
    const std::scoped_lock lock{m_mutex};
    const auto before = std::ranges::find_if(m_kept, [&](const Kept& kept) { return kept.header.key == header.key; });
    if (before != m_kept.end()) {
        m_bytes -= before->bytes;
        m_kept.erase(before);
    }
    for (; m_bytes + bytes > k_most_bytes; m_kept.pop_front()) m_bytes -= m_kept.front().bytes;
    m_bytes += bytes;
    m_kept.splice(m_kept.end(), one);
}

} // namespace warmgraph::store
