#include "upkeep/budget.hpp"

#include <algorithm>
#include <limits>

#include "warmgraph/base/log.hpp"

namespace warmgraph::store {
namespace {

/// A writer waits no longer: what is left is the next one's, or `warmgraph prune`'s.
constexpr std::chrono::seconds k_time_of_a_writer{5};
constexpr std::chrono::milliseconds k_time_at_the_end{250};

/// Room for a while, so that not each publish has to make some.
Removal::Amount with_room(const Removal::Amount& most) noexcept
{
    return {most.files - most.files / 10, most.bytes - most.bytes / 10};
}

bool fits(const Removal::Amount& total, const Removal::Amount& most) noexcept
{
    return total.bytes <= most.bytes && total.files <= most.files;
}

/// The clock counts in nanoseconds and ends 292 years before its epoch: what was asked for may lie beyond.
std::chrono::system_clock::time_point before(std::chrono::system_clock::time_point now, std::chrono::seconds age)
{
    using std::chrono::duration_cast;
    return age >= duration_cast<std::chrono::seconds>(now.time_since_epoch()) ? std::chrono::system_clock::time_point{}
                                                                              : now - age;
}

} // namespace

Removal::Amount BudgetKeeper::most()
{
    std::call_once(m_is_resolved, [&] { m_most = resolve(m_tier.disk().options.budget, m_tier.disk().files); });
    return m_most;
}

void BudgetKeeper::look_again_after(const Removal::Amount& total, const Removal::Amount& most)
{
    const auto room = [](std::uint64_t used, std::uint64_t all) {
        constexpr std::uint64_t k_part = 16; // where all of it is in use, looking at each publish would free nothing
        // Others write as well: whoever has all the room to itself looks a few times more than it must.
        return used < all ? std::min(all - used, std::max(all / k_part, std::uint64_t{1})) : all / k_part;
    };
    const Removal::Amount written = m_tier.written();
    // A budget without end must not wrap.
    const auto after = [](std::uint64_t now, std::uint64_t more) {
        return more < std::numeric_limits<std::uint64_t>::max() - now ? now + more + 1
                                                                      : std::numeric_limits<std::uint64_t>::max();
    };
    m_next_look = {after(written.files, room(total.files, most.files)),
                   after(written.bytes, room(total.bytes, most.bytes))};
}

Result<Pruned> BudgetKeeper::prune_locked(Inventory inventory, const PruneGoal& goal)
{
    const Disk& disk = m_tier.disk();
    const auto lock = disk.files.try_lock(k_prune_lock, disk.modes.file);
    if (!lock) return std::unexpected(lock.error());
    if (*lock) return store::prune(m_tier, std::move(inventory), goal);
    Pruned nothing;
    nothing.before = nothing.after = inventory.total();
    nothing.why_not = "another process makes room just now";
    return nothing;
}

Result<Removal::Amount> BudgetKeeper::keep()
{
    const std::unique_lock guard(m_mutex, std::try_to_lock);
    if (!guard) return Removal::Amount{}; // another thread is at it
    const Removal::Amount most = this->most();
    const Removal::Amount written = m_tier.written();
    if (written.bytes < m_next_look.bytes && written.files < m_next_look.files) return Removal::Amount{};
    const auto deadline = m_tier.disk().clock.steady() + k_time_of_a_writer;
    auto inventory = take_inventory(m_tier.disk(), deadline);
    if (!inventory) return std::unexpected(inventory.error());
    const Removal::Amount total = inventory->total();
    look_again_after(total, most);
    if (fits(total, most)) return Removal::Amount{};
    const auto pruned = prune_locked(std::move(*inventory), {.most = with_room(most), .deadline = deadline});
    if (!pruned) return std::unexpected(pruned.error());
    look_again_after(pruned->after, most);
    log().info("the cache held {} bytes in {} files, {} and {} are its budget: {} files went{}{}", total.bytes,
               total.files, most.bytes, most.files, pruned->removed.files(), pruned->why_not.empty() ? "" : "; ",
               pruned->why_not);
    return pruned->removed.entries;
}

Result<void> BudgetKeeper::sweep_unused()
{
    const auto deadline = m_tier.disk().clock.steady() + k_time_at_the_end;
    auto inventory = take_inventory(m_tier.disk(), deadline);
    if (!inventory) return std::unexpected(inventory.error());
    constexpr auto k_all = std::numeric_limits<std::uint64_t>::max();
    const auto swept = prune_locked(std::move(*inventory), {.most = {k_all, k_all}, .deadline = deadline});
    return swept ? Result<void>{} : std::unexpected(swept.error());
}

Result<Pruned> BudgetKeeper::prune(const PruneRequest& request, bool is_trial)
{
    PruneGoal goal{.most = most(), .is_trial = is_trial};
    if (request.bytes) goal.most.bytes = *request.bytes;
    if (request.older) goal.used_before = before(m_tier.disk().clock.wall(), *request.older);
    auto inventory = take_inventory(m_tier.disk(), goal.deadline);
    if (!inventory) return std::unexpected(inventory.error());
    return is_trial ? store::prune(m_tier, std::move(*inventory), goal) : prune_locked(std::move(*inventory), goal);
}

} // namespace warmgraph::store
