#include "warmgraph/remote/lasting_counts.hpp"

#include <algorithm>
#include <exception>

#include <unistd.h>

#include "warmgraph/base/log.hpp"
#include "warmgraph/base/sha256.hpp"

namespace warmgraph::remote {
namespace {

using store::EventKind;

/// The events that turn `before` into `now`.
store::FunctionUsage between(const Counts& before, const Counts& now)
{
    store::FunctionUsage usage;
    const std::string word = word_of(now.label);
    const auto add = [&](EventKind kind, std::uint64_t count, std::uint64_t bytes = 0, double ms = 0) {
        const auto us = static_cast<std::uint64_t>(std::max(ms, 0.0) * 1000);
        if (count != 0 || bytes != 0 || us != 0) usage.events.add(kind, word, {count, bytes, us});
    };
    add(EventKind::hit, now.hits - before.hits, now.bytes_read - before.bytes_read, now.read_ms - before.read_ms);
    // The bytes that were left become fewer when the rest of an object is fetched after all.
    add(EventKind::miss, now.misses - before.misses, now.bytes_left - std::min(now.bytes_left, before.bytes_left));
    add(EventKind::recorded, now.puts - before.puts, now.bytes_written - before.bytes_written,
        now.write_ms - before.write_ms);
    for (const auto& [code, count] : now.errors) {
        const auto was = before.errors.find(code);
        const bool is_damage = code == to_string(ErrorCode::corrupt) || code == to_string(ErrorCode::stale);
        add(is_damage                                 ? EventKind::damaged
            : code == to_string(ErrorCode::untrusted) ? EventKind::untrusted
                                                      : EventKind::refused,
            count - (was == before.errors.end() ? 0 : was->second));
    }
    return usage;
}

} // namespace

std::string word_of(std::string_view label)
{
    constexpr std::size_t k_most = 48, k_digits = 8;
    std::string word;
    const std::size_t end = label.find("://");
    if (end != std::string_view::npos) {
        word = fmt::format("{}.", label.substr(0, end));
        label.remove_prefix(end + 3);
        if (label.starts_with('/')) label.remove_prefix(1);
    }
    const std::size_t scheme = word.size();
    for (const char c : label) {
        const bool is_kept = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
                             c == '_' || c == '-';
        word += is_kept ? c : '-';
    }
    if (word.size() <= k_most && word.size() > scheme) return word;
    return fmt::format("{}-{}", word.substr(0, k_most - 1 - k_digits),
                       to_hex(sha256(as_bytes(label))).substr(0, k_digits));
}

LastingCounts::LastingCounts(store::LocalStore& store, std::vector<std::shared_ptr<RemoteTier>> remotes)
    : m_store(store), m_remotes(std::move(remotes)), m_added(m_remotes.size()), m_process(::getpid())
{
}

void LastingCounts::add() noexcept
try {
    if (::getpid() != m_process) return;
    const std::scoped_lock lock{m_mutex};
    store::FunctionUsage usage;
    for (std::size_t i = 0; i < m_remotes.size(); ++i) {
        Counts now = m_remotes[i]->counts();
        usage.events.merge(between(m_added[i], now).events);
        m_added[i] = std::move(now);
    }
    if (!usage.events.all().empty()) m_store.add_remote_usage(usage);
} catch (const std::exception& error) {
    log().debug("the counts of remotes are not kept: {}", error.what());
}

std::map<std::string, RemoteTotal> totals(const store::LocalStore& store)
{
    std::map<std::string, RemoteTotal> totals;
    const store::FunctionUsage usage = store.remote_usage();
    for (const auto& [what, tally] : usage.events.all()) {
        RemoteTotal& of = totals[what.second];
        switch (what.first) {
        case EventKind::hit: of.hits = tally.count, of.bytes_read = tally.bytes, of.read_us = tally.us; break;
        case EventKind::miss: of.misses = tally.count, of.bytes_left = tally.bytes; break;
        case EventKind::recorded: of.puts = tally.count, of.bytes_written = tally.bytes, of.write_us = tally.us; break;
        case EventKind::damaged: of.damaged = tally.count; break;
        case EventKind::untrusted: of.untrusted = tally.count; break;
        case EventKind::refused: of.errors = tally.count; break;
        case EventKind::evicted: break;
        }
    }
    return totals;
}

} // namespace warmgraph::remote
