// A Redis server as a tier. Under the namespace it keeps
//   <name as text>            the object
//   heads:<function's prefix> a hash, from the digest of each of the function's entries to its head (heads.hpp)
//   functions                 a set of the prefixes of all functions
//   names:<kind's folder>     a set of the names of all images, or of all artifacts of a kind
// The sets and hashes only help to find objects. A server that evicts objects leaves their names there, because reading
// removes nothing: a get() of such a name finds nothing. A Redis Cluster is not supported: a put has several keys.
#include <algorithm>
#include <charconv>
#include <limits>
#include <set>

#include "clocks.hpp"
#include "redis/client.hpp"
#include "redis/heads.hpp"
#include "warmgraph/base/log.hpp"
#include "warmgraph/remote/backends.hpp"

namespace warmgraph::remote {
namespace redis {
namespace {

using store::EntryKey;
using store::FunctionKey;
using store::Name;
using store::PutMode;
using store::ReadLimit;
using store::Scope;
using store::Stamp;
using store::StampedBytes;
using store::StampedEntry;

constexpr std::uint64_t k_small = 64 * 1024;          ///< bytes up to which header_timeout counts
constexpr std::uint64_t k_heads_bytes = 16ULL << 20;  ///< the most bytes of all heads of a function
constexpr std::uint64_t k_value_bytes = 512ULL << 20; ///< the longest value that Redis takes (proto-max-bulk-len)
constexpr std::uint64_t k_name_bytes = 1024;          ///< the longest name that is listed
constexpr std::size_t k_names = 200'000;              ///< the most names that are listed
constexpr const char* k_scan_count = "500";           ///< names in one answer; Redis may give some more

std::unexpected<Error> no_answer(const Settings& settings, std::string_view to)
{
    return fail(ErrorCode::corrupt, "remote {}: the server does not answer {} as Redis does", settings.label, to);
}

bool is(const Reply& reply, Reply::Kind kind) noexcept { return reply.kind == kind; }

class RedisBackend final : public Backend {
public:
    RedisBackend(const Settings& settings, std::unique_ptr<TlsContext> tls)
        : m_settings(settings), m_client(settings, std::move(tls))
    {
        m_settings.credentials.forget(); // only the client needs them
    }

    Result<std::optional<StampedBytes>> get(const Name& name, ReadLimit extent) override;
    Result<void> put(const Name& name, ByteView bytes, PutMode mode) override;
    using Tier::put;
    Result<void> remove(const Name& name) override;
    Result<std::vector<Name>> list(const Scope& scope) override;
    Result<std::vector<StampedEntry>> get_entries(const FunctionKey& function, ReadLimit extent) override;

private:
    [[nodiscard]] std::string key(std::string_view rest) const { return m_settings.name_space + std::string(rest); }
    [[nodiscard]] std::string heads_key(const FunctionKey& function) const
    {
        return key("heads:" + store::prefix_of({.function = function}));
    }
    /// The set that has the name of an object that is no entry.
    [[nodiscard]] std::string names_key(store::ArtifactKind kind) const
    {
        return key("names:" + store::prefix_of({kind}));
    }
    [[nodiscard]] std::string functions_key() const { return key("functions"); }
    [[nodiscard]] CallTimes times(std::uint64_t bytes, milliseconds within = milliseconds(0)) const;
    /// Sends MULTI, the commands and EXEC; returns the results of the `commands` commands.
    [[nodiscard]] Result<std::vector<Reply>> transact(Request& request, const ReplyCaps& caps, const CallTimes& times);

    void add_expiry(Request& request, const std::string& of) const;
    [[nodiscard]] Request request_to_put(const Name& name, ByteView bytes, bool only_new) const;
    [[nodiscard]] Result<std::optional<StampedBytes>> judge(const ReadLimit& extent, std::vector<Reply> results) const;
    [[nodiscard]] Result<std::optional<StampedEntry>> entry_of_head(const EntryKey& entry, ByteView field,
                                                                    const ReadLimit& extent);
    [[nodiscard]] Result<std::set<std::string>> members(const std::string& set, const CallTimes& times);
    [[nodiscard]] Result<std::vector<Name>> list_function(const std::string& prefix, const CallTimes& times);
    void keep_if_listed(std::vector<Name>& names, const std::string& text, const Scope& scope) const;

