// The cache folder as a tier.
#pragma once

#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <string_view>
#include <utility>

#include "tiers/local/disk.hpp"
#include "tiers/local/leases.hpp"
#include "warmgraph/store/tier.hpp"

namespace warmgraph::store {

class LocalTier final : public Tier {
public:
    explicit LocalTier(Disk disk) : m_disk(std::move(disk)), m_leases(m_disk.files, m_disk.modes, m_disk.writable()) {}

    // REQUIRES for all calls: check_key holds for an entry's key.
    [[nodiscard]] Result<std::optional<StampedBytes>> get(const Name& name, ReadLimit extent) override;
    /// Makes and marks a folder that was removed or emptied. permission_denied: read-only, or no longer a folder of the
    /// library.
    [[nodiscard]] Result<void> put(const Name& name, ByteView bytes, PutMode mode) override;
    using Tier::put;
    [[nodiscard]] Result<void> remove(const Name& name) override;
    [[nodiscard]] Result<std::vector<Name>> list(const Scope& scope) override;
    /// Opens the function's folder only once.
    [[nodiscard]] Result<std::vector<StampedEntry>> get_entries(const FunctionKey& function, ReadLimit extent) override;
    /// Sets the file's modification time, which is the time of its last use.
    [[nodiscard]] Result<void> note_use(const Name& name) override;
    /// Moves the file to quarantine.
    void refuse(const Name& name, const Stamp& stamp, const Error& reason) noexcept override;

    /// Locks a function for recording. nullptr when another process has the lock. Releasing the lock removes its file.
    [[nodiscard]] Result<std::unique_ptr<FileLock>> try_record_lock(const EntryKey& key);
    /// Locks an artifact for a process that reads and rewrites it. permission_denied also when the folder lost its
    /// mark.
    [[nodiscard]] Result<std::unique_ptr<FileLock>> try_artifact_lock(const ArtifactName& name);

    /// Called with each name that was put with PutMode::replace: this process made the object, and did not copy it from
    /// another tier. Set it before other threads use the tier; it must not throw.
    void listen(std::function<void(const Name&)> listener) { m_listener = std::move(listener); }

    [[nodiscard]] const Disk& disk() const noexcept { return m_disk; }
    /// Leases on the entries that this process put or used: no process removes them while this process lives.
    [[nodiscard]] Leases& leases() noexcept { return m_leases; }
    /// Files and bytes that were put through this tier.
    [[nodiscard]] Removal::Amount written() const noexcept { return {m_files_written, m_bytes_written}; }
    /// The bytes of one kind with its parts.
    [[nodiscard]] std::uint64_t written(ArtifactKind kind) const noexcept
    {
        return m_bytes_of_kinds[static_cast<std::size_t>(kind)];
    }
    /// The number of entries that replaced an older entry. The older entries' images may be unused now.
    [[nodiscard]] std::uint64_t replaced() const noexcept { return m_replaced; }

private:
    template <class Work>
    [[nodiscard]] auto made_in_root(std::string_view doing, const Work& work) -> decltype(work());
    [[nodiscard]] Result<std::unique_ptr<FileLock>> try_lock(Path path);

    void touch_tag() const;

    Disk m_disk;
    std::function<void(const Name&)> m_listener;
    Leases m_leases;
    std::atomic<bool> m_has_used = false; ///< this process has noted a use; the first one touches the mark
    std::atomic<std::uint64_t> m_files_written = 0, m_bytes_written = 0, m_replaced = 0;
    std::array<std::atomic<std::uint64_t>, k_kinds.size() + 1> m_bytes_of_kinds{};
};

} // namespace warmgraph::store
