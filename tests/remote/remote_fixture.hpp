// A remote in memory that several machines share, with faults to inject.
#pragma once

#include <atomic>
#include <functional>
#include <memory>

#include "../store/memory_tier.hpp"
#include "../store/store_fixture.hpp"
#include "warmgraph/remote/remote_tier.hpp"

namespace warmgraph::test {

using remote::RemoteOptions;
using remote::RemoteTier;

/// The objects of a remote, which several RemoteTiers (of several machines) share, with a fault to inject.
struct SharedObjects {
    MemoryTier tier;
    std::atomic<std::uint64_t> asked = 0, bytes = 0;
    std::optional<Error> fault; ///< what every call gives
    std::function<void(store::StampedBytes&)> lie;
    std::function<void(std::chrono::milliseconds)> late; ///< lets the time pass that a read may take, which then fails
    std::vector<std::chrono::milliseconds> limits;       ///< ReadLimit::within of each read that had one
};

class SharedTier final : public store::Tier {
public:
    explicit SharedTier(std::shared_ptr<SharedObjects> shared) : m_shared(std::move(shared)) {}
    Result<std::optional<store::StampedBytes>> get(const store::Name& name, store::ReadLimit extent) override
    {
        ++m_shared->asked;
        if (extent.within.count() != 0) m_shared->limits.push_back(extent.within);
        if (extent.within.count() != 0 && m_shared->late) {
            m_shared->late(extent.within);
            return fail(ErrorCode::io_failed, "no answer within {} ms", extent.within.count());
        }
        if (m_shared->fault) return std::unexpected(*m_shared->fault);
        auto found = m_shared->tier.get(name, extent);
        if (found && *found && m_shared->lie) m_shared->lie(**found);
        if (found && *found && (*found)->bytes) m_shared->bytes += (*found)->bytes->size();
        return found;
    }
    Result<void> put(const store::Name& name, ByteView bytes, store::PutMode mode) override
    {
        ++m_shared->asked;
        if (m_shared->fault) return std::unexpected(*m_shared->fault);
        return m_shared->tier.put(name, bytes, mode);
    }
    Result<void> remove(const store::Name& name) override { return m_shared->tier.remove(name); }
    Result<std::vector<store::Name>> list(const store::Scope& scope) override
    {
        ++m_shared->asked;
        if (m_shared->fault) return std::unexpected(*m_shared->fault);
        return m_shared->tier.list(scope);
    }

private:
    std::shared_ptr<SharedObjects> m_shared;
};

class RemoteTest : public StoreTest {
protected:
    std::shared_ptr<RemoteTier> connect(RemoteOptions options = {}, Clock& clock = system_clock())
    {
        options.label = "test://remote";
        return std::make_shared<RemoteTier>(std::make_unique<SharedTier>(m_shared), std::move(options), clock);
    }
    /// A store of another machine: a folder of its own, above the same remote.
    std::unique_ptr<LocalStore> open_with(const std::shared_ptr<RemoteTier>& remote, const std::string& machine,
                                          StoreOptions options = {})
    {
        auto store = take(LocalStore::open(m_root / machine, options));
        store->add_layer(remote, remote->options().trust);
        return store;
    }
    void put(const Entry& entry, const std::vector<Bytes>& images = {}, const cachefmt::Trust& trust = {})
    {
        store::Store store(m_shared->tier, {.trust = trust});
        for (const Bytes& image : images) ASSERT_TRUE(succeeded(store.publish_image(image)));
        ASSERT_TRUE(succeeded(store.publish(entry)));
    }

    std::shared_ptr<SharedObjects> m_shared = std::make_shared<SharedObjects>();
    const Bytes m_image = Bytes(100'000, std::byte{7});
    const Entry m_entry = make_entry(k_decode, 1, "bitwise", {m_image});
};

inline cachefmt::Trust trust_of(const std::string& name, bool require = true)
{
    cachefmt::Trust trust;
    trust.sign_with = std::make_shared<const SigningKey>(
        SigningKey::parse(name + ":hmac-sha256:" + std::string(64, name == "ours" ? 'a' : 'b')).value());
    trust.require = require;
    return trust;
}

} // namespace warmgraph::test
