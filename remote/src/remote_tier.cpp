#include "warmgraph/remote/remote_tier.hpp"

#include <algorithm>
#include <exception>

#include "breaker.hpp"
#include "sealed_artifact.hpp"
#include "warmgraph/base/log.hpp"

namespace warmgraph::remote {
namespace {

/// Failures of the store itself: no answer, no right to ask, an answer against the protocol. Other failures say something
/// about one object, and the next object may be right.
bool is_of_store(const Error& error) noexcept
{
    return error.code == ErrorCode::io_failed || error.code == ErrorCode::permission_denied ||
           error.code == ErrorCode::corrupt;
}

/// How long an answer holds that says only what is there.
constexpr std::chrono::seconds k_known_for{10};

/// The most bytes that a whole object may have in the store, with its seal.
std::uint64_t limit_of(const store::Name& name, const store::ReadLimit& extent)
{
    const bool is_sealed = std::holds_alternative<store::ArtifactName>(name);
    return extent.bytes + (is_sealed ? std::min<std::uint64_t>(k_seal_bytes, ~extent.bytes) : 0);
}

/// Asks for an object that cannot exist, because the answer takes the shortest way.
Result<void> probed(store::Tier& backend)
{
    const auto answer = backend.get(store::ImageName{}, {.bytes = 0, .whole = false});
    if (!answer && is_of_store(answer.error())) return std::unexpected(answer.error());
    return {};
}

} // namespace

RemoteTier::RemoteTier(std::unique_ptr<store::Tier> backend, RemoteOptions options, Clock& clock)
    : m_backend(std::move(backend)),
      m_options(std::move(options)),
      m_clock(clock),
      m_refused(std::move(m_options.refused)),
      m_breaker(
          std::make_unique<Breaker>(m_options.label, m_options.pause, [this] { return probed(*m_backend); }, clock))
{
    m_counts.label = m_options.label;
}

RemoteTier::~RemoteTier() = default;

/// Asks the backend unless the breaker is open, adds the time, and opens the breaker after a failure of the store. An
/// answer that is only worth `within`, and takes that long, says nothing about the store.
template <class Call>
auto RemoteTier::asked(double Counts::* time, Call call, std::chrono::milliseconds within)
    -> decltype(call(std::declval<store::Tier&>()))
{
    if (!m_breaker->may_ask())
        return fail(ErrorCode::io_failed, "remote {} is not asked now: {}", m_options.label, m_breaker->why_open());
    const auto begin = m_clock.steady();
    auto answer = call(*m_backend);
    const double took = Milliseconds(m_clock.steady() - begin).count();
    {
        const std::scoped_lock lock{m_mutex};
        m_counts.*time += took;
    }
    if (!answer) {
        count_error(answer.error());
        const bool is_late = within.count() > 0 && took >= Milliseconds(within).count();
        if (is_of_store(answer.error()) && !is_late) m_breaker->note_failure(answer.error());
    }
    return answer;
}

void RemoteTier::count_error(const Error& error)
{
    const std::scoped_lock lock{m_mutex};
    ++m_counts.errors[std::string(to_string(error.code))];
}

bool RemoteTier::is_refused(const std::string& name) const
{
    const std::scoped_lock lock{m_mutex};
    return m_refused.contains(name);
}

Result<std::optional<store::StampedBytes>> RemoteTier::get(const store::Name& name, store::ReadLimit extent)
{
    const auto* const artifact = std::get_if<store::ArtifactName>(&name);
    if (is_refused(store::to_text(name)) || (artifact != nullptr && !extent.whole && extent.bytes != 0))
        return std::nullopt;
    if (auto known = known_head(name, extent)) return known;
    if (is_absent(store::to_text(name))) return std::nullopt;
    if (extent.whole && m_options.max_bytes != 0) extent.bytes = std::min(extent.bytes, m_options.max_bytes);
    store::ReadLimit stored = extent;
    if (extent.whole) stored.bytes = limit_of(name, extent);
    auto found =
        asked(&Counts::read_ms, [&](store::Tier& backend) { return backend.get(name, stored); }, extent.within);
    const bool is_late = !found && extent.within.count() > 0 && m_breaker->why_open().empty();
    auto object = found ? taken(name, extent, std::move(*found)) : std::nullopt;
    if (object)
        keep_head(name, extent, *object);
    else if (found || is_late) // else the store is not asked anyway
        note_absent(store::to_text(name));
    return object;
}

bool RemoteTier::is_absent(const std::string& name)
{
    const std::scoped_lock lock{m_mutex};
    const auto absent = m_absent.find(name);
    if (absent == m_absent.end()) return false;
    if (m_clock.steady() < absent->second) return true;
    m_absent.erase(absent);
    return false;
}

void RemoteTier::note_absent(const std::string& name)
{
    constexpr std::size_t k_most = 4096;
    const std::scoped_lock lock{m_mutex};
    if (m_absent.size() >= k_most) m_absent.clear();
    m_absent.insert_or_assign(name, m_clock.steady() + k_known_for);
}

std::optional<std::vector<store::StampedEntry>> RemoteTier::known_entries(const store::FunctionKey& function,
                                                                          store::ReadLimit extent)
{
    const std::scoped_lock lock{m_mutex};
    const auto known = m_entries.find(function);
    if (known == m_entries.end() || m_clock.steady() >= known->second.until || extent.bytes > known->second.limit ||
        extent.whole)
        return std::nullopt;
    auto entries = known->second.heads;
    for (auto& [key, found] : entries)
        if (found && found->bytes) store::cut(*found->bytes, extent);
    return entries;
}

void RemoteTier::keep_entries(const store::FunctionKey& function, store::ReadLimit extent,
                              const std::vector<store::StampedEntry>& entries)
{
    constexpr std::size_t k_most = 64, k_most_bytes = 1 << 20; // of functions; of one's heads
    std::size_t bytes = 0;
    for (const auto& [key, found] : entries) bytes += found && found->bytes ? found->bytes->size() : 0;
    if (bytes > k_most_bytes || extent.whole || extent.offset != 0) return;
    const std::scoped_lock lock{m_mutex};
    if (m_entries.size() >= k_most) m_entries.clear();
    m_entries.insert_or_assign(function, KnownEntries{entries, extent.bytes, m_clock.steady() + k_known_for});
}

std::optional<store::StampedBytes> RemoteTier::known_head(const store::Name& name, store::ReadLimit extent)
{
    if (extent.whole || extent.offset != 0 || extent.bytes == 0) return std::nullopt;
    const std::scoped_lock lock{m_mutex};
    const auto known = m_heads.find(store::to_text(name));
    if (known == m_heads.end()) return std::nullopt;
    std::optional<store::StampedBytes> found;
    if (known->second.limit == extent.bytes && m_clock.steady() < known->second.until)
        found = std::move(known->second.object);
    m_heads.erase(known);
    return found;
}

void RemoteTier::keep_head(const store::Name& name, store::ReadLimit extent, const store::StampedBytes& found)
{
    constexpr std::size_t k_most = 64;
    if (extent.whole || extent.offset != 0 || extent.bytes == 0 || !std::holds_alternative<store::EntryKey>(name))
        return;
    const std::scoped_lock lock{m_mutex};
    if (m_heads.size() >= k_most) m_heads.clear();
    m_heads.insert_or_assign(store::to_text(name),
                             Head{found, extent.bytes, m_clock.steady() + std::chrono::seconds(5)});
}

/// Counts what was read, and takes the seal off an artifact. An object that cannot be used is a miss.
std::optional<store::StampedBytes> RemoteTier::taken(const store::Name& name, store::ReadLimit extent,
                                                     std::optional<store::StampedBytes> found)
{
    // An object that is larger than what is read is no damaged one: another reader may have a larger limit.
    const std::uint64_t most = extent.whole               ? limit_of(name, extent)
                               : m_options.max_bytes != 0 ? m_options.max_bytes
                                                          : ~0ULL;
    if (found && found->stamp.size > most) {
        count_error({ErrorCode::unsupported, {}});
        found.reset();
    }
    const auto* const artifact = std::get_if<store::ArtifactName>(&name);
    if (found && found->bytes && artifact != nullptr && extent.whole) {
        const std::uint64_t fetched = found->bytes->size();
        found->bytes = unseal(*artifact, *found->bytes, m_options.trust);
        const std::scoped_lock lock{m_mutex};
        m_counts.bytes_read += fetched - (found->bytes ? found->bytes->size() : 0);
        if (found->bytes) found->stamp.size = found->bytes->size();
    }
    if (found && !found->bytes) {
        refuse(name, found->stamp, found->bytes.error());
        found.reset();
    }
    const std::scoped_lock lock{m_mutex};
    if (extent.bytes == 0 && !extent.whole) return found; // only the stamp
    if (extent.offset == 0) ++(found ? m_counts.hits : m_counts.misses);
    if (!found) return found;
    const std::uint64_t read = found->bytes->size();
    m_counts.bytes_read += read;
    if (extent.offset == 0)
        m_counts.bytes_left += found->stamp.size - std::min(found->stamp.size, read);
    else
        m_counts.bytes_left -= std::min(m_counts.bytes_left, read);
    return found;
}

Result<std::vector<store::StampedEntry>> RemoteTier::get_entries(const store::FunctionKey& function,
                                                                 store::ReadLimit extent)
{
    const auto refused = [&](const store::StampedEntry& one) { return is_refused(store::to_text(one.key)); };
    if (auto known = known_entries(function, extent)) {
        std::erase_if(*known, refused);
        return std::move(*known);
    }
    auto entries = asked(&Counts::read_ms, [&](store::Tier& backend) { return backend.get_entries(function, extent); });
    if (!entries) return std::vector<store::StampedEntry>{};
    keep_entries(function, extent, *entries);
    std::erase_if(*entries, refused);
    const std::scoped_lock lock{m_mutex};
    ++(entries->empty() ? m_counts.misses : m_counts.hits);
    for (const auto& [key, found] : *entries) {
        if (!found || !found->bytes || extent.bytes == 0) continue;
        const std::uint64_t read = found->bytes->size();
        m_counts.bytes_read += read;
        m_counts.bytes_left += found->stamp.size - std::min(found->stamp.size, read);
    }
    return entries;
}

Result<void> RemoteTier::put(const store::Name& name, ByteView bytes, store::PutMode mode)
{
    const std::string text = store::to_text(name);
    if (m_options.read_only)
        return fail(ErrorCode::permission_denied, "remote {} is read-only: {} is not uploaded", m_options.label, text);
    Bytes sealed;
    if (const auto* const artifact = std::get_if<store::ArtifactName>(&name)) {
        auto made = seal(*artifact, bytes, m_options.trust);
        if (!made) return std::unexpected(made.error());
        sealed = std::move(*made);
        bytes = sealed;
    }
    if (m_options.max_bytes != 0 && bytes.size() > m_options.max_bytes)
        return fail(ErrorCode::unsupported, "{} has {} bytes, remote {} takes at most {} (max-bytes)", text,
                    bytes.size(), m_options.label, m_options.max_bytes);
    const bool was_refused = is_refused(text);
    const auto how = was_refused ? store::PutMode::replace : mode;
    auto done = asked(&Counts::write_ms, [&](store::Tier& backend) { return backend.put(name, bytes, how); });
    if (!done) return done;
    {
        const std::scoped_lock lock{m_mutex};
        ++m_counts.puts;
        m_counts.bytes_written += bytes.size();
        m_refused.erase(text);
        m_absent.erase(text);
        if (const auto* const key = std::get_if<store::EntryKey>(&name)) m_entries.erase(key->function);
    }
    if (was_refused && m_options.note_refused) m_options.note_refused(text, false);
    return done;
}

Result<void> RemoteTier::remove(const store::Name& name)
{
    if (m_options.read_only)
        return fail(ErrorCode::permission_denied, "remote {} is read-only: {} is not removed", m_options.label,
                    to_text(name));
    {
        const std::scoped_lock lock{m_mutex};
        m_heads.erase(store::to_text(name));
        if (const auto* const key = std::get_if<store::EntryKey>(&name)) m_entries.erase(key->function);
    }
    return asked(&Counts::write_ms, [&](store::Tier& backend) { return backend.remove(name); });
}

Result<std::vector<store::Name>> RemoteTier::list(const store::Scope& scope)
{
    auto names = asked(&Counts::read_ms, [&](store::Tier& backend) { return backend.list(scope); });
    if (names) std::erase_if(*names, [&](const store::Name& name) { return is_refused(store::to_text(name)); });
    return names;
}

void RemoteTier::refuse(const store::Name& name, const store::Stamp&, const Error& reason) noexcept
try {
    const std::string text = store::to_text(name);
    {
        const std::scoped_lock lock{m_mutex};
        if (!m_refused.insert(text).second) return;
    }
    count_error(reason);
    log().debug("{} of remote {} is not used: {}", text, m_options.label, reason.message);
    if (reason.code == ErrorCode::corrupt && m_options.note_refused) m_options.note_refused(text, true);
} catch (const std::exception& error) {
    log().debug("a refused object may be fetched again: {}", error.what());
}

Counts RemoteTier::counts() const
{
    Counts counts;
    {
        const std::scoped_lock lock{m_mutex};
        counts = m_counts;
    }
    counts.skipped = m_breaker->skipped();
    counts.why_not_asked = m_breaker->why_open();
    return counts;
}

} // namespace warmgraph::remote
