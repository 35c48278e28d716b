#include "warmgraph/bundle/transfer.hpp"

#include <algorithm>
#include <iterator>
#include <set>

#include "warmgraph/cachefmt/image_use.hpp"

namespace warmgraph::bundle {
namespace {

constexpr double k_ms = 1000;

bool is_blob(Kind kind) noexcept { return kind == Kind::image || kind == Kind::constant; }

Kind kind_of_blob(const cachefmt::Graph& graph, const Digest& digest)
{
    for (const auto& image : graph.images)
        if (image.digest == digest) return Kind::image;
    return Kind::constant;
}

/// One entry's way into a bundle. Empty, or why it is left out.
class Gathering {
public:
    Gathering(Writer& writer, const Getter& get, Transfer& transfer)
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
            return "it was refused (" + entry->header.info.reason + "), and tombstones stay where they are";
        auto blobs = get_blobs(entry->graph);
        if (!blobs) return blobs.error().message;
        for (const auto& [digest, blob] : *blobs) // before the graph: who reads in order has what it needs
            if (auto ok = put(kind_of_blob(entry->graph, digest), store::ImageName{digest}, blob, 0); !ok)
                return std::unexpected(std::move(ok.error()));
        if (auto ok = put(Kind::graph, key, **bytes, entry->header.info.answer_ms / k_ms); !ok)
            return std::unexpected(std::move(ok.error()));
        return std::string{};
    }

private:
    /// All that is not in the bundle yet, so that no half of an entry gets in.
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

    Result<void> put(Kind kind, const store::Name& name, ByteView bytes, double seconds)
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

/// Members' way into a folder.
class Unpacking {
public:
    Unpacking(const Bundle& bundle, store::Tier& folder, Transfer& transfer)
        : m_bundle(bundle), m_folder(folder), m_transfer(transfer)
    {
    }

    /// The graph's images first: whoever finds it finds them too.
    Result<void> graph(const Member& member, double seconds)
    {
        const auto name = *tier_name(member.kind, member.name);
        const auto there = is_there(name);
        if (!there) return std::unexpected(there.error());
        if (*there) return leave(m_transfer.there, member, "the folder has it");
        const auto bytes = m_bundle.content(member);
        if (!bytes) return leave(m_transfer.skipped, member, bytes.error().message);
        const auto entry = cachefmt::decode(*bytes, std::get<store::EntryKey>(name));
        if (!entry) return leave(m_transfer.skipped, member, entry.error().message);
        for (const Digest& digest : cachefmt::blobs_of(entry->graph)) {
            const auto why = blob(digest);
            if (!why) return std::unexpected(why.error());
            if (!why->empty()) return leave(m_transfer.skipped, member, *why);
        }
        return put(member, name, *bytes, seconds);
    }

    /// An object that stands alone.
    Result<void> other(const Member& member)
    {
        const auto name = *tier_name(member.kind, member.name);
        const auto there = is_there(name);
        if (!there) return std::unexpected(there.error());
        if (*there) return leave(m_transfer.there, member, "the folder has it");
        if (const auto ok = m_bundle.verify(member); !ok) return leave(m_transfer.skipped, member, ok.error().message);
        const auto bytes = m_bundle.content(member);
        if (!bytes) return leave(m_transfer.skipped, member, bytes.error().message);
        return put(member, name, *bytes, 0);
    }

    /// An image that no entry asked for.
    Result<void> rest(const Member& member)
    {
        if (m_seen.contains(std::string(member.name))) return {};
        const auto there = is_there(*tier_name(member.kind, member.name));
        if (!there) return std::unexpected(there.error());
        return *there ? leave(m_transfer.there, member, "the folder has it")
                      : leave(m_transfer.skipped, member, "no entry that is taken needs it");
    }
    static Result<void> leave(std::vector<Left>& list, const Member& member, std::string why)
    {
        list.push_back({std::string(member.name), std::move(why)});
        return {};
    }

private:
    Result<bool> is_there(const store::Name& name)
    {
        const auto found = m_folder.get(name, {1, false});
        if (!found) return std::unexpected(found.error());
        return found->has_value();
    }

    /// Empty, or why an entry that needs it cannot be used.
    Result<std::string> blob(const Digest& digest)
    {
        const store::Name name = store::ImageName{digest};
        const std::string text = to_text(name);
        const bool is_new = m_seen.insert(text).second;
        const auto there = is_there(name);
        if (!there) return std::unexpected(there.error());
        const Member* const member = m_bundle.find(text);
        if (*there) {
            if (is_new && member != nullptr) m_transfer.there.push_back({text, "the folder has it"});
            return std::string{};
        }
        if (member == nullptr) return "image " + short_hex(digest) + " is neither in the bundle nor in the folder";
        const auto bytes = m_bundle.content(*member);
        if (!bytes) return bytes.error().message;
        if (sha256(*bytes) != digest) return "image " + short_hex(digest) + " has another SHA-256 than its name";
        if (auto ok = put(*member, name, *bytes, 0); !ok) return std::unexpected(std::move(ok.error()));
        return std::string{};
    }

    Result<void> put(const Member& member, const store::Name& name, ByteView bytes, double seconds)
    {
        if (auto ok = m_folder.put(name, bytes); !ok) return within(member.name, std::move(ok.error()));
        m_transfer.add(member.kind, member.name, bytes.size(), seconds);
        return {};
    }

