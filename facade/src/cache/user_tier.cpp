#include "cache/user_tier.hpp"

#include <algorithm>
#include <exception>
#include <set>
#include <utility>

#include "warmgraph/base/log.hpp"
#include "warmgraph/base/printable.hpp"
#include "warmgraph/cachefmt/key.hpp"
#include "warmgraph/remote/backends.hpp"

namespace warmgraph {
namespace {

constexpr std::size_t k_shown_of_reason = 256;

class UserBackend final : public remote::Backend {
public:
    UserBackend(std::shared_ptr<warmgraph::Tier> tier, std::string label)
        : m_tier(std::move(tier)), m_label(std::move(label))
    {
    }

    Result<std::optional<store::StampedBytes>> get(const store::Name& name, store::ReadLimit extent) override
    {
        // A store that adds both numbers must not overflow.
        const std::uint64_t most = std::min(extent.bytes, ~std::uint64_t{0} - extent.offset);
        auto answer = asked("get", [&] { return m_tier->get(to_text(name), extent.offset, most); });
        if (!answer) return std::unexpected(answer.error());
        if (!*answer) return std::nullopt;
        const std::uint64_t size = (*answer)->size, got = (*answer)->bytes.size(),
                            expected = std::min(most, size - std::min(size, extent.offset));
        store::StampedBytes found{{.size = size}, Bytes{}};
        if (extent.whole && size > extent.bytes) {
            found.bytes = fail(ErrorCode::corrupt, "object has {} bytes, at most {} are read", size, extent.bytes);
            return found;
        }
        if (got != expected)
            return fail(ErrorCode::corrupt, "tier {} gave {} bytes of {}, expected {} of an object of {} bytes",
                        m_label, got, to_text(name), expected, size);
        found.bytes = std::move((*answer)->bytes);
        return found;
    }
    Result<void> put(const store::Name& name, ByteView bytes, store::PutMode mode) override
    {
        const TierPut how = mode == store::PutMode::create_only ? TierPut::create_only : TierPut::replace;
        return asked("put", [&] { m_tier->put(to_text(name), bytes, how); });
    }
    using Tier::put;
    Result<void> remove(const store::Name& name) override
    {
        return asked("remove", [&] { m_tier->remove(to_text(name)); });
    }
    Result<std::vector<store::Name>> list(const store::Scope& scope) override
    {
        const std::string prefix = store::prefix_of(scope);
        auto texts = asked("list", [&] { return m_tier->list(prefix); });
        if (!texts) return std::unexpected(texts.error());
        std::set<store::Name> names;
        for (const std::string& text : *texts)
            if (auto name = text.starts_with(prefix) ? store::name_from_text(text) : std::nullopt)
                names.insert(std::move(*name));
        return std::vector<store::Name>(names.begin(), names.end());
    }

private:
    /// Runs a call of the program's store.
    template <class Call>
    [[nodiscard]] auto asked(std::string_view what, Call call) const -> Result<decltype(call())>
    {
        try {
            if constexpr (std::is_void_v<decltype(call())>) {
                call();
                return {};
            } else {
                return call();
            }
        } catch (const std::exception& error) {
            return fail(ErrorCode::io_failed, "tier {}: {} failed: {}", m_label, what,
                        printable(error.what(), k_shown_of_reason));
        } catch (...) {
            return fail(ErrorCode::io_failed, "tier {}: {} failed with an exception that is no std::exception", m_label,
                        what);
        }
    }

    std::shared_ptr<warmgraph::Tier> m_tier;
    std::string m_label;
};

} // namespace

std::unique_ptr<store::Tier> user_backend(std::shared_ptr<Tier> tier, std::string label)
{
    return std::make_unique<UserBackend>(std::move(tier), std::move(label));
}

Result<void> check_tiers(const std::vector<TierOptions>& tiers)
{
    std::set<std::string_view> labels;
    for (const TierOptions& one : tiers) {
        if (auto ok = cachefmt::check_name("tier's label", one.label); !ok) return ok;
        if (one.tier == nullptr)
            return fail(ErrorCode::invalid_argument, "tier {} is null: give TierOptions::tier", one.label);
        if (!labels.insert(one.label).second)
            return fail(ErrorCode::invalid_argument, "two tiers have the label {}: give each its own", one.label);
    }
    return {};
}

std::vector<std::shared_ptr<remote::RemoteTier>> attach_tiers(store::LocalStore& store,
                                                              const std::vector<TierOptions>& tiers,
                                                              const cachefmt::Trust& trust)
{
    const bool has_key = trust.sign_with || !trust.accepted.empty();
    std::vector<std::shared_ptr<remote::RemoteTier>> attached;
    for (const TierOptions& one : tiers) {
        remote::RemoteOptions options{.label = one.label, .read_only = one.read_only, .trust = trust};
        options.trust.require = !one.allow_unsigned;
        attached.push_back(remote::attach(store, user_backend(one.tier, one.label), std::move(options)));
        if (!has_key && !one.allow_unsigned)
            log().warn("tier {} gives nothing: only signed objects are used, and no key is accepted: set "
                       "WARMGRAPH_ACCEPT_KEYS_FILE, or TierOptions::allow_unsigned",
                       one.label);
    }
    return attached;
}

} // namespace warmgraph
