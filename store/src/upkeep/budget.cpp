#include "upkeep/budget.hpp"

#include <algorithm>
#include <limits>

#include "warmgraph/base/log.hpp"
#include "warmgraph/base/units.hpp"

namespace warmgraph::store {
namespace {

constexpr std::chrono::milliseconds k_time_of_a_writer{100};
/// After this time the remaining work is left to the next process or to `warmgraph prune`.
constexpr std::chrono::minutes k_time_of_the_thread{1};
constexpr std::chrono::milliseconds k_time_at_the_end{250};

constexpr std::string_view k_another_is_at_it = "another process is making room";

/// A tenth below each exceeded limit, so that not every publish has to make room. Limits that hold stay as they are.
std::uint64_t goal(std::uint64_t used, std::uint64_t most) noexcept { return used > most ? most - most / 10 : most; }
Budget goal(const Inventory& inventory, Budget most)
{
    const Removal::Amount total = inventory.total();
    most.bytes = goal(total.bytes, most.bytes);
    most.files = goal(total.files, most.files);
    for (auto& [kind, bytes] : most.kinds) bytes = goal(inventory.total(kind).bytes, bytes);
    return most;
}

bool fits(const Inventory& inventory, const Budget& most)
{
    const Removal::Amount total = inventory.total();
    return total.bytes <= most.bytes && total.files <= most.files &&
           std::ranges::all_of(most.kinds,
                               [&](const auto& of) { return inventory.total(of.first).bytes <= of.second; });
}

/// The bytes that may be written before the next look. Less than all room, because other processes write as well.
std::uint64_t room(std::uint64_t used, std::uint64_t all) noexcept
{
    constexpr std::uint64_t k_part = 16; // so that a full folder is not searched at each publish
    return used < all ? std::min(all - used, std::max(all / k_part, std::uint64_t{1})) : all / k_part;
}

/// Returns now + more + 1, or the maximum if that overflows (a budget without a limit).
std::uint64_t after(std::uint64_t now, std::uint64_t more) noexcept
{
    return more < std::numeric_limits<std::uint64_t>::max() - now ? now + more + 1
                                                                  : std::numeric_limits<std::uint64_t>::max();
}

/// The clock counts nanoseconds from its epoch and ends 292 years before it; `age` may reach further back.
std::chrono::system_clock::time_point before(std::chrono::system_clock::time_point now, std::chrono::seconds age)
{
    using std::chrono::duration_cast;
    return age >= duration_cast<std::chrono::seconds>(now.time_since_epoch()) ? std::chrono::system_clock::time_point{}
                                                                              : now - age;
}

} // namespace

const Budget& BudgetKeeper::most()
{
    std::call_once(m_is_resolved, [&] { m_most = resolve(m_tier.disk().options.budget, m_tier.disk().files); });
    return m_most;
}

bool BudgetKeeper::is_time() const
{
    const Removal::Amount written = m_tier.written();
    return written.bytes >= m_next_look.bytes || written.files >= m_next_look.files ||
           std::ranges::any_of(m_next_looks, [&](const auto& of) { return m_tier.written(of.first) >= of.second; });
}

void BudgetKeeper::look_again(const Removal::Amount& total, const KindBytes& kinds)
{
    const Budget& most = this->most();
    const Removal::Amount written = m_tier.written();
    m_next_look = {after(written.files, room(total.files, most.files)),
                   after(written.bytes, room(total.bytes, most.bytes))};
    for (const auto& [kind, bytes] : most.kinds)
        m_next_looks[kind] = after(m_tier.written(kind), room(kinds.at(kind), bytes));
}

Result<PruneResult> BudgetKeeper::prune_locked(Inventory inventory, const PruneGoal& goal)
{
    const Disk& disk = m_tier.disk();
    const auto lock = disk.files.try_lock(k_prune_lock, disk.modes.file);
    if (!lock) return std::unexpected(lock.error());
    if (*lock) return store::prune(m_tier, std::move(inventory), goal);
    PruneResult nothing;
    nothing.before = nothing.after = goal.only ? inventory.total(*goal.only) : inventory.total();
    nothing.why_not = k_another_is_at_it;
    return nothing;
}

void BudgetKeeper::warn_where_over(const PruneResult& pruned)
{
    const Budget& most = this->most();
    std::string over;
    if (pruned.after.bytes > most.bytes)
        over = fmt::format("{}, and its budget is {}", size_text(pruned.after.bytes), size_text(most.bytes));
    else if (pruned.after.files > most.files)
        over = fmt::format("{} files, and its budget is {}", count_text(pruned.after.files), count_text(most.files));
    for (const auto& [kind, bytes] : most.kinds)
        if (const auto left = pruned.left.find(kind); over.empty() && left != pruned.left.end() && left->second > bytes)
            over = fmt::format("{} of {}, but their budget is {}", size_text(left->second), to_string(kind),
                               size_text(bytes));
    if (over.empty() || m_has_warned || pruned.why_not == k_another_is_at_it) return;
    m_has_warned = true;
    log().warn(
        "the cache folder {} holds {}: {}", m_tier.disk().layout.root().string(), over,
        !pruned.why_not.empty() ? pruned.why_not
        : pruned.in_use > 0
            ? "running processes use the files that would be removed, or the file system has no locks that show this"
            : "the other files cannot be removed");
}

Result<bool> BudgetKeeper::keep_within(const TimeLimit& limit, const OnEvicted& on_evicted)
{
    const Budget& most = this->most();
    auto inventory = take_inventory(m_tier.disk(), limit);
    if (!inventory) return std::unexpected(inventory.error());
    KindBytes kinds;
    for (const auto& [kind, bytes] : most.kinds) kinds[kind] = inventory->total(kind).bytes;
    const bool is_whole = inventory->is_whole;
    look_again(inventory->total(), kinds);
    if (fits(*inventory, most)) return is_whole;
    const Budget wanted = goal(*inventory, most);
    const auto pruned = prune_locked(std::move(*inventory), {.most = wanted, .limit = limit});
    if (!pruned) return std::unexpected(pruned.error());
    // A kind now holds at most its goal, or nothing more could be removed.
    for (auto& [kind, bytes] : kinds) bytes = std::min(bytes, wanted.kinds.at(kind));
    look_again(pruned->after, kinds);
    log().info("the cache held {} bytes in {} files, its budget is {} and {}: {} files were removed{}{}",
               pruned->before.bytes, pruned->before.files, most.bytes, most.files, pruned->removed.files(),
               pruned->why_not.empty() ? "" : "; ", pruned->why_not);
    if (const auto& entries = pruned->removed.of(ArtifactKind::entries); entries.files > 0) on_evicted(entries);
    const bool was_ended = !is_whole || (limit.is_over(m_tier.disk().clock) && !pruned->why_not.empty());
    if (!was_ended) warn_where_over(*pruned);
    return !was_ended;
}

void BudgetKeeper::keep(const OnEvicted& on_evicted) noexcept
try {
    const std::unique_lock guard(m_mutex, std::try_to_lock);
    if (!guard || !is_time()) return; // another thread has the lock and is making room
    const auto done = keep_within({m_tier.disk().clock.steady() + k_time_of_a_writer}, on_evicted);
    if (!done) log().debug("budget: {}", done.error().message);
    if (done && !*done) continue_in_thread(on_evicted);
} catch (const std::exception& error) {
    log().debug("budget: {}", error.what());
}

void BudgetKeeper::continue_in_thread(const OnEvicted& on_evicted)
{
    const std::scoped_lock guard(m_thread_mutex);
    if (m_is_ending || m_thread.joinable()) return;
    m_thread = std::jthread([this, on_evicted](const std::stop_token& stop) {
        try {
            const std::scoped_lock work(m_mutex);
            const auto done = keep_within({m_tier.disk().clock.steady() + k_time_of_the_thread, stop}, on_evicted);
            if (!done) log().debug("budget: {}", done.error().message);
            if (done && !*done && !stop.stop_requested())
                log().warn("the cache folder {} could not be scanned within a minute, so its budget may be exceeded: "
                           "run `warmgraph prune`",
                           m_tier.disk().layout.root().string());
        } catch (const std::exception& error) {
            log().debug("budget: {}", error.what());
        }
    });
    m_end_thread.emplace([this] { end(); });
}

void BudgetKeeper::end() noexcept
{
    std::jthread thread;
    {
        const std::scoped_lock guard(m_thread_mutex);
        m_is_ending = true;
        thread = std::move(m_thread);
    } // the jthread's destructor requests a stop and waits
}

Result<void> BudgetKeeper::sweep_unused()
{
    const TimeLimit limit{m_tier.disk().clock.steady() + k_time_at_the_end};
    auto inventory = take_inventory(m_tier.disk(), limit);
    if (!inventory) return std::unexpected(inventory.error());
    constexpr auto k_all = std::numeric_limits<std::uint64_t>::max();
    const auto swept = prune_locked(std::move(*inventory), {.most = {k_all, k_all, {}}, .limit = limit});
    return swept ? Result<void>{} : std::unexpected(swept.error());
}

Result<PruneResult> BudgetKeeper::prune(const PruneRequest& request, bool is_trial)
{
    PruneGoal goal{.most = most(), .only = request.kind, .is_trial = is_trial};
    if (request.bytes && request.kind)
        goal.most.kinds[*request.kind] = *request.bytes;
    else if (request.bytes)
        goal.most.bytes = *request.bytes;
    if (request.older) goal.used_before = before(m_tier.disk().clock.wall(), *request.older);
    auto inventory = take_inventory(m_tier.disk(), goal.limit);
    if (!inventory) return std::unexpected(inventory.error());
    return is_trial ? store::prune(m_tier, std::move(*inventory), goal) : prune_locked(std::move(*inventory), goal);
}

} // namespace warmgraph::store
