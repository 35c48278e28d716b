#include "upkeep/upkeep.hpp"

#include <exception>
#include <set>

#include "tiers/local/folder_tag.hpp"
#include "tiers/local/quarantine.hpp"
#include "tiers/local/temporary.hpp"
#include "upkeep/clear.hpp"
#include "upkeep/clear_plan.hpp"
#include "upkeep/eviction.hpp"
#include "upkeep/left_overs.hpp"
#include "upkeep/scan.hpp"
#include "warmgraph/base/log.hpp"

namespace warmgraph::store {
namespace {

void cure(const Disk& disk, const Finding& finding)
{
    const Path& path = finding.damage.path;
    switch (finding.cure) {
    case Finding::Cure::set_aside: quarantine(disk, path, finding.stamp, finding.damage.error); break;
    case Finding::Cure::remove:
        if (const auto removed = disk.files.remove(path); !removed)
            log().warn("not repaired: {}", removed.error().message);
        break;
    case Finding::Cure::leave: break;
    }
}

} // namespace

Result<std::vector<Damage>> Upkeep::check(const ArtifactVerifier& verifier) const
{
    Scan scan(m_tier, verifier);
    if (auto ok = scan.run(); !ok) return std::unexpected(ok.error());
    std::vector<Damage> damages;
    for (const Finding& finding : scan.findings()) damages.push_back(finding.damage);
    return damages;
}

Result<std::vector<Damage>> Upkeep::repair(const ArtifactVerifier& verifier)
{
    const Disk& disk = m_tier.disk();
    if (auto ok = disk.may_remove("repair"); !ok) return std::unexpected(ok.error());
    std::vector<Damage> damages;
    std::set<Path> seen;
    // Setting a damaged image aside leaves entries without their image: the second round finds them.
    for (int round = 0; round < 2; ++round) {
        Scan scan(m_tier, verifier);
        if (auto ok = scan.run(); !ok) return std::unexpected(ok.error());
        for (const Finding& finding : scan.findings()) {
            cure(disk, finding);
            if (seen.insert(finding.damage.path).second) damages.push_back(finding.damage);
        }
        for (const Path& path : scan.record_locks()) remove_free_lock(disk.files, disk.modes, path);
    }
    return damages;
}

Result<Removal> Upkeep::plan_clear(const ClearRequest& request) const
{
    const Disk& disk = m_tier.disk();
    if (auto ok = refuse_foreign(disk.files, disk.layout.root()); !ok) return within("clear", ok.error());
    return store::plan_clear(m_tier, request);
}

Result<Removal> Upkeep::clear(const ClearRequest& request)
{
    if (auto ok = m_tier.disk().may_remove("clear"); !ok) return std::unexpected(ok.error());
    return store::clear(m_tier, request);
}

Removal::Amount Upkeep::after_publish(const EntryKey& key, const BudgetKeeper::OnEvicted& for_the_budget) noexcept
try {
    sweep_once();
    const auto evicted = evict(m_tier, key);
    if (!evicted) log().debug("eviction: {}", evicted.error().message);
    if (evicted && evicted->files > 0) m_has_evicted = true;
    m_budget.keep(for_the_budget);
    return evicted.value_or(Removal::Amount{});
} catch (const std::exception& error) {
    log().debug("eviction: {}", error.what());
    return {};
}

void Upkeep::make_room() noexcept
{
    m_budget.keep([](const Removal::Amount&) {});
}

void Upkeep::sweep_once()
{
    if (m_has_swept.exchange(true)) return;
    constexpr std::chrono::milliseconds k_most(50);
    sweep_left_overs(m_tier.disk(), k_most);
}

void Upkeep::before_close() noexcept
try {
    m_budget.end();
    if (!m_tier.disk().writable() || !has_tag(m_tier.disk().files)) return; // do not make a deleted folder again
    sweep_once();
    if (!m_has_evicted && m_tier.replaced() == 0) return;
    if (const auto swept = m_budget.sweep_unused(); !swept) log().debug("unused images: {}", swept.error().message);
} catch (const std::exception& error) {
    log().debug("left-over files, unused images: {}", error.what());
}

Result<PruneResult> Upkeep::plan_prune(const PruneRequest& request)
{
    const Disk& disk = m_tier.disk();
    if (auto ok = refuse_foreign(disk.files, disk.layout.root()); !ok) return within("prune", ok.error());
    return m_budget.prune(request, true);
}

Result<PruneResult> Upkeep::prune(const PruneRequest& request)
{
    if (auto ok = m_tier.disk().may_remove("prune"); !ok) return std::unexpected(ok.error());
    constexpr std::chrono::minutes k_most(1);
    sweep_left_overs(m_tier.disk(), k_most);
    return m_budget.prune(request, false);
}

Budget Upkeep::budget() { return m_budget.most(); }

} // namespace warmgraph::store
