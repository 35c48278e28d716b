#include "warmgraph/bundle/transfer.hpp"

#include <algorithm>
#include <iterator>

#include "warmgraph/cachefmt/image_use.hpp"

namespace warmgraph::bundle {
namespace {

constexpr double k_ms = 1000;

ArtifactKind kind_of_blob(const cachefmt::Graph& graph, const Digest& digest)
{
    for (const auto& image : graph.images)
        if (image.digest == digest) return ArtifactKind::images;
    return ArtifactKind::constants;
}

/// Adds one entry to a bundle. Returns an empty text, or the reason why it was left out.
class EntryPacker {
public:
    EntryPacker(Writer& writer, const Getter& get, Transfer& transfer)
        : m_writer(writer), m_get(get), m_transfer(transfer)
    {
    }

    Result<std::string> add(const store::EntryKey& key)
    {
        const auto bytes = m_get(key);
        if (!bytes) return bytes.error().message;
        if (!*bytes) return "it was removed meanwhile";
        const auto entry = cachefmt::decode(**bytes, key);
        if (!entry) return entry.error().message;
        if (entry->header.kind != cachefmt::EntryKind::graph)
            return "it was refused (" + entry->header.info.reason + "), and records of refusals are not copied";
        auto blobs = get_blobs(entry->graph);
        if (!blobs) return blobs.error().message;
        for (const auto& [digest, blob] : *blobs) // blobs come before the graph, for readers that read in order
            if (auto ok = put(kind_of_blob(entry->graph, digest), store::ImageName{digest}, blob, 0); !ok)
                return std::unexpected(std::move(ok.error()));
        if (auto ok = put(ArtifactKind::entries, key, **bytes, entry->header.info.answer_ms / k_ms); !ok)
            return std::unexpected(std::move(ok.error()));
        return std::string{};
    }

private:
    /// Reads all blobs that are not in the bundle yet, so that an entry is added whole or not at all.
    Result<std::vector<std::pair<Digest, Bytes>>> get_blobs(const cachefmt::Graph& graph)
    {
        std::vector<std::pair<Digest, Bytes>> blobs;
        for (const Digest& digest : cachefmt::blobs_of(graph)) {
            const store::Name name = store::ImageName{digest};
            if (m_writer.has(to_text(name))) continue;
            auto bytes = m_get(name);
            if (!bytes) return within("image " + short_hex(digest), bytes.error());
            if (!*bytes || sha256(**bytes) != digest)
                return fail(ErrorCode::not_found, "image {} is missing or damaged", short_hex(digest));
            blobs.emplace_back(digest, std::move(**bytes));
        }
        return blobs;
    }

    Result<void> put(ArtifactKind kind, const store::Name& name, ByteView bytes, double seconds)
    {
        const auto added = m_writer.add(kind, name, bytes);
        if (!added) return std::unexpected(added.error());
        if (*added) m_transfer.add(kind, to_text(name), bytes.size(), seconds);
        return {};
    }

