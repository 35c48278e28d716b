#include "warmgraph/store/tier.hpp"

#include <array>
#include <exception>

#include "warmgraph/base/log.hpp"
#include "warmgraph/cachefmt/key.hpp"

namespace warmgraph::store {
namespace {

constexpr std::string_view k_entries = "entries/";
constexpr std::string_view k_images = "images/";
constexpr std::string_view k_artifacts = "autotune/";
constexpr std::string_view k_compiled = "compiled/";
constexpr std::string_view k_profiles = "profile/";
constexpr std::string_view k_torch = "torch/";
constexpr std::array k_artifact_kinds{ArtifactKind::best_config, ArtifactKind::module_configs, ArtifactKind::compiled,
                                      ArtifactKind::profile, ArtifactKind::torch};

std::string_view folder_prefix(ArtifactKind kind) noexcept
{
    switch (kind) {
    case ArtifactKind::best_config:
    case ArtifactKind::module_configs: break;
    case ArtifactKind::compiled: return k_compiled;
    case ArtifactKind::profile: return k_profiles;
    case ArtifactKind::torch: return k_torch;
    }
    return k_artifacts;
}

/// The text up to the next slash, which is cut off with it.
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
    std::string operator()(const ImageName& image) const { return std::string(k_images) + to_hex(image.digest); }
    std::string operator()(const ArtifactName& artifact) const
    {
        return std::string(folder_prefix(artifact.kind)) + file_name(artifact);
    }
};

} // namespace

std::string_view suffix_of(ArtifactKind kind) noexcept
{
    switch (kind) {
    case ArtifactKind::best_config: return ".best_config";
    case ArtifactKind::module_configs: return ".module_configs";
    case ArtifactKind::compiled: return ".compiled";
    case ArtifactKind::profile: break;
    case ArtifactKind::torch: return ".mega_cache";
    }
    return ".profile";
}

std::string_view folder_of(ArtifactKind kind) noexcept
{
    const std::string_view prefix = folder_prefix(kind);
    return prefix.substr(0, prefix.size() - 1);
}

std::string file_name(const ArtifactName& name) { return to_hex(name.digest) + std::string(suffix_of(name.kind)); }

std::optional<ArtifactName> artifact_from_file_name(std::string_view name)
{
    for (const ArtifactKind kind : k_artifact_kinds) {
        const std::string_view suffix = suffix_of(kind);
        if (!name.ends_with(suffix)) continue;
        const auto digest = digest_from_our_hex(name.substr(0, name.size() - suffix.size()));
        if (digest) return ArtifactName{kind, *digest};
    }
    return std::nullopt;
}

std::string to_text(const Name& name) { return std::visit(Spelling{}, name); }

std::string prefix_of(const Scope& scope)
{
    if (scope.kind == Scope::Kind::images) return std::string(k_images);
    if (scope.kind == Scope::Kind::artifacts) return std::string(k_artifacts);
    if (scope.kind == Scope::Kind::compiled) return std::string(k_compiled);
    if (scope.kind == Scope::Kind::profiles) return std::string(k_profiles);
    if (scope.kind == Scope::Kind::torch) return std::string(k_torch);
    if (!scope.function) return std::string(k_entries);
    return fmt::format("{}{}/{}/{}/", k_entries, scope.function->model_info, scope.function->rank,
                       scope.function->function);
}

std::optional<Name> name_from_text(std::string_view text)
{
    if (text.starts_with(k_images)) {
        const auto digest = digest_from_our_hex(text.substr(k_images.size()));
        return digest ? std::optional<Name>(ImageName{*digest}) : std::nullopt;
    }
    for (const std::string_view prefix : {k_artifacts, k_compiled, k_profiles, k_torch}) {
        if (!text.starts_with(prefix)) continue;
        const auto artifact = artifact_from_file_name(text.substr(prefix.size()));
        return artifact && folder_prefix(artifact->kind) == prefix ? std::optional<Name>(*artifact) : std::nullopt;
    }
    if (!text.starts_with(k_entries)) return std::nullopt;
    text.remove_prefix(k_entries.size());
    EntryKey key;
    for (std::string* part : {&key.function.model_info, &key.function.rank, &key.function.function})
        *part = next_part(text);
    const auto digest = digest_from_our_hex(text);
    if (!digest || !check_key(key.function)) return std::nullopt;
    key.guards_digest = *digest;
    return key;
}

Result<std::vector<FoundEntry>> Tier::get_entries(const FunctionKey& function, Extent extent)
{
    const auto names = list({.function = function});
    if (!names) return std::unexpected(names.error());
    std::vector<FoundEntry> entries;
    for (const Name& name : *names) {
        const auto* const key = std::get_if<EntryKey>(&name);
        if (key == nullptr) continue;
        auto found = get(name, extent);
        if (!found)
            entries.push_back({*key, std::unexpected(found.error())});
        else if (*found) // else it was removed meanwhile
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
    log().debug("a refused object stays: {}", error.what());
}

} // namespace warmgraph::store
