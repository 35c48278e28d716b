// A fixture with a cache folder, and bundles that are made from it.
#pragma once

#include "assemble_bundle.hpp"
#include "store_fixture.hpp"
#include "warmgraph/bundle/bundle.hpp"
#include "warmgraph/bundle/transfer.hpp"
#include "warmgraph/bundle/writer.hpp"

namespace warmgraph::test {

using bundle::Bundle;
using bundle::Member;
using bundle::Transfer;
using store::ArtifactKind;

inline const bundle::EntryFilter k_all = [](const EntryHeader&) { return std::string{}; };

/// The member's name, "images/<digest>".
inline std::string image_name(const Bytes& image) { return to_text(store::Name(store::ImageName{sha256(image)})); }
inline std::string entry_name(const Entry& entry) { return to_text(store::Name(entry.header.key)); }

inline Entry make_tombstone(const FunctionKey& function, int variant)
{
    Entry entry = make_entry(function, variant);
    entry.header.kind = cachefmt::EntryKind::tombstone;
    entry.header.info.node_count = 0;
    entry.header.info.reason = "recompiled";
    entry.header.info.difference = {"x"};
    entry.graph = {};
    return entry;
}

class BundleTest : public StoreTest {
protected:
    /// Puts three entries into the store: two share an image that can be compressed, and one has its own image.
    void fill(LocalStore& store)
    {
        for (const Bytes& image : {m_shared, m_own}) take(store.publish_image(image));
        for (const Entry& entry : m_entries) take(store.publish(entry));
    }
    static bundle::Getter getter(LocalStore& store)
    {
        return [&store](const store::Name& name) -> Result<std::optional<Bytes>> {
            auto found = store.tier().get(name, {1 << 28});
            if (!found) return std::unexpected(found.error());
            if (!*found) return std::nullopt;
            if (!(*found)->bytes) return std::unexpected((*found)->bytes.error());
            return std::move(*(*found)->bytes);
        };
    }
    std::vector<EntryKey> keys() const
    {
        std::vector<EntryKey> keys;
        for (const Entry& entry : m_entries) keys.push_back(entry.header.key);
        return keys;
    }
    Bytes make(LocalStore& store, const bundle::WriteOptions& options = {}, Transfer* transfer = nullptr)
    {
        Bytes bytes;
        bundle::Writer writer(bundle::into_bytes(bytes), options);
        auto gathered = take(bundle::gather(writer, keys(), getter(store)));
        if (transfer != nullptr) *transfer = std::move(gathered);
        take(writer.finish());
        return bytes;
    }
    static Result<std::unique_ptr<Bundle>> open_bundle(ByteView bytes, const cachefmt::Trust& trust = {})
    {
        return Bundle::open(bundle::over_bytes(bytes), trust);
    }

    Bytes m_shared = Bytes(100'000, std::byte{'c'}), m_own = image_of("code of its own");
    std::vector<Entry> m_entries{make_entry(k_decode, 1, "", {m_shared}), make_entry(k_decode, 2, "", {m_shared}),
                                 make_entry(k_prompt, 1, "", {m_shared, m_own})};
};

} // namespace warmgraph::test
