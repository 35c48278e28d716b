#include "tiers/local/leases.hpp"

#include <cstring>
#include <exception>

#include <unistd.h>

#include "tiers/local/mark.hpp"
#include "warmgraph/base/log.hpp"

namespace warmgraph::store {
namespace {

/// Two entries may have the same: then both stay while one is used.
std::uint64_t byte_of(const EntryKey& key)
{
    const Digest digest = sha256(as_bytes(to_text(key)));
    std::uint64_t number = 0;
    std::memcpy(&number, digest.bytes.data(), sizeof number);
    return number >> 2; // an offset in a file has a sign
}

/// Not where somebody is about to remove the entry just now: the next use tries again.
bool is_taken_by(ByteLocks& locks, std::uint64_t byte)
{
    const auto taken = locks.try_lock(byte, LockKind::shared);
    return taken && *taken;
}

} // namespace

bool Leases::is_current() const
{
    if (!m_locks || m_process != ::getpid()) return false;
    const auto file = m_files.info(k_leases_file);
    return file && *file && (*file)->inode == m_inode;
}

ByteLocks* Leases::locks()
{
    if (is_current()) return m_locks.get();
    const bool makes = m_may_make && has_mark(m_files);
    auto opened = m_files.open_byte_locks(k_leases_file, makes ? std::optional(m_modes.file) : std::nullopt);
    if (!opened) {
        log().debug("entries are used without a lease: {}", opened.error().message);
        return m_locks.get();
    }
    m_locks = std::move(*opened);
    m_process = ::getpid();
    const auto file = m_files.info(k_leases_file);
    m_inode = file && *file ? (*file)->inode : 0;
    for (auto& [byte, is_locked] : m_taken) is_locked = is_taken_by(*m_locks, byte);
    return m_locks.get();
}

void Leases::take(const EntryKey& key) noexcept
try {
    const std::uint64_t byte = byte_of(key);
    const std::scoped_lock guard(m_mutex);
    bool& is_locked = m_taken[byte];
    if (is_locked && m_process == ::getpid()) return;
    if (ByteLocks* const all = locks(); all != nullptr) is_locked = is_taken_by(*all, byte);
} catch (const std::exception& error) {
    log().debug("an entry is used without a lease: {}", error.what());
}

bool Leases::unless_taken(const EntryKey& key, const std::function<void()>& work)
{
    const std::uint64_t byte = byte_of(key);
    const std::scoped_lock guard(m_mutex);
    if (m_taken.contains(byte)) return false;
    ByteLocks* const all = locks();
    if (all != nullptr) {
        const auto taken = all->try_lock(byte, LockKind::exclusive);
        if (taken && !*taken) return false;
        if (!taken && m_may_make) { // who looks only may not take it, and removes nothing
            log().debug("an entry stays, for somebody may use it: {}", taken.error().message);
            return false;
        }
    }
    work();
    if (all != nullptr) all->unlock(byte);
    return true;
}

} // namespace warmgraph::store
