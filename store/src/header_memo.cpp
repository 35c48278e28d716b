#include "header_memo.hpp"

#include <utility>

namespace warmgraph::store {
namespace {

constexpr std::uint64_t k_most_bytes = 16 << 20; ///< host memory; a model of 16 layers has headers of 150 KB

/// The approximate host memory of a header.
std::uint64_t bytes_of(const EntryHeader& header)
{
    std::uint64_t bytes = sizeof(header) + header.info.verification.size();
    for (const auto& fact : header.guards.facts) bytes += sizeof(fact) + fact.name.size() + fact.value.size();
    for (const auto& tensor : header.guards.tensors)
        bytes += sizeof(tensor) + tensor.name.size() + 2 * tensor.sizes.size() * sizeof(std::int64_t);
    return bytes + header.guards.values.size() * sizeof(header.guards.values.front());
}

} // namespace

Header HeaderMemo::find(const EntryKey& key, const Stamp& stamp) const
{
    const std::scoped_lock lock{m_mutex};
    const auto kept = m_kept.find(key);
    return kept != m_kept.end() && kept->second.stamp == stamp ? kept->second.header : nullptr;
}

bool HeaderMemo::knows(const FunctionKey& function) const
{
    const std::scoped_lock lock{m_mutex};
    const auto first = m_kept.lower_bound({function, {}});
    return first != m_kept.end() && first->first.function == function;
}

void HeaderMemo::keep(const Stamp& stamp, Header header)
{
    if (stamp.version == 0) return;
    const EntryKey key = header->key;
    const std::uint64_t bytes = bytes_of(*header);
    MemoItem one{stamp, std::move(header), bytes};
    if (one.bytes > k_most_bytes) return;
    const std::scoped_lock lock{m_mutex};
    if (const auto before = m_kept.find(key); before != m_kept.end()) {
        m_bytes -= before->second.bytes;
        m_kept.erase(before);
    }
    if (m_bytes + one.bytes > k_most_bytes) {
        m_kept.clear();
        m_bytes = 0;
    }
    m_bytes += one.bytes;
    m_kept.emplace(key, std::move(one));
}

} // namespace warmgraph::store
