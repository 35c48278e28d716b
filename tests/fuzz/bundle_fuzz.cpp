// Reads a whole bundle. Most mutations get digests that match, because an attacker can do that, too.
#include <algorithm>
#include <cstring>

#include "assemble_bundle.hpp"
#include "fuzz.hpp"
#include "memory_tier.hpp"
#include "warmgraph/autotune/config_library.hpp"
#include "warmgraph/base/log.hpp"
#include "warmgraph/bundle/artifact_compatibility.hpp"
#include "warmgraph/bundle/bundle.hpp"
#include "warmgraph/bundle/bundle_tier.hpp"
#include "warmgraph/bundle/compatibility.hpp"
#include "warmgraph/bundle/transfer.hpp"
#include "warmgraph/profile/profile_library.hpp"
#include "warmgraph/store/store.hpp"

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t max_size);

namespace {

using namespace warmgraph;

void check_refusal(const Error& error)
{
    fuzz::require(error.code == ErrorCode::corrupt || error.code == ErrorCode::stale ||
                      error.code == ErrorCode::unsupported || error.code == ErrorCode::untrusted,
                  "a refusal is corrupt, stale, unsupported or untrusted");
    fuzz::require(!error.message.empty(), "a refusal says why");
}

void check_member(const bundle::Bundle& opened, const bundle::Member& member)
{
    fuzz::require(bundle::is_member_name(member.name), "a name leads nowhere else");
    fuzz::require(opened.find(member.name) == &member, "a name is there once");
    if (member.kind == store::ArtifactKind::entries) {
        if (const auto header = opened.header(member))
            static_cast<void>(bundle::to_text(bundle::judge(header->guards, {})));
        else
            check_refusal(header.error());
    }
    const auto content = opened.content(member);
    if (!content) return check_refusal(content.error());
    fuzz::require(content->size() == member.object_size(), "a member has the size that the index says");
    const auto verified = opened.verify(member);
    if (!verified) check_refusal(verified.error());
    if (member.kind == store::ArtifactKind::entries || store::is_blob(member.kind) ||
        bundle::find_reader(member.kind) == nullptr)
        return;
    const auto fit = bundle::judge_artifact(opened, member, [](const std::string&) { return nullptr; });
    if (!fit) check_refusal(fit.error());
    const auto what = bundle::describe_artifact(opened, member);
    if (!what) check_refusal(what.error());
    fuzz::require(!verified || (fit && what && bundle::architecture_of(opened, member)), "what is whole is known");
}

/// Reads objects as the libraries do. Each object that a tier lists must be readable under its name, or be refused.
void check_artifacts(bundle::BundleTier& tier)
{
    const autotune::ConfigLibrary tuned(tier);
    const profile::ProfileLibrary profiles(tier);
    for (const store::ArtifactKind kind : store::kinds_with_files()) {
        const auto names = tier.list({kind});
        fuzz::require(names.has_value(), "a bundle can be listed");
        for (const store::Name& name : *names) {
            const auto& artifact = std::get<store::ArtifactName>(name);
            static_cast<void>(tuned.find(artifact.digest));
            static_cast<void>(tuned.modules().find(artifact.digest));
            static_cast<void>(profiles.find(artifact.digest));
            const auto first = tier.get(name, {128UL << 10U, false});
            if (first && *first && (*first)->bytes) static_cast<void>(precompile::decode_ingredients(*(*first)->bytes));
        }
    }
}

std::vector<store::Name> names_in(store::Tier& folder)
{
    std::vector<store::Name> names;
    for (const store::ArtifactKind kind : store::kinds_for(store::KindUse::cleared))
        for (const store::Name& name : folder.list({kind}).value()) names.push_back(name);
    return names;
}

void check_written(bundle::Writer& writer, const Bytes& bytes)
{
    if (writer.members() == 0) return;
    fuzz::require(writer.finish().has_value(), "a bundle can be finished");
    const auto written = bundle::Bundle::open(bundle::over_bytes(bytes));
    fuzz::require(written && std::ranges::all_of(
                                 (*written)->members(),
                                 [&](const bundle::Member& member) { return (*written)->verify(member).has_value(); }),
                  "what was written is whole");
}

/// Copies objects into a folder, from there into a bundle, and from a bundle into another one. Every object that is
/// copied must be complete.
void check_transfer(const bundle::Bundle& opened)
{
    test::MemoryTier folder;
    const auto all = [](const cachefmt::EntryHeader&) { return std::string(); };
    const auto unpacked = bundle::unpack(opened, folder, all);
    fuzz::require(unpacked.has_value(), "a folder that takes everything gives no error");
    const std::vector<store::Name> names = names_in(folder);
    std::uint64_t moved = 0;
    for (const auto& [kind, amount] : unpacked->moved) moved += amount.count;
    fuzz::require(names.size() == moved, "what is there was moved");
    const store::Store store(folder);
    std::vector<store::EntryKey> entries;
    for (const store::Name& name : names) {
        if (const auto* const key = std::get_if<store::EntryKey>(&name)) entries.push_back(*key);
        const auto* const image = std::get_if<store::ImageName>(&name);
        fuzz::require(image == nullptr || sha256(*folder.get(name, {1 << 30}).value()->bytes) == image->digest,
                      "an image has its digest");
    }
    for (const store::EntryKey& key : entries) {
        const auto header = store.header(key);
        fuzz::require(header && *header && (*header)->kind == cachefmt::EntryKind::graph,
                      "an entry in a folder is whole");
    }
    const auto again = bundle::unpack(opened, folder, all);
    fuzz::require(again && again->moved.empty(), "nothing is taken twice");

    const bundle::Getter get = [&](const store::Name& name) -> Result<std::optional<Bytes>> {
        auto found = folder.get(name, {1 << 30});
        return found && *found ? std::optional((*found)->bytes.value()) : std::nullopt;
    };
    Bytes second, third;
    bundle::Writer writer(bundle::into_bytes(second)), copier(bundle::into_bytes(third));
    const auto gathered = bundle::gather(writer, entries, get);
    fuzz::require(gathered && gathered->skipped.empty(), "what was taken can be given");
    const auto artifacts = bundle::artifacts_of(folder, [](store::ArtifactKind) { return true; });
    fuzz::require(artifacts && bundle::gather(writer, *artifacts, get), "objects that stand alone, too");
    check_written(writer, second);
    fuzz::require(bundle::copy_members(opened, copier, all).has_value(), "members are copied");
    check_written(copier, third);
}

} // namespace

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t max_size,
                                               unsigned seed)
{
    namespace at = test::bundle_at;
    size = LLVMFuzzerMutate(data, size, max_size);
    if (size < at::end || seed % 8 == 0) return size; // the digests are not changed, as after accidental damage
    Bytes bytes(size);
    std::memcpy(bytes.data(), data, size);
    std::memcpy(bytes.data(), "\x89WGBND\r\n", 8);
    const std::uint32_t version = 1;
    std::memcpy(bytes.data() + at::version, &version, sizeof version);
    auto offset = load<std::uint64_t>(ByteView{bytes}, at::index_offset);
    if (seed % 8 != 1) { // in the other case, the sizes are wrong but the digests match
        offset = std::min<std::uint64_t>(std::max<std::uint64_t>(offset, at::end), size);
        const std::uint64_t stored = size - offset;
        std::memcpy(bytes.data() + at::index_offset, &offset, sizeof offset);
        std::memcpy(bytes.data() + at::index_stored, &stored, sizeof stored);
        if (load<std::uint32_t>(ByteView{bytes}, at::index_codec) == 0)
            std::memcpy(bytes.data() + at::index_raw, &stored, sizeof stored);
    }
    test::reseal_bundle(bytes);
    std::memcpy(data, bytes.data(), size);
    return size;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size)
{
    log().set_level(spdlog::level::off); // off, because refusals would be logged thousands of times
    const ByteView bytes{reinterpret_cast<const std::byte*>(data), size};
    auto opened = bundle::Bundle::open(bundle::over_bytes(bytes));
    if (!opened) {
        check_refusal(opened.error());
        return 0;
    }
    for (const bundle::Member& member : (*opened)->members()) check_member(**opened, member);
    check_transfer(**opened);
    bundle::BundleTier tier(std::move(*opened), "fuzz.wgb");
    store::Store store(tier);
    const auto names = tier.list({});
    fuzz::require(names.has_value(), "a bundle can be listed");
    for (const auto& name : *names) static_cast<void>(store.entry(std::get<store::EntryKey>(name)));
    check_artifacts(tier);
    return 0;
}