    Settings m_settings;
    Client m_client;
};

CallTimes RedisBackend::times(std::uint64_t bytes, milliseconds within) const
{
    milliseconds limit = bytes > k_small ? m_settings.payload_timeout : m_settings.header_timeout;
    if (within.count() > 0) limit = std::min(limit, within);
    return {std::chrono::steady_clock::now() + limit, m_settings.header_timeout};
}

Result<std::vector<Reply>> RedisBackend::transact(Request& request, const ReplyCaps& caps, const CallTimes& times)
{
    const std::size_t wanted = request.commands - 1; // the caller has begun with MULTI
    request.add({"EXEC"});
    auto replies = m_client.call(request, caps, times);
    if (!replies) return replies;
    const auto last = replies->end() - 1;
    if (!std::all_of(replies->begin(), last, [](const Reply& reply) { return is(reply, Reply::Kind::status); }) ||
        !is(*last, Reply::Kind::array) || last->items.size() != wanted)
        return no_answer(m_settings, "a transaction");
    return std::move(last->items);
}

// --- Reading

Result<std::optional<StampedBytes>> RedisBackend::get(const Name& name, ReadLimit extent)
{
    const std::string object = key(store::to_text(name));
    constexpr std::uint64_t k_end = std::numeric_limits<std::int64_t>::max(); // of Redis's numbers
    Request request;
    request.add({"MULTI"});
    if (extent.bytes > 0) {
        const std::uint64_t begin = std::min(extent.offset, k_end), end = std::min(store::end_of(extent) - 1, k_end);
        request.add({"GETRANGE", object, std::to_string(begin), std::to_string(end)});
    }
    request.add({"STRLEN", object});
    request.add({"EXISTS", object});
    auto results = transact(request, {extent.bytes, extent.bytes}, times(extent.bytes, extent.within));
    if (!results) return std::unexpected(results.error());
    return judge(extent, std::move(*results));
}

Result<std::optional<StampedBytes>> RedisBackend::judge(const ReadLimit& extent, std::vector<Reply> results) const
{
    const Reply &length = *(results.end() - 2), &exists = results.back();
    if (!is(exists, Reply::Kind::integer)) return no_answer(m_settings, "EXISTS");
    if (exists.number == 0) return std::nullopt;
    for (const Reply& result : results)
        if (is(result, Reply::Kind::error)) // WRONGTYPE
            return StampedBytes{{}, std::unexpected(Error{ErrorCode::corrupt, error_of(result.line).message})};
    if (!is(length, Reply::Kind::integer) || length.number < 0) return no_answer(m_settings, "STRLEN");
    const auto size = static_cast<std::uint64_t>(length.number);
    StampedBytes found{{.size = size}, Bytes{}};
    if (extent.whole && size > extent.bytes) {
        found.bytes = fail(ErrorCode::corrupt, "object has {} bytes, at most {} are read", size, extent.bytes);
        return found;
    }
    if (extent.bytes == 0) return found;
    Reply& range = results.front();
    const std::uint64_t begin = std::min(extent.offset, size);
    if (!is(range, Reply::Kind::bulk) || range.bulk.size() != std::min(extent.bytes, size - begin))
        return no_answer(m_settings, "GETRANGE");
    found.bytes = std::move(range.bulk);
    return found;
}

Result<std::vector<StampedEntry>> RedisBackend::get_entries(const FunctionKey& function, ReadLimit extent)
{
    Request request;
    request.add({"HGETALL", heads_key(function)});
    auto replies = m_client.call(request, {sizeof(std::uint64_t) + k_most_head, k_heads_bytes, 2 * k_head_fields},
                                 times(k_heads_bytes, extent.within));
    if (!replies) return std::unexpected(replies.error());
    std::vector<Reply>& items = replies->front().items;
    if (!is(replies->front(), Reply::Kind::array) || items.size() % 2 != 0 ||
        !std::ranges::all_of(items, [](const Reply& item) { return is(item, Reply::Kind::bulk); }))
        return no_answer(m_settings, "HGETALL");
    std::vector<StampedEntry> entries;
    for (std::size_t i = 0; i < items.size(); i += 2) {
        const auto name =
            store::name_from_text(store::prefix_of({.function = function}) + std::string(as_text(items[i].bulk)));
        const auto* const entry = name ? std::get_if<EntryKey>(&*name) : nullptr;
        if (entry == nullptr) continue;
        auto found = entry_of_head(*entry, items[i + 1].bulk, extent);
        if (!found)
            entries.push_back({*entry, std::unexpected(found.error())});
        else if (*found) // else it was evicted
            entries.push_back(std::move(**found));
        items[i + 1].bulk = {}; // so that the heads are in memory once
    }
    std::ranges::sort(entries, {}, &StampedEntry::key);
    return entries;
}

/// Reads the entry itself where the head is no head, or the reader wants more.
Result<std::optional<StampedEntry>> RedisBackend::entry_of_head(const EntryKey& entry, ByteView field,
                                                                const ReadLimit& extent)
{
    const auto head = decode_head(field);
    if (!head || !suffices(*head, extent)) {
        auto found = get(entry, extent);
        if (!found) return std::unexpected(found.error());
        if (!*found) return std::nullopt;
        return StampedEntry{entry, std::move(**found)};
    }
    StampedBytes found{{.size = head->size}, Bytes(head->bytes.begin(), head->bytes.end())};
    if (extent.whole && head->size > extent.bytes)
        found.bytes = fail(ErrorCode::corrupt, "object has {} bytes, at most {} are read", head->size, extent.bytes);
    else
        store::cut(*found.bytes, extent);
    return StampedEntry{entry, std::move(found)};
}

// --- Writing

void RedisBackend::add_expiry(Request& request, const std::string& of) const
{
    if (m_settings.ttl.count() > 0) request.add({"EXPIRE", of, std::to_string(m_settings.ttl.count())});
}

/// The first result is of SET, the second of HSETNX where `only_new` is true for an entry.
Request RedisBackend::request_to_put(const Name& name, ByteView bytes, bool only_new) const
{
    const std::string text = store::to_text(name), object = key(text), seconds = std::to_string(m_settings.ttl.count());
    const std::string_view value = as_text(bytes);
    Request request;
    request.bytes.reserve(bytes.size() + 4096);
    request.add({"MULTI"});
    if (m_settings.ttl.count() > 0)
        only_new ? request.add({"SET", object, value, "EX", seconds, "NX"})
                 : request.add({"SET", object, value, "EX", seconds});
    else
        only_new ? request.add({"SET", object, value, "NX"}) : request.add({"SET", object, value});
    if (const auto* const entry = std::get_if<EntryKey>(&name)) {
        const std::string heads = heads_key(entry->function);
        const Bytes head = encode(head_of(bytes));
        request.add({only_new ? "HSETNX" : "HSET", heads, to_hex(entry->guards_digest), as_text(head)});
        add_expiry(request, heads);
        request.add({"SADD", functions_key(), store::prefix_of({.function = entry->function})});
        add_expiry(request, functions_key());
    } else {
        request.add({"SADD", names_key(store::kind_of(name)), text});
        add_expiry(request, names_key(store::kind_of(name)));
    }
    return request;
}

Result<void> RedisBackend::put(const Name& name, ByteView bytes, PutMode mode)
{
    if (bytes.size() > k_value_bytes)
        return fail(ErrorCode::unsupported, "remote {}: {} has {} bytes, Redis keeps at most {}", m_settings.label,
                    store::to_text(name), bytes.size(), k_value_bytes);
    const bool only_new = mode == PutMode::create_only;
    CallTimes limit = times(bytes.size());
    // The socket's buffer takes the last bytes long before the server has them.
    if (bytes.size() > k_small) limit.silence = m_settings.payload_timeout;
    Request request = request_to_put(name, bytes, only_new);
    const auto results = transact(request, {}, limit);
    if (!results) return std::unexpected(results.error());
    for (const Reply& result : *results)
        if (is(result, Reply::Kind::error))
            return within(fmt::format("remote {}: {}", m_settings.label, store::to_text(name)), error_of(result.line));
    const bool is_new = is(results->front(), Reply::Kind::status);
    if (!is_new && !(only_new && is(results->front(), Reply::Kind::null))) return no_answer(m_settings, "SET");
    const auto* const entry = std::get_if<EntryKey>(&name);
    const bool has_old_head = only_new && is_new && entry != nullptr && (*results)[1].number == 0;
    if (!has_old_head) return {};
    // The hash still has the head of an entry that was evicted.
    Request again;
    const Bytes head = encode(head_of(bytes));
    again.add({"HSET", heads_key(entry->function), to_hex(entry->guards_digest), as_text(head)});
    const auto replies = m_client.call(again, {}, times(head.size()));
    return replies ? Result<void>{} : std::unexpected(replies.error());
}

Result<void> RedisBackend::remove(const Name& name)
{
    const std::string text = store::to_text(name);
    Request request;
    request.add({"MULTI"});
    request.add({"DEL", key(text)});
    if (const auto* const entry = std::get_if<EntryKey>(&name))
        request.add({"HDEL", heads_key(entry->function), to_hex(entry->guards_digest)});
    else
        request.add({"SREM", names_key(store::kind_of(name)), text});
    const auto results = transact(request, {}, times(0));
    if (!results) return std::unexpected(results.error());
    if (is(results->front(), Reply::Kind::error))
        return within(fmt::format("remote {}: {}", m_settings.label, text), error_of(results->front().line));
    return {};
}

// --- Lists

/// SSCAN, because one answer with all names has no limit. It may give a name twice.
Result<std::set<std::string>> RedisBackend::members(const std::string& set, const CallTimes& times)
{
    std::set<std::string> found;
    std::string cursor = "0";
    do {
        Request request;
        request.add({"SSCAN", set, cursor, "COUNT", k_scan_count});
        auto replies = m_client.call(request, {k_name_bytes, k_heads_bytes}, times);
        if (!replies) return std::unexpected(replies.error());
        const std::vector<Reply>& parts = replies->front().items;
        if (parts.size() != 2 || !is(parts[0], Reply::Kind::bulk) || !is(parts[1], Reply::Kind::array))
            return no_answer(m_settings, "SSCAN");
        if (found.size() > k_names)
            return fail(ErrorCode::unsupported, "remote {}: '{}' has more than {} names, too many to list",
                        m_settings.label, set, k_names);
        for (const Reply& item : parts[1].items) found.emplace(as_text(item.bulk));
        cursor = as_text(parts[0].bulk);
    } while (cursor != "0");
    return found;
}

void RedisBackend::keep_if_listed(std::vector<Name>& names, const std::string& text, const Scope& scope) const
{
    if (!text.starts_with(store::prefix_of(scope))) return;
    if (auto name = store::name_from_text(text)) names.push_back(std::move(*name));
}

Result<std::vector<Name>> RedisBackend::list_function(const std::string& prefix, const CallTimes& times)
{
    Request request;
    request.add({"HKEYS", key("heads:" + prefix)});
    const auto replies = m_client.call(request, {k_name_bytes, k_heads_bytes}, times);
    if (!replies) return std::unexpected(replies.error());
    if (!is(replies->front(), Reply::Kind::array)) return no_answer(m_settings, "HKEYS");
    std::vector<Name> names;
    for (const Reply& item : replies->front().items)
        keep_if_listed(names, prefix + std::string(as_text(item.bulk)), {});
    return names;
}

Result<std::vector<Name>> RedisBackend::list(const Scope& scope)
{
    const CallTimes limit = times(k_heads_bytes);
    std::vector<Name> names;
    if (scope.kind != store::ArtifactKind::entries) {
        const auto texts = members(names_key(scope.kind), limit);
        if (!texts) return std::unexpected(texts.error());
        for (const std::string& text : *texts) keep_if_listed(names, text, scope);
    } else {
        std::set<std::string> prefixes;
        if (scope.function) {
            prefixes.insert(store::prefix_of(scope));
        } else if (auto all = members(functions_key(), limit)) {
            prefixes = std::move(*all);
        } else {
            return std::unexpected(all.error());
        }
        for (const std::string& prefix : prefixes) {
            auto more = list_function(prefix, limit);
            if (!more) return more;
            names.insert(names.end(), more->begin(), more->end());
        }
    }
    std::ranges::sort(names);
    return names;
}

} // namespace
} // namespace redis

namespace {

/// Null except for rediss.
Result<std::unique_ptr<redis::TlsContext>> tls_of(const Settings& settings)
{
    if (settings.scheme != Scheme::rediss) return nullptr;
    auto opened = redis::TlsContext::open();
    if (!opened) return within(fmt::format("remote {}", settings.label), std::move(opened.error()));
    return opened;
}

} // namespace

Result<std::unique_ptr<store::Tier>> redis_backend(const Settings& settings)
{
    auto tls = tls_of(settings);
    if (!tls) return std::unexpected(std::move(tls.error()));
    return std::make_unique<redis::RedisBackend>(settings, std::move(*tls));
}

Result<StoreTime> redis_time(const Settings& settings)
{
    auto tls = tls_of(settings);
    if (!tls) return std::unexpected(std::move(tls.error()));
    redis::Client client(settings, std::move(*tls));
    redis::Request request;
    request.add({"TIME"});
    const auto replies =
        client.call(request, {.bulk_bytes = 32, .total_bytes = 64},
                    {std::chrono::steady_clock::now() + settings.header_timeout, settings.header_timeout});
    if (!replies) return within(fmt::format("remote {}", settings.label), replies.error());
    const auto& time = replies->front();
    std::int64_t seconds = 0;
    if (time.items.size() != 2 || time.items.front().bulk.empty()) return std::nullopt;
    const std::string_view text = as_text(time.items.front().bulk);
    if (std::from_chars(text.data(), text.data() + text.size(), seconds).ec != std::errc{}) return std::nullopt;
    return std::chrono::sys_seconds(std::chrono::seconds(seconds));
}

} // namespace warmgraph::remote
