#include <set>

#include "disk.hpp"
#include "quarantine.hpp"
#include "scan.hpp"
#include "temporary.hpp"
#include "warmgraph/base/log.hpp"

namespace warmgraph::store {
namespace {

void cure(const Disk& disk, const Finding& finding)
{
    const Path path = disk.layout.root() / finding.damage.path;
    switch (finding.cure) {
    case Finding::Cure::set_aside:
        quarantine(disk.files, disk.layout, disk.modes, path, finding.info, finding.damage.error);
        break;
    case Finding::Cure::remove:
        if (const auto removed = disk.files.remove(path); !removed)
            log().warn("not repaired: {}", removed.error().message);
        break;
    case Finding::Cure::leave: break;
    }
}

} // namespace

Result<std::vector<Damage>> LocalStore::check() const
{
    Scan scan(m_impl->disk);
    if (auto ok = scan.run(); !ok) return std::unexpected(ok.error());
    std::vector<Damage> damages;
    for (const Finding& finding : scan.findings()) damages.push_back(finding.damage);
    return damages;
}

Result<std::vector<Damage>> LocalStore::repair()
{
    const Disk& disk = m_impl->disk;
    if (auto ok = disk.may_remove("repair"); !ok) return std::unexpected(ok.error());
    std::vector<Damage> damages;
    std::set<Path> seen;
    // Setting a damaged image aside leaves entries that name a missing one: the second round finds those.
    for (int round = 0; round < 2; ++round) {
        Scan scan(disk);
        if (auto ok = scan.run(); !ok) return std::unexpected(ok.error());
        for (const Finding& finding : scan.findings()) {
            cure(disk, finding);
            if (seen.insert(finding.damage.path).second) damages.push_back(finding.damage);
        }
        for (const Path& path : scan.record_locks()) remove_free_lock(disk.files, disk.modes, path);
    }
    return damages;
}

} // namespace warmgraph::store