    const Bundle& m_bundle;
    store::Tier& m_folder;
    Transfer& m_transfer;
    std::set<std::string> m_seen;
};

/// Why it cannot be taken, whatever it holds; empty where it may be.
std::string unusable_kind(const Bundle& bundle, const Member& member)
{
    const KindRow* const row = row_of(member.kind);
    if (row == nullptr || row->verify == nullptr)
        return fmt::format("this warmgraph cannot verify a {}", name_of(member.kind));
    if (needs_signed_bundle(member.kind) && bundle.signed_by().empty())
        return fmt::format("a {} can run code where it is used, and is taken only from a bundle that an accepted key "
                           "signed: {}",
                           row->name,
                           bundle.key_id().empty() ? "this one is not signed"
                                                   : "key '" + bundle.key_id() + "' is not accepted");
    if (bundle.requires_signature() && bundle.signed_by().empty() && member.kind != Kind::graph &&
        !is_blob(member.kind))
        return "a signature is required, and the bundle has none that is accepted";
    return {};
}

} // namespace

void Transfer::add(Kind kind, std::string_view name, std::uint64_t bytes, double seconds)
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
    Gathering gathering(writer, get, transfer);
    std::uint64_t done = 0;
    for (const store::EntryKey& key : entries) {
        auto why = gathering.add(key);
        if (!why) return std::unexpected(std::move(why.error()));
        if (!why->empty()) transfer.skipped.push_back({to_text(store::Name(key)), std::move(*why)});
        if (progress) progress(++done, entries.size());
    }
    return transfer;
}

Result<Transfer> gather_artifacts(Writer& writer, Kind kind, const std::vector<store::Name>& names, const Getter& get)
{
    Transfer transfer;
    for (const store::Name& name : names) {
        const std::string text = to_text(name);
        if (writer.has(text)) continue;
        const auto bytes = get(name);
        const auto added = !bytes    ? Result<bool>{std::unexpected(bytes.error())}
                           : !*bytes ? Result<bool>{fail(ErrorCode::not_found, "it was removed meanwhile")}
                                     : writer.add(kind, name, **bytes);
        if (added && *added)
            transfer.add(kind, text, (*bytes)->size());
        else if (added)
            continue;
        else if (added.error().code == ErrorCode::corrupt || added.error().code == ErrorCode::stale || !bytes ||
                 !*bytes)
            transfer.skipped.push_back({text, added.error().message});
        else
            return std::unexpected(added.error());
    }
    return transfer;
}

Result<Transfer> unpack(const Bundle& bundle, store::Tier& folder, const Wanted& wanted, const Progress& progress)
{
    Transfer transfer;
    Unpacking unpacking(bundle, folder, transfer);
    std::uint64_t done = 0;
    const std::uint64_t total = bundle.members().size();
    for (const Member& member : bundle.members()) {
        Result<void> ok;
        if (std::string why = unusable_kind(bundle, member); !why.empty()) {
            ok = Unpacking::leave(transfer.skipped, member, std::move(why));
        } else if (member.kind == Kind::graph) {
            const auto header = bundle.header(member);
            std::string refusal = !header ? header.error().message
                                  : header->kind != cachefmt::EntryKind::graph
                                      ? "it is a tombstone, and those stay where they are"
                                      : wanted(*header);
            ok = refusal.empty() ? unpacking.graph(member, header->info.answer_ms / k_ms)
                                 : Unpacking::leave(transfer.skipped, member, std::move(refusal));
        } else if (!is_blob(member.kind)) {
            ok = unpacking.other(member);
        }
        if (!ok) return std::unexpected(std::move(ok.error()));
        if (progress) progress(++done, total);
    }
    for (const Member& member : bundle.members())
        if (is_blob(member.kind))
            if (auto ok = unpacking.rest(member); !ok) return std::unexpected(std::move(ok.error()));
    return transfer;
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

Result<Transfer> copy_members(const Bundle& from, Writer& writer, const Wanted& wanted)
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
    const auto copy_graph = [&](const Member& member) -> Result<void> {
        const auto header = from.header(member);
        std::string refusal = header ? wanted(*header) : header.error().message;
        const auto needs = refusal.empty() ? needs_of(from, member) : Result<std::vector<std::string>>{};
        if (!needs) refusal = needs.error().message;
        if (refusal.empty())
            for (const std::string& name : *needs)
                if (from.find(name) == nullptr && !writer.has(name)) refusal = name + " is not in the bundle";
        if (!refusal.empty()) return Unpacking::leave(transfer.skipped, member, std::move(refusal));
        for (const std::string& name : *needs)
            if (!writer.has(name))
                if (auto ok = copy(*from.find(name), 0); !ok) return ok;
        return copy(member, header->info.answer_ms / k_ms);
    };
    for (const Member& member : from.members()) {
        if (is_blob(member.kind)) continue; // with the graphs that need it
        if (needs_signed_bundle(member.kind) && !writer.is_signed()) {
            transfer.skipped.push_back(
                {std::string(member.name), "it goes only into a bundle that is signed: give a key"});
            continue;
        }
        const auto ok = member.kind == Kind::graph ? copy_graph(member) : copy(member, 0);
        if (!ok) return std::unexpected(ok.error());
    }
    return transfer;
}

} // namespace warmgraph::bundle
