#include "warmgraph/cachefmt/entry.hpp"

#include <algorithm>

#include "warmgraph/base/process.hpp"

namespace warmgraph::cachefmt {

RecordingId new_recording_id()
{
    const Digest random = sha256(as_bytes(random_uuid()));
    return {load<std::uint64_t>(random.bytes, 0), load<std::uint64_t>(random.bytes, 8)};
}

std::string to_hex(const RecordingId& id) { return fmt::format("{:016x}{:016x}", id.high, id.low); }

std::string_view to_string(Part part) noexcept
{
    switch (part) {
    case Part::whole: return "whole";
    case Part::forward: return "forward";
    case Part::backward: return "backward";
    }
    return "unknown";
}

bool is_of_pair(const EntryHeader& header) noexcept
{
    return std::ranges::find(header.guards.facts, k_saved_fact, &Fact::name) != header.guards.facts.end();
}

Result<void> check_not_joined(const EntryHeader& header)
{
    if (!is_of_pair(header) || header.recording) return {};
    return fail(ErrorCode::stale,
                "it has forward and backward of a pair in one graph, as older versions of warmgraph stored "
                "them: they are recorded again as two entries, and `warmgraph prune` removes this one");
}

} // namespace warmgraph::cachefmt
