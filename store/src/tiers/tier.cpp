#include "warmgraph/store/tier.hpp"

#include <exception>

#include "warmgraph/base/log.hpp"
#include "warmgraph/cachefmt/key.hpp"

namespace warmgraph::store {
namespace {

/// Cuts the text up to the next slash, and the slash, and returns it without the slash.
std::string next_part(std::string_view& text)
{
    const std::size_t slash = std::min(text.find('/'), text.size());
    std::string part(text.substr(0, slash));
    text.remove_prefix(std::min(slash + 1, text.size()));
    return part;
}

struct Spelling {
    std::string operator()(const EntryKey& key) const
    {
        return prefix_of({.function = key.function}) + to_hex(key.guards_digest);
    }
    std::string operator()(const ImageName& image) const
    {
        return prefix_of({ArtifactKind::images}) + to_hex(image.digest);
    }
    std::string operator()(const ArtifactName& artifact) const
    {
        return prefix_of({artifact.kind}) + file_name(artifact);
    }
};

} // namespace

std::string_view suffix_of(const ArtifactName& name) noexcept { return row_of(name.kind).suffixes[name.form]; }

std::string file_name(const ArtifactName& name) { return to_hex(name.digest) + std::string(suffix_of(name)); }

std::optional<ArtifactName> artifact_from_file_name(std::string_view name)
{
    for (const ArtifactKind kind : kinds_with_files())
        for (std::uint8_t form = 0; form < row_of(kind).suffixes.size(); ++form) {
            const std::string_view suffix = row_of(kind).suffixes[form];
            if (suffix.empty() || !name.ends_with(suffix)) continue;
            const auto digest = digest_from_our_hex(name.substr(0, name.size() - suffix.size()));
            if (digest) return ArtifactName{kind, *digest, form};
        }
    return std::nullopt;
}

ArtifactKind kind_of(const Name& name) noexcept
{
    if (const auto* const artifact = std::get_if<ArtifactName>(&name)) return artifact->kind;
    return std::holds_alternative<ImageName>(name) ? ArtifactKind::images : ArtifactKind::entries;
}

std::string to_text(const Name& name) { return std::visit(Spelling{}, name); }

std::string prefix_of(const Scope& scope)
{
    const std::string_view folder = row_of(scope.kind).folder;
    if (!scope.function) return fmt::format("{}/", folder);
    return fmt::format("{}/{}/{}/{}/", folder, scope.function->model_info, scope.function->rank,
                       scope.function->function);
}

std::optional<Name> name_from_text(std::string_view text)
{
    const std::string folder = next_part(text);
    if (folder == row_of(ArtifactKind::images).folder) {
        const auto digest = digest_from_our_hex(text);
        return digest ? std::optional<Name>(ImageName{*digest}) : std::nullopt;
    }
    if (folder != row_of(ArtifactKind::entries).folder) {
        const auto artifact = artifact_from_file_name(text);
        return artifact && folder == row_of(artifact->kind).folder ? std::optional<Name>(*artifact) : std::nullopt;
    }
    EntryKey key;
    for (std::string* part : {&key.function.model_info, &key.function.rank, &key.function.function})
        *part = next_part(text);
    const auto digest = digest_from_our_hex(text);
    if (!digest || !check_key(key.function)) return std::nullopt;
    key.guards_digest = *digest;
    return key;
}

Result<std::vector<StampedEntry>> Tier::get_entries(const FunctionKey& function, ReadLimit extent)
{
    const auto names = list({.function = function});
    if (!names) return std::unexpected(names.error());
    std::vector<StampedEntry> entries;
    for (const Name& name : *names) {
        const auto* const key = std::get_if<EntryKey>(&name);
        if (key == nullptr) continue;
        auto found = get(name, extent);
        if (!found)
            entries.push_back({*key, std::unexpected(found.error())});
        else if (*found) // no object: it was removed meanwhile
            entries.push_back({*key, std::move(**found)});
    }
    return entries;
}

Result<void> Tier::note_use(const Name&) { return {}; }

void Tier::refuse(const Name& name, const Stamp&, const Error& reason) noexcept
try {
    const auto removed = remove(name);
    log().warn("{} is refused{}: {}", to_text(name), removed ? " and removed" : " and stays", reason.message);
} catch (const std::exception& error) {
    log().debug("cannot remove a refused object: {}", error.what());
}

} // namespace warmgraph::store
