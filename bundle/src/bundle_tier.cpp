#include "warmgraph/bundle/bundle_tier.hpp"

#include <algorithm>
#include <exception>

#include "warmgraph/base/log.hpp"

namespace warmgraph::bundle {

BundleTier::BundleTier(std::unique_ptr<Bundle> bundle, std::string label)
    : m_bundle(std::move(bundle)), m_label(std::move(label))
{
    if (!m_bundle->signed_by().empty()) return;
    for (const Member& member : m_bundle->members())
        if (needs_signed_bundle(member.kind)) {
            log().warn("{} in bundle {} is not used: no accepted key signed the bundle", member.name, m_label);
            m_refused.emplace(member.name);
        }
}

bool BundleTier::is_refused(const std::string& name) const
{
    const std::scoped_lock lock{m_mutex};
    return m_refused.contains(name);
}

Result<std::optional<store::StampedBytes>> BundleTier::get(const store::Name& name, store::ReadLimit extent)
{
    const std::string text = to_text(name);
    const Member* const member = m_bundle->find(text);
    if (member == nullptr || is_refused(text)) return std::nullopt;
    store::StampedBytes found{{.size = member->object_size(), .version = 0, .used = {}}, Bytes{}};
    if (auto ok = m_bundle->check_trust(*member); !ok) {
        found.bytes = std::unexpected(std::move(ok.error()));
        return found;
    }
    if (extent.whole && member->object_size() > extent.bytes) {
        found.bytes =
            fail(ErrorCode::corrupt, "{} has {} bytes, at most {} are read", text, member->object_size(), extent.bytes);
        return found;
    }
    if (!extent.whole && extent.offset == 0 &&
        extent.bytes <= member->head.size()) { // only the guards are asked for, and the index has them
        const ByteView head = member->head.first(extent.bytes);
        found.bytes = Bytes(head.begin(), head.end());
        return found;
    }
    if (!extent.whole && extent.offset == 0 &&
        !member->head.empty()) { // returns the whole head; its envelope says where the guards end
        found.bytes = Bytes(member->head.begin(), member->head.end());
        return found;
    }
    auto bytes = m_bundle->content(*member);
    if (!bytes && bytes.error().code != ErrorCode::corrupt) return within(m_label, std::move(bytes.error()));
    if (bytes) cut(*bytes, extent);
    found.bytes = std::move(bytes);
    return found;
}

Result<void> BundleTier::put(const store::Name& name, ByteView, store::PutMode)
{
    return fail(ErrorCode::permission_denied, "cannot write {} into bundle {}: bundles are read-only", to_text(name),
                m_label);
}

Result<void> BundleTier::remove(const store::Name& name)
{
    return fail(ErrorCode::permission_denied, "cannot remove {} from bundle {}: bundles are read-only", to_text(name),
                m_label);
}

Result<std::vector<store::Name>> BundleTier::list(const store::Scope& scope)
{
    const std::string prefix = prefix_of(scope);
    std::vector<store::Name> names;
    for (const Member& member : m_bundle->members()) {
        if (!member.name.starts_with(prefix)) continue;
        auto name = tier_name(member.kind, member.name);
        if (name && !is_refused(std::string(member.name))) names.push_back(std::move(*name));
    }
    std::ranges::sort(names);
    return names;
}

void BundleTier::refuse(const store::Name& name, const store::Stamp&, const Error& reason) noexcept
try {
    std::string text = to_text(name);
    if (m_bundle->find(text) == nullptr || is_refused(text)) return;
    log().warn("{} in bundle {} is not used: {}", text, m_label, reason.message);
    const std::scoped_lock lock{m_mutex};
    m_refused.insert(std::move(text));
} catch (const std::exception& error) {
    log().debug("a refused object may be returned again: {}", error.what());
}

} // namespace warmgraph::bundle
