// A remote tier together with the server that it asks.
#pragma once

#include <memory>

#include "../store/store_fixture.hpp"
#include "warmgraph/remote/backends.hpp"

namespace warmgraph::test {

/// A tier together with its server.
template <class Server>
class ServedTier final : public store::Tier {
public:
    ServedTier(std::unique_ptr<Server> server, const remote::Settings& settings)
        : m_server(std::move(server)), m_tier(take(remote::backend_of(settings)))
    {
    }
    Result<std::optional<store::StampedBytes>> get(const store::Name& name, store::ReadLimit extent) override
    {
        return m_tier->get(name, extent);
    }
    using Tier::put;
    Result<void> put(const store::Name& name, ByteView bytes, store::PutMode mode) override
    {
        return m_tier->put(name, bytes, mode);
    }
    Result<void> remove(const store::Name& name) override { return m_tier->remove(name); }
    Result<std::vector<store::Name>> list(const store::Scope& scope) override { return m_tier->list(scope); }
    Result<std::vector<store::StampedEntry>> get_entries(const FunctionKey& function, store::ReadLimit extent) override
    {
        return m_tier->get_entries(function, extent);
    }

private:
    std::unique_ptr<Server> m_server;
    std::unique_ptr<store::Tier> m_tier;
};

} // namespace warmgraph::test
