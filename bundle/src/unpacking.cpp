// Copies objects from a bundle into a folder. Existing objects are never replaced.
#include <chrono>
#include <set>

#include "warmgraph/base/clock.hpp"
#include "warmgraph/bundle/transfer.hpp"
#include "warmgraph/cachefmt/image_use.hpp"
#include "warmgraph/profile/profile_file.hpp"

namespace warmgraph::bundle {
namespace {

constexpr double k_second_ms = 1000;
/// The most attempts to join a profile while another process writes it. Such a write takes a few milliseconds.
constexpr int k_tries = 50;
constexpr std::chrono::milliseconds k_when_busy{20};

/// Puts members into a folder.
class MemberUnpacker {
public:
    MemberUnpacker(const Bundle& bundle, store::Tier& folder, const profile::ProfileLibrary::Lock& lock,
                   Transfer& transfer)
        : m_bundle(bundle), m_folder(folder), m_profiles(folder, lock), m_transfer(transfer)
    {
    }

    /// Puts the graph's images first, so that a process that finds the graph also finds them.
    Result<void> graph(const Member& member, double seconds)
    {
        const auto name = *tier_name(member.kind, member.name);
        const auto there = is_there(name);
        if (!there) return std::unexpected(there.error());
        if (*there) return leave(m_transfer.there, member, "it is already in the folder");
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

    /// Puts an artifact that needs no other object.
    Result<void> other(const Member& member, const ArtifactFilter& wanted)
    {
        if (std::string why = wanted ? wanted(m_bundle, member) : std::string(); !why.empty())
            return leave(m_transfer.skipped, member, std::move(why));
        if (member.kind == ArtifactKind::profiles) return join_profile(member);
        const auto name = *tier_name(member.kind, member.name);
        const auto there = is_there(name);
        if (!there) return std::unexpected(there.error());
        if (*there) return leave(m_transfer.there, member, "it is already in the folder");
        const auto bytes = verified(member);
        if (!bytes) return leave(m_transfer.skipped, member, bytes.error().message);
        return put(member, name, *bytes, seconds_of(member.kind, name, *bytes));
    }

    /// Puts an image that no entry in the bundle needed.
    Result<void> rest(const Member& member)
    {
        if (m_seen.contains(std::string(member.name))) return {};
        const auto there = is_there(*tier_name(member.kind, member.name));
        if (!there) return std::unexpected(there.error());
        return *there ? leave(m_transfer.there, member, "it is already in the folder")
                      : leave(m_transfer.skipped, member, "no loaded entry needs it");
    }
    static Result<void> leave(std::vector<UnmovedArtifact>& list, const Member& member, std::string why)
    {
        list.push_back({std::string(member.name), std::move(why)});
        return {};
    }

private:
    Result<Bytes> verified(const Member& member) const
    {
        if (auto ok = m_bundle.verify(member); !ok) return std::unexpected(std::move(ok.error()));
        return m_bundle.content(member);
    }

    /// Joins the bundle's profile with the stored profile. A stored profile that cannot be read stays, because a user
    /// may have edited it.
    Result<void> join_profile(const Member& member)
    {
        const auto bytes = verified(member);
        const auto own = bytes ? profile::decode(*bytes) : std::unexpected(bytes.error());
        if (!own) return leave(m_transfer.skipped, member, own.error().message);
        const auto there = m_profiles.find(own->key);
        if (!there && there.error().code != ErrorCode::corrupt && there.error().code != ErrorCode::stale)
            return std::unexpected(there.error());
        if (!there)
            return leave(m_transfer.there, member,
                         "the profile in the folder cannot be read: " + there.error().message);
        if (*there) {
            const auto both = profile::join(**there, *own);
            if (both && *both == **there) return leave(m_transfer.there, member, "the folder has all of it");
        }
        for (int again = 0; again < k_tries; ++again) {
            const auto merged = m_profiles.merge(*own);
            if (!merged) return within(member.name, merged.error());
            if (*merged) {
                m_transfer.add(member.kind, member.name, bytes->size());
                return {};
            }
            system_clock().sleep_for(k_when_busy);
        }
        return leave(m_transfer.skipped, member,
                     "another process is writing the profile in the folder: load it again later");
    }

    Result<bool> is_there(const store::Name& name)
    {
        const auto found = m_folder.get(name, {1, false});
        if (!found) return std::unexpected(found.error());
        return found->has_value();
    }

    /// Puts an image. Returns an empty text, or the reason why entries that need the image cannot be used.
    Result<std::string> blob(const Digest& digest)
    {
        const store::Name name = store::ImageName{digest};
        const std::string text = to_text(name);
        const bool is_new = m_seen.insert(text).second;
        const auto there = is_there(name);
        if (!there) return std::unexpected(there.error());
        const Member* const member = m_bundle.find(text);
        if (*there) {
            if (is_new && member != nullptr) m_transfer.there.push_back({text, "it is already in the folder"});
            return std::string{};
        }
        if (member == nullptr) return "image " + short_hex(digest) + " is neither in the bundle nor in the folder";
        const auto bytes = m_bundle.content(*member);
        if (!bytes) return bytes.error().message;
        if (sha256(*bytes) != digest) return "image " + short_hex(digest) + " has another SHA-256 than its name says";
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
    profile::ProfileLibrary m_profiles;
    Transfer& m_transfer;
    std::set<std::string> m_seen;
};

} // namespace

Result<Transfer> unpack(const Bundle& bundle, store::Tier& folder, const EntryFilter& wanted,
                        const UnpackOptions& options)
{
    Transfer transfer;
    MemberUnpacker unpacking(bundle, folder, options.profile_lock, transfer);
    std::uint64_t done = 0;
    const std::uint64_t total = bundle.members().size();
    for (const Member& member : bundle.members()) {
        Result<void> ok;
        if (const auto usable = check_usable(bundle, member); !usable) {
            ok = MemberUnpacker::leave(transfer.skipped, member, usable.error().message);
        } else if (member.kind == ArtifactKind::entries) {
            const auto header = usable_graph(bundle, member);
            std::string refusal = header ? wanted(*header) : header.error().message;
            ok = refusal.empty() ? unpacking.graph(member, header->info.answer_ms / k_second_ms)
                                 : MemberUnpacker::leave(transfer.skipped, member, std::move(refusal));
        } else if (!is_blob(member.kind)) {
            ok = unpacking.other(member, options.artifacts);
        }
        if (!ok) return std::unexpected(std::move(ok.error()));
        if (options.progress) options.progress(++done, total);
    }
    for (const Member& member : bundle.members())
        if (is_blob(member.kind))
            if (auto ok = unpacking.rest(member); !ok) return std::unexpected(std::move(ok.error()));
    return transfer;
}

} // namespace warmgraph::bundle
