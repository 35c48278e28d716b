// The C interface: stores of the caller's own, and the counters of remotes.
#include <algorithm>
#include <exception>

#include <nlohmann/json.hpp>

#include "c_api.hpp"

using namespace warmgraph;        // NOLINT: the functions of the C interface are in no namespace
using namespace warmgraph::c_api; // NOLINT

namespace {

/// A store that answers by callbacks. Their failures become exceptions, which the cache counts.
class CallbackTier final : public Tier {
public:
    explicit CallbackTier(const wg_tier& calls) : m_calls(calls) {}
    ~CallbackTier() override
    {
        if (m_releases && m_calls.release != nullptr) m_calls.release(m_calls.user);
    }

    void releases() noexcept { m_releases = true; }

    std::optional<Object> get(const std::string& name, std::uint64_t offset, std::uint64_t bytes) override
    {
        // The size of an object is known after the first call, so that no more memory is taken than it needs.
        constexpr std::uint64_t k_first = 64ULL << 10;
        Object object{0, std::vector<std::byte>(std::min(bytes, k_first))};
        if (!read(name, offset, object.bytes, object.size)) return std::nullopt;
        const std::uint64_t there = object.size - std::min(object.size, offset), wanted = std::min(bytes, there),
                            got = object.bytes.size();
        object.bytes.resize(wanted);
        std::uint64_t size = 0;
        if (wanted > got &&
            (!read(name, offset + got, std::span(object.bytes).subspan(got), size) || size != object.size))
            throw CallbackFailed(fmt::format("{} changed while it was read", name));
        return object;
    }
    void put(const std::string& name, std::span<const std::byte> bytes, TierPut mode) override
    {
        const auto only_new = static_cast<std::int32_t>(mode == TierPut::create_only);
        expect_ok("put", m_calls.put(m_calls.user, name.c_str(), bytes.data(), bytes.size(), only_new));
    }
    void remove(const std::string& name) override
    {
        const wg_status status = m_calls.remove(m_calls.user, name.c_str());
        if (status != wg_not_found) expect_ok("remove", status);
    }
    std::vector<std::string> list(const std::string& prefix) override
    {
        Names names;
        expect_ok("list", m_calls.list(m_calls.user, prefix.c_str(), take_name, &names));
        if (names.failure) std::rethrow_exception(names.failure);
        return std::move(names.list);
    }

private:
    struct Names {
        std::vector<std::string> list{};
        std::exception_ptr failure{}; ///< no exception may pass through the caller's code
    };
    static void take_name(void* to, const char* name) noexcept
    {
        auto& names = *static_cast<Names*>(to);
        try {
            if (name != nullptr) names.list.emplace_back(name);
        } catch (...) {
            names.failure = std::current_exception();
        }
    }
    /// Fills the buffer from `offset` on. Returns false if there is no such object.
    bool read(const std::string& name, std::uint64_t offset, std::span<std::byte> to, std::uint64_t& size)
    {
        const wg_status status = m_calls.get(m_calls.user, name.c_str(), offset, to.data(), to.size(), &size);
        if (status == wg_not_found) return false;
        expect_ok("get", status);
        return true;
    }
    static void expect_ok(const char* what, wg_status status)
    {
        if (status != wg_ok) throw CallbackFailed(fmt::format("its {} returned {}", what, wg_status_name(status)));
    }

    wg_tier m_calls;
    bool m_releases = false; ///< read by the destructor alone
};

} // namespace

std::vector<TierOptions> c_api::to_tiers(const wg_cache_options& options)
{
    std::vector<TierOptions> result;
    for (const wg_tier& from : need_array(options.tiers, options.tier_count, "tiers")) {
        const std::string label = need_text(from.label, "a tier's label");
        if (from.get == nullptr || from.put == nullptr || from.remove == nullptr || from.list == nullptr)
            refuse("a callback of tier '{}' is null: pass get, put, remove and list", label);
    }
    for (const wg_tier& from : need_array(options.tiers, options.tier_count, "tiers"))
        result.push_back(
            {from.label, std::make_shared<CallbackTier>(from), from.read_only != 0, from.allow_unsigned != 0});
    return result;
}

void c_api::release_with(const std::vector<TierOptions>& tiers) noexcept
{
    for (const TierOptions& one : tiers) static_cast<CallbackTier&>(*one.tier).releases();
}

wg_status wg_cache_remote_statistics(const wg_cache* cache, char* text, uint64_t capacity, uint64_t* length)
{
    return guarded([&] {
        nlohmann::json list = nlohmann::json::array();
        for (const RemoteStatistics& from : need(cache, "cache", "one from wg_cache_open").cache.statistics().remotes)
            list.push_back({{"label", from.label},
                            {"hits", from.hits},
                            {"misses", from.misses},
                            {"puts", from.puts},
                            {"bytes_read", from.bytes_read},
                            {"bytes_left", from.bytes_left},
                            {"bytes_written", from.bytes_written},
                            {"read_ms", from.read_ms},
                            {"write_ms", from.write_ms},
                            {"skipped", from.skipped},
                            {"errors", from.errors}});
        write_text(list.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace), text, capacity, length);
    });
}