    Writer& m_writer;
    const Getter& m_get;
    Transfer& m_transfer;
};

} // namespace

void Transfer::add(ArtifactKind kind, std::string_view name, std::uint64_t bytes, double seconds)
{
    Amount& amount = moved[kind];
    ++amount.count;
    amount.bytes += bytes;
    amount.seconds += seconds;
    amount.names.emplace_back(name);
}

void Transfer::merge(Transfer&& more)
{
    for (auto& [kind, amount] : more.moved) {
        Amount& sum = moved[kind];
        sum.count += amount.count;
        sum.bytes += amount.bytes;
        sum.seconds += amount.seconds;
        std::ranges::move(amount.names, std::back_inserter(sum.names));
    }
    std::ranges::move(more.there, std::back_inserter(there));
    std::ranges::move(more.skipped, std::back_inserter(skipped));
}

Result<Transfer> gather(Writer& writer, const std::vector<store::EntryKey>& entries, const Getter& get,
                        const Progress& progress)
{
    Transfer transfer;
    EntryPacker gathering(writer, get, transfer);
    std::uint64_t done = 0;
    for (const store::EntryKey& key : entries) {
        auto why = gathering.add(key);
        if (!why) return std::unexpected(std::move(why.error()));
        if (!why->empty()) transfer.skipped.push_back({to_text(store::Name(key)), std::move(*why)});
        if (progress) progress(++done, entries.size());
    }
    return transfer;
}

namespace {

/// Adds an artifact. Returns an empty text, or the reason why the artifact was left out.
Result<std::string> add_artifact(Writer& writer, const store::ArtifactName& name, const Getter& get, Transfer& transfer)
{
    const std::string text = to_text(store::Name(name));
    const auto bytes = get(name);
    if (!bytes) return bytes.error().message;
    if (!*bytes) return "it was removed meanwhile";
    if (const std::uint64_t most = store::row_of(name.kind).most_bytes; (*bytes)->size() > most)
        return fmt::format("it has {} bytes, at most {} are read", (*bytes)->size(), most);
    if (const auto ok = verify_artifact(name, **bytes); !ok) return ok.error().message;
    const auto added = writer.add(name.kind, name, **bytes);
    if (!added) return std::unexpected(added.error());
    if (*added) transfer.add(name.kind, text, (*bytes)->size(), seconds_of(name.kind, name, **bytes));
    return std::string{};
}

} // namespace

Result<Transfer> gather(Writer& writer, const std::vector<store::ArtifactName>& artifacts, const Getter& get,
                        const Progress& progress)
{
    Transfer transfer;
    std::uint64_t done = 0;
    for (const store::ArtifactName& name : artifacts) {
        auto why = add_artifact(writer, name, get, transfer);
        if (!why) return std::unexpected(std::move(why.error()));
        if (!why->empty()) transfer.skipped.push_back({to_text(store::Name(name)), std::move(*why)});
        if (progress) progress(++done, artifacts.size());
    }
    return transfer;
}

Result<std::vector<store::ArtifactName>> artifacts_of(store::Tier& tier,
                                                      const std::function<bool(ArtifactKind)>& wanted)
{
    std::vector<store::ArtifactName> artifacts;
    for (const ArtifactKind kind : store::kinds_with_files()) {
        if (!wanted(kind)) continue;
        const auto names = tier.list({kind});
        if (!names) return std::unexpected(names.error());
        for (const store::Name& name : *names) artifacts.push_back(std::get<store::ArtifactName>(name));
    }
    return artifacts;
}

Result<void> check_usable(const Bundle& bundle, const Member& member)
{
    if (needs_signed_bundle(member.kind) && bundle.signed_by().empty())
        return fail(ErrorCode::untrusted,
                    "a {} can run code where it is used, and is loaded only from a bundle that is signed with an "
                    "accepted key: {}",
                    name_of(member.kind),
                    bundle.key_id().empty() ? "this one is not signed"
                                            : "key '" + bundle.key_id() + "' is not accepted");
    return bundle.check_trust(member);
}

Result<cachefmt::EntryHeader> usable_graph(const Bundle& bundle, const Member& graph)
{
    auto header = bundle.header(graph);
    if (header && header->kind != cachefmt::EntryKind::graph)
        return fail(ErrorCode::unsupported, "it is the record of a refusal (a tombstone), and these are not copied");
    return header;
}

Result<std::vector<std::string>> needs_of(const Bundle& bundle, const Member& graph)
{
    const auto header = bundle.header(graph);
    if (!header) return within(graph.name, header.error());
    const auto bytes = bundle.content(graph);
    if (!bytes) return std::unexpected(bytes.error());
    const auto entry = cachefmt::decode(*bytes, header->key);
    if (!entry) return within(graph.name, entry.error());
    std::vector<std::string> names;
    for (const Digest& digest : cachefmt::blobs_of(entry->graph))
        names.push_back(to_text(store::Name(store::ImageName{digest})));
    return names;
}

Result<Transfer> copy_members(const Bundle& from, Writer& writer, const EntryFilter& wanted,
                              const ArtifactFilter& artifacts)
{
    Transfer transfer;
    const auto copy = [&](const Member& member, double seconds) -> Result<void> {
        const auto copied = writer.copy(from, member);
        if (!copied) return std::unexpected(copied.error());
        if (*copied)
            transfer.add(member.kind, member.name, member.object_size(), seconds);
        else
            transfer.there.push_back({std::string(member.name), "it is in already"});
        return {};
    };
    const auto skip = [&](const Member& member, std::string why) -> Result<void> {
        transfer.skipped.push_back({std::string(member.name), std::move(why)});
        return {};
    };
    const auto why_not_there = [&](const std::string& name) -> std::string {
        if (writer.has(name)) return {};
        const Member* const blob = from.find(name);
        if (blob == nullptr) return name + " is not in the bundle";
        const auto whole = from.verify(*blob);
        return whole ? std::string() : whole.error().message;
    };
    const auto copy_graph = [&](const Member& member) -> Result<void> {
        const auto header = usable_graph(from, member);
        std::string refusal = header ? wanted(*header) : header.error().message;
        const auto needs = refusal.empty() ? needs_of(from, member) : Result<std::vector<std::string>>{};
        if (!needs) refusal = needs.error().message;
        if (refusal.empty())
            for (const std::string& name : *needs)
                if (std::string why = why_not_there(name); !why.empty()) refusal = std::move(why);
        if (!refusal.empty()) return skip(member, std::move(refusal));
        for (const std::string& name : *needs)
            if (!writer.has(name))
                if (auto ok = copy(*from.find(name), 0); !ok) return ok;
        return copy(member, header->info.answer_ms / k_ms);
    };
    const auto copy_other = [&](const Member& member) -> Result<void> {
        std::string refusal = artifacts ? artifacts(from, member) : std::string();
        if (refusal.empty() && needs_signed_bundle(member.kind) && !writer.is_signed())
            refusal = "it can only be put into a signed bundle: give a key";
        if (refusal.empty())
            if (const auto usable = check_usable(from, member); !usable) refusal = usable.error().message;
        if (refusal.empty())
            if (const auto whole = from.verify(member); !whole) refusal = whole.error().message;
        return refusal.empty() ? copy(member, 0) : skip(member, std::move(refusal));
    };
    for (const Member& member : from.members()) {
        if (is_blob(member.kind)) continue; // copied together with the graphs that need the blob
        const auto ok = member.kind == ArtifactKind::entries ? copy_graph(member) : copy_other(member);
        if (!ok) return std::unexpected(ok.error());
    }
    return transfer;
}

} // namespace warmgraph::bundle
