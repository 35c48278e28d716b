#include "folder_index.hpp"

#include <algorithm>
#include <random>
#include <thread>

namespace warmgraph::remote::http {
namespace {

constexpr int k_most_tries = 8;

/// Waits up to 50 ms, by chance, so that clients that collided do not collide again.
void pause_after(int tries)
{
    thread_local std::minstd_rand chance{std::random_device{}()};
    std::this_thread::sleep_for(milliseconds(std::uniform_int_distribution<int>(0, std::min(tries * 20, 50))(chance)));
}

Result<Index> index_of(const StoredObject& found)
{
    if (!found.object.bytes) return std::unexpected(found.object.bytes.error());
    return decode_index(*found.object.bytes);
}

} // namespace

Result<std::optional<StoredObject>> FolderIndexes::get(const std::string& prefix, const Deadline& deadline) const
{
    auto found = m_objects.get(prefix + std::string(k_index_name), {k_most_index_bytes}, deadline);
    if (!found) return within("index", found.error());
    return found;
}

Result<Index> FolderIndexes::read(const std::string& prefix, const Deadline& deadline) const
{
    const auto found = get(prefix, deadline);
    if (!found) return std::unexpected(found.error());
    return *found ? index_of(**found) : Index{};
}

Result<FolderIndexes::Read> FolderIndexes::read_for_change(const std::string& prefix) const
{
    const auto found = get(prefix, Deadline{});
    if (!found) return std::unexpected(found.error());
    if (!*found) return Read{Index{}, "If-None-Match: *"};
    const std::string& etag = (*found)->etag;
    // If-Match compares strong ETags only (RFC 9110, section 13.1.1).
    return Read{index_of(**found), etag.empty() || etag.starts_with("W/") ? std::string() : "If-Match: " + etag};
}

Result<void> FolderIndexes::change(const std::string& prefix, const std::function<bool(Index&)>& change)
{
    const std::scoped_lock guard(m_mutex);
    for (int i = 0; i < k_most_tries; ++i) {
        if (i != 0) pause_after(i);
        auto read = read_for_change(prefix);
        if (!read) return std::unexpected(std::move(read.error()));
        Index index = read->index ? std::move(*read->index) : Index{};
        if (!change(index) && read->index) return {};
        const auto put = m_objects.put(prefix + std::string(k_index_name), encode(index), read->condition);
        if (!put) return within("index", put.error());
        if (!put->is_refused) return {};
    }
    return fail(ErrorCode::io_failed, "index: other clients changed it {} times meanwhile", k_most_tries);
}

} // namespace warmgraph::remote::http
