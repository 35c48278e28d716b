// The tests that every tier must pass, wherever it keeps its bytes. For a new tier, add its name to k_tiers.
#pragma once

#include "memory_tier.hpp"
#include "store_fixture.hpp"
#include "warmgraph/store/tier.hpp"

namespace warmgraph::test {

/// Makes an empty tier.
struct TierMaker {
    const char* name;
    std::unique_ptr<store::Tier> (*make)(const fs::path& folder);
};

/// The tier of a cache folder, together with its store.
class FolderTier final : public store::Tier {
public:
    explicit FolderTier(const fs::path& folder) : m_store(LocalStore::open(folder).value()) {}
    Result<std::optional<store::StampedBytes>> get(const store::Name& name, store::ReadLimit extent) override
    {
        return m_store->tier().get(name, extent);
    }
    using Tier::put;
    Result<void> put(const store::Name& name, ByteView bytes, store::PutMode mode) override
    {
        return m_store->tier().put(name, bytes, mode);
    }
    Result<void> remove(const store::Name& name) override { return m_store->tier().remove(name); }
    Result<std::vector<store::Name>> list(const store::Scope& scope) override { return m_store->tier().list(scope); }
    Result<void> note_use(const store::Name& name) override { return m_store->tier().note_use(name); }
    void refuse(const store::Name& name, const store::Stamp& stamp, const Error& reason) noexcept override
    {
        m_store->tier().refuse(name, stamp, reason);
    }

private:
    std::unique_ptr<LocalStore> m_store;
};

inline constexpr TierMaker k_tiers[]{
    {"memory", [](const fs::path&) -> std::unique_ptr<store::Tier> { return std::make_unique<MemoryTier>(); }},
    {"folder",
     [](const fs::path& folder) -> std::unique_ptr<store::Tier> { return std::make_unique<FolderTier>(folder); }},
};

class TierConformance : public StoreTest, public testing::WithParamInterface<TierMaker> {
protected:
    /// All bytes of an object as text; "none" when the object does not exist.
    std::string text_of(const store::Name& name)
    {
        const auto found = m_tier->get(name, {1 << 20});
        if (!found) return "failed: " + found.error().message;
        if (!*found) return "none";
        return (*found)->bytes ? std::string(as_text(*(*found)->bytes)) : (*found)->bytes.error().message;
    }
    void put(const store::Name& name, std::string_view text)
    {
        ASSERT_TRUE(succeeded(m_tier->put(name, as_bytes(text))));
    }
    static store::Name entry(const FunctionKey& function, std::string_view of)
    {
        return EntryKey{function, sha256(as_bytes(of))};
    }
    static store::Name image(std::string_view text) { return store::ImageName{sha256(as_bytes(text))}; }

    std::unique_ptr<store::Tier> m_tier = GetParam().make(m_root);
};

} // namespace warmgraph::test
