#include "tiers/local/leases.hpp"

#include <cstring>
#include <exception>

#include <unistd.h>

#include "tiers/local/folder_tag.hpp"
#include "warmgraph/base/log.hpp"

namespace warmgraph::store {
namespace {

/// The bytes for each entry: many, so that each of many processes finds a free byte.
constexpr std::uint64_t k_bytes_of_entry = 1 << 16;

/// Returns the start of the entry's range. Two entries may have the same range: then both stay while one is used.
std::uint64_t first_byte_of(const EntryKey& key)
{
    const Digest digest = sha256(as_bytes(to_text(key)));
    std::uint64_t number = 0;
    std::memcpy(&number, digest.bytes.data(), sizeof number);
    return (number >> 2) & ~(k_bytes_of_entry - 1); // file offsets are signed, so the highest bit stays 0
}

} // namespace

/// Fails when another process is about to remove the entry; the next use tries again.
bool Leases::is_taken_by(ByteLocks& locks, std::uint64_t first)
{
    for (int again = 0; again < 3; ++again) { // another process may have taken the same byte
        const auto taken = locks.try_lock(first + m_random() % k_bytes_of_entry, 1, LockKind::exclusive);
        if (!taken || *taken) return taken.has_value();
    }
    return false;
}

bool Leases::is_current() const
{
    if (!m_locks || m_process != ::getpid()) return false;
    const auto file = m_files.info(k_leases_file);
    return file && *file && (*file)->inode == m_inode;
}

ByteLocks* Leases::locks()
{
    if (is_current()) return m_locks.get();
    const bool makes = m_may_make && has_tag(m_files);
    auto opened = m_files.open_byte_locks(k_leases_file, makes ? std::optional(m_modes.file) : std::nullopt);
    if (!opened) {
        log().debug("entries are used without a lease: {}", opened.error().message);
        return m_locks.get();
    }
    m_locks = std::move(*opened);
    m_process = ::getpid();
    const auto file = m_files.info(k_leases_file);
    m_inode = file && *file ? (*file)->inode : 0;
    for (auto& [first, is_locked] : m_taken) is_locked = is_taken_by(*m_locks, first);
    return m_locks.get();
}

void Leases::take(const EntryKey& key) noexcept
try {
    const std::uint64_t first = first_byte_of(key);
    const std::scoped_lock guard(m_mutex);
    bool& is_locked = m_taken[first];
    if (is_locked && m_process == ::getpid()) return;
    if (ByteLocks* const all = locks(); all != nullptr) is_locked = is_taken_by(*all, first);
} catch (const std::exception& error) {
    log().debug("an entry is used without a lease: {}", error.what());
}

bool Leases::unless_taken(const EntryKey& key, const std::function<void()>& work)
{
    const std::uint64_t first = first_byte_of(key);
    const std::scoped_lock guard(m_mutex);
    if (m_taken.contains(first)) return false;
    ByteLocks* const all = locks();
    if (all != nullptr) {
        const auto taken = all->try_lock(first, k_bytes_of_entry, LockKind::shared);
        if (!taken) log().debug("an entry is kept, because another process may use it: {}", taken.error().message);
        if (!taken || !*taken) return false;
    }
    work();
    if (all != nullptr) all->unlock(first, k_bytes_of_entry);
    return true;
}

} // namespace warmgraph::store
