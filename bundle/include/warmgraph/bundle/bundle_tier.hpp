// A bundle as a read-only tier.
#pragma once

#include <memory>
#include <mutex>
#include <set>
#include <string>

#include "warmgraph/bundle/bundle.hpp"
#include "warmgraph/store/tier.hpp"

namespace warmgraph::bundle {

/// put() and remove() fail with permission_denied. Members that failed verification are not given again (refuse()).
/// Members of kinds that need a signed bundle (needs_signed_bundle) are given only if an accepted key signed this
/// bundle.
class BundleTier final : public store::Tier {
public:
    /// `label`: name of the file, for messages.
    BundleTier(std::unique_ptr<Bundle> bundle, std::string label);

    [[nodiscard]] Result<std::optional<store::StampedBytes>> get(const store::Name& name,
                                                                 store::ReadLimit extent) override;
    [[nodiscard]] Result<void> put(const store::Name& name, ByteView bytes, store::PutMode mode) override;
    [[nodiscard]] Result<void> remove(const store::Name& name) override;
    [[nodiscard]] Result<std::vector<store::Name>> list(const store::Scope& scope) override;
    void refuse(const store::Name& name, const store::Stamp& stamp, const Error& reason) noexcept override;

    [[nodiscard]] const Bundle& bundle() const noexcept { return *m_bundle; }
    [[nodiscard]] const std::string& label() const noexcept { return m_label; }

private:
    [[nodiscard]] bool is_refused(const std::string& name) const;

    std::unique_ptr<Bundle> m_bundle;
    std::string m_label;
    mutable std::mutex m_mutex;
    std::set<std::string> m_refused; ///< names of refused members; guarded by m_mutex
};

} // namespace warmgraph::bundle
