// A tier in memory. Like a remote tier, it has only names (as text) and bytes.
#pragma once

#include <map>
#include <mutex>
#include <string>

#include "warmgraph/store/tier.hpp"

namespace warmgraph::test {

class MemoryTier final : public store::Tier {
public:
    Result<std::optional<store::StampedBytes>> get(const store::Name& name, store::ReadLimit extent) override
    {
        const std::scoped_lock guard(m_mutex);
        const auto object = m_objects.find(to_text(name));
        if (object == m_objects.end()) return std::nullopt;
        const Bytes& bytes = object->second;
        store::StampedBytes found{{.size = bytes.size()}, Bytes{}};
        if (extent.whole && bytes.size() > extent.bytes)
            found.bytes =
                fail(ErrorCode::corrupt, "object has {} bytes, at most {} are read", bytes.size(), extent.bytes);
        else
            store::cut(*(found.bytes = bytes), extent);
        return found;
    }
    using Tier::put;
    Result<void> put(const store::Name& name, ByteView bytes, store::PutMode mode) override
    {
        const std::scoped_lock guard(m_mutex);
        const auto [object, is_new] = m_objects.try_emplace(to_text(name));
        if (is_new || mode == store::PutMode::replace) object->second.assign(bytes.begin(), bytes.end());
        return {};
    }
    Result<void> remove(const store::Name& name) override
    {
        const std::scoped_lock guard(m_mutex);
        m_objects.erase(to_text(name));
        return {};
    }
    Result<std::vector<store::Name>> list(const store::Scope& scope) override
    {
        const std::scoped_lock guard(m_mutex);
        const std::string prefix = prefix_of(scope);
        std::vector<store::Name> names;
        for (auto object = m_objects.lower_bound(prefix);
             object != m_objects.end() && object->first.starts_with(prefix); ++object)
            if (const auto name = store::name_from_text(object->first)) names.push_back(*name);
        return names;
    }

private:
    std::mutex m_mutex;
    std::map<std::string, Bytes> m_objects;
};

} // namespace warmgraph::test
