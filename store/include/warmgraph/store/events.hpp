// Counters of a function's entries, by kind of event and reason.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>

namespace warmgraph::store {

enum class EventKind : std::uint8_t {
    hit,       ///< an entry was restored and used; bytes: its device code
    miss,      ///< the reason is the first fact that differs, or why no entry was compared
    recorded,  ///< bytes: the device code that was published with the entry
    refused,   ///< the function could not be recorded, or must not be replayed
    evicted,   ///< the entry was removed to make room; bytes: its size on disk
    damaged,   ///< the entry failed verification; bytes: its size on disk
    untrusted, ///< the entry has no accepted signature, counted once per entry and process; bytes: its size on disk
};
[[nodiscard]] std::string_view to_string(EventKind kind) noexcept; ///< "hit", "miss", ...

struct Tally {
    std::uint64_t count = 0, bytes = 0;
    std::uint64_t us = 0; ///< microseconds that they took; counted for remotes alone
    bool operator==(const Tally&) const = default;
};

/// Reasons are short words: letters, digits, '.', '_' and '-', at most 48 bytes. Any other text is counted as "other",
/// and so is each reason after the first 32 of a kind. Not thread-safe.
class Events {
public:
    void add(EventKind kind, std::string_view reason, const Tally& tally);
    void merge(const Events& more);
    [[nodiscard]] const std::map<std::pair<EventKind, std::string>, Tally>& all() const noexcept { return m_tallies; }
    bool operator==(const Events&) const = default;

private:
    std::map<std::pair<EventKind, std::string>, Tally> m_tallies;
};

[[nodiscard]] inline Events one_event(EventKind kind, std::string_view reason, std::uint64_t bytes = 0)
{
    Events events;
    events.add(kind, reason, {1, bytes});
    return events;
}

} // namespace warmgraph::store
