// Scans the whole folder for everything that is damaged, foreign or left over.
#pragma once

#include <utility>

#include "tiers/local/local_tier.hpp"
#include "upkeep/inventory.hpp"

namespace warmgraph::store {

struct Finding {
    Damage damage;
    Stamp stamp; ///< stamp of the file that was judged
    enum class Cure : std::uint8_t { set_aside, remove, leave } cure = Cure::leave;
};

/// Use once: run(), then read the results. Changes nothing.
class Scan {
public:
    /// Without `verifier` artifacts are not read. Both arguments must outlive this object.
    Scan(LocalTier& tier, const ArtifactVerifier& verifier) : m_tier(tier), m_disk(tier.disk()), m_verifier(verifier) {}

    [[nodiscard]] Result<void> run();
    [[nodiscard]] const std::vector<Finding>& findings() const noexcept { return m_findings; }
    /// Lock files of recordings; only taking a lock shows whether it is held.
    [[nodiscard]] const std::vector<Path>& record_locks() const noexcept { return m_record_locks; }

private:
    [[nodiscard]] Result<void> scan_root();
    /// Scans a folder. `names` are the names of the folders from the root to this folder; three names lead to a
    /// function's folder.
    [[nodiscard]] Result<void> scan_keys(const std::vector<std::string>& names);
    [[nodiscard]] Result<void> scan_function(const FunctionKey& function);
    /// Scans a folder of 256 shards. `scan_file` returns whether the name in a shard belongs to the library.
    template <class ScanFile>
    [[nodiscard]] Result<void> scan_shards(const Path& top, const ScanFile& scan_file);
    [[nodiscard]] Result<void> scan_images();
    [[nodiscard]] Result<void> scan_artifacts(ArtifactKind kind);
    /// A folder that may not be used becomes a finding, and the scan continues. Other failures are returned.
    [[nodiscard]] Result<void> skip(const Path& folder, const Error& error);
    void scan_entry(const EntryKey& key);
    void scan_image(const Digest& digest);
    void scan_artifact(const ArtifactName& artifact);
    void scan_misses(const Path& path);
    /// Scans one of the library's files beside the shards; false for another file.
    [[nodiscard]] bool scan_beside_shards(const Path& top, const DirectoryItem& item);
    void scan_usage(const Path& path);
    void scan_missing_images();
    void scan_lone_parts();
    /// Reports a temporary or a foreign file.
    void scan_other(const Path& folder, const DirectoryItem& item);
    void add(const Path& path, Error error, Finding::Cure cure, const Stamp& stamp = {});

    LocalTier& m_tier;
    const Disk& m_disk;
    const ArtifactVerifier& m_verifier;
    std::vector<Finding> m_findings;
    std::vector<Path> m_record_locks;
    std::vector<std::pair<EntryKey, Digest>> m_named; ///< images that intact entries name
    std::vector<InventoryEntry> m_parts;              ///< intact entries of pairs
};

} // namespace warmgraph::store
