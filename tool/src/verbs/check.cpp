// `warmgraph check`: reads every file of the cache folder, and bundles. Reports damage and signatures.
#include <algorithm>
#include <map>

#include "commands.hpp"
#include "selection.hpp"
#include "verbs/bundle/actions.hpp"
#include "verbs/folder_contents.hpp"

namespace warmgraph::tool {

namespace {

constexpr std::size_t k_most = 400; // bytes of a cell: an entry's path ends with its digest

struct CheckReport {
    Json folder{}, signatures = Json::array(), bundles = Json::array(), damage = Json::array();
    Table table{{{"path"}, {"what"}, {"why"}}, 0, k_most}; ///< the damage
    std::string text{};                                    ///< one line for each place
    std::uint64_t left = 0;                                ///< damage that was not repaired

    /// Adds damage. `path`: relative to the folder, or a bundle's file.
    void add(const std::string& path, std::string_view member, const Error& error)
    {
        damage.push_back({{"path", path},
                          {"member", member.empty() ? Json() : Json(member)},
                          {"code", to_string(error.code)},
                          {"message", error.message}});
        table.add({member.empty() ? path : fmt::format("{}: {}", path, member), std::string(to_string(error.code)),
                   error.message});
        ++left;
    }
    /// Adds e.g. "cache.wgb: no damage found (3 members)". `before`: earlier places' damage count; `among`: "" when not
    /// known.
    void conclude(const std::string& place, std::size_t before, const char* noun, const std::string& among)
    {
        const std::size_t count = damage.size() - before;
        text += fmt::format("{}: {}{}", path_text(place),
                            count == 0 ? "no damage found" : plural(count, noun) + " with problems",
                            among.empty() ? "" : " (" + among + ")");
    }
};

// --- The folder

/// Returns `<kind>/<first two digits>/<file>`; the tier's name is `<kind>/<file>`.
std::filesystem::path path_of(const store::ArtifactName& name)
{
    const std::filesystem::path text = store::to_text(name);
    return text.parent_path() / text.filename().string().substr(0, 2) / text.filename();
}

/// Adds the artifact's signature. Without accepted keys it reads nothing. The store reports damage.
void add_signature(store::LocalStore& store, const store::ArtifactName& name, const cachefmt::Trust& trust,
                   FolderContents& contents)
{
    const cachefmt::SealedKind* const kind = bundle::reader_of(name.kind).sealed;
    if (kind == nullptr) return;
    Signature signature{path_of(name), {}};
    if (trust.sign_with || !trust.accepted.empty()) {
        const auto found = store.tier().get(name, {store::row_of(name.kind).most_bytes});
        if (!found || !*found || !(*found)->bytes) return;
        const auto sealed = cachefmt::open_sealed(*kind, *(*found)->bytes);
        if (!sealed) return;
        const auto trusted = cachefmt::check_signature(*kind, *sealed, trust);
        // The signature names an accepted key, but this key did not make it.
        const bool is_claimed = trust.find(sealed->key_id) != nullptr;
        if (!trusted && (trust.require || is_claimed)) {
            contents.unusable.push_back({signature.path, trusted.error()});
            return;
        }
        if (trusted) signature.signed_by = sealed->key_id;
    }
    contents.signatures.push_back(std::move(signature));
}

/// Returns e.g. "; 2 signed with 'release', 1 without an accepted signature".
std::string signatures_text(const std::vector<Signature>& signatures)
{
    std::map<std::string, std::uint64_t> counts;
    for (const Signature& signature : signatures) ++counts[signature.signed_by];
    std::string text;
    for (const auto& [key, count] : counts)
        text += fmt::format("{} {} {}", text.empty() ? ";" : ",", count,
                            key.empty() ? "without an accepted signature" : "signed with '" + key + "'");
    return text;
}

/// Whether the path is in the folder of one of these functions.
bool is_of(const std::vector<cachefmt::FunctionKey>& functions, const std::filesystem::path& path)
{
    return std::ranges::any_of(functions, [&](const cachefmt::FunctionKey& key) {
        return path.parent_path() == std::filesystem::path(key.model_info) / key.rank / key.function;
    });
}

std::string contents_text(const FolderContents& contents, const std::vector<store::ArtifactName>& others, bool is_all)
{
    std::string text = plural(contents.entries, "entry");
    if (is_all)
        text += fmt::format(", {}, {}", plural(contents.images, "image"), plural(others.size(), "other object"));
    if (contents.quarantined.value_or(0) > 0)
        text += fmt::format(", {} in quarantine", plural(*contents.quarantined, "file"));
    return text;
}

/// Checks the cache folder; if `name` is given, only the folders of `functions`.
Result<void> check_store(store::LocalStore& store, const std::vector<cachefmt::FunctionKey>& functions,
                         const std::optional<std::string>& name, RepairMode mending, const cachefmt::Trust& trust,
                         CheckReport& checked)
{
    const bool repairs = mending == RepairMode::repair;
    auto found = repairs ? store.repair(bundle::verify_artifact) : store.check(bundle::verify_artifact);
    if (!found) return std::unexpected(found.error());
    if (name) std::erase_if(*found, [&](const auto& damage) { return !is_of(functions, damage.path); });
    const auto after = repairs ? store.check(bundle::verify_artifact) : found;
    if (!after) return std::unexpected(after.error());
    auto contents = contents_of(store, functions);
    auto others = bundle::artifacts_of(store.tier(), [&](store::ArtifactKind) { return !name; });
    const bool are_listed = contents && others; // if not, the error is part of the damage
    if (!are_listed && found->empty()) return std::unexpected(contents ? others.error() : contents.error());
    if (!contents) contents = FolderContents{};
    if (!others) others = std::vector<store::ArtifactName>{};
    for (const store::ArtifactName& other : *others) add_signature(store, other, trust, *contents);

    for (const store::Damage& damage : *found) checked.add(damage.path.string(), "", damage.error);
    for (const store::Damage& one : contents->unusable) // these entries are damage only for a process with these keys
        if ((trust.require || one.error.code == ErrorCode::untrusted) &&
            std::ranges::find(*found, one.path, &store::Damage::path) == found->end())
            checked.add(one.path.string(), "", one.error);
    checked.left = checked.left - found->size() + after->size();
    checked.folder = to_json(*contents);
    for (const auto& [path, key] : contents->signatures)
        checked.signatures.push_back({{"path", path.string()}, {"signed_by", key.empty() ? Json() : Json(key)}});
    checked.conclude(name.value_or(store.root().string()), 0, "file",
                     are_listed ? contents_text(*contents, *others, !name) : "");
    if (trust.sign_with || !trust.accepted.empty()) checked.text += signatures_text(contents->signatures);
    if (!found->empty())
        checked.text += !repairs         ? "; nothing was changed: repair with `warmgraph check --repair`"
                        : after->empty() ? "; repaired"
                                         : fmt::format("; repaired except {}", plural(after->size(), "file"));
    checked.text += "\n";
    return {};
}

Result<void> check_folder(const Context& context, const CheckOptions& options, const std::optional<std::string>& name,
                          const cachefmt::Trust& trust, CheckReport& checked)
{
    const bool repairs = options.mending == RepairMode::repair;
    const auto store = open_store(context, repairs ? store::StoreMode::read_write : store::StoreMode::read_only, trust);
    if (!store) return std::unexpected(store.error());
    const auto functions = choose(context, store->get(), name);
    if (!functions) return std::unexpected(functions.error());
    if (*store) return check_store(**store, *functions, name, options.mending, trust, checked);
    if (!options.accept_file.empty()) return fail(ErrorCode::io_failed, "{}", no_folder_text(context));
    checked.text += no_folder_text(context) + "\n";
    return {};
}

// --- Bundles

/// Checks a member like `bundle load` does, and that the bundle has everything that it needs.
Result<void> check_member(const bundle::Bundle& opened, const bundle::Member& member)
{
    if (auto whole = opened.verify(member); !whole) return whole;
    if (store::needs_signed_bundle(member.kind) && opened.key_id().empty())
        return fail(ErrorCode::untrusted, "it can run code where it is used, and the bundle is not signed");
    if (member.kind != store::ArtifactKind::entries) return {};
    const auto needs = bundle::needs_of(opened, member);
    if (!needs) return std::unexpected(needs.error());
    for (const std::string& name : *needs)
        if (opened.find(name) == nullptr) return fail(ErrorCode::not_found, "{} is not in the bundle", name);
    return {};
}

void check_bundle(const Context& context, const std::string& file, const cachefmt::Trust& trust, CheckReport& checked)
{
    const auto opened = open_to_use(file, trust);
    if (!opened) return checked.add(file, "", opened.error());
    const auto progress = progress_line(context, "read");
    const std::size_t members = (*opened)->members().size(), before = checked.damage.size();
    std::uint64_t done = 0;
    for (const bundle::Member& member : (*opened)->members()) {
        if (auto ok = check_member(**opened, member); !ok) checked.add(file, member.name, ok.error());
        if (progress) progress(++done, members);
    }
    checked.bundles.push_back(bundle_json(file, **opened));
    checked.bundles.back()["members"] = members;
    checked.conclude(file, before, "member", plural(members, "member"));
    checked.text += fmt::format("; {}\n", signed_text(**opened));
}

/// Whether the word is a bundle's file and not a name.
bool is_file(const std::string& word)
{
    return word == "-" || word.ends_with(bundle::k_suffix) || word.starts_with('/') || word.starts_with('.');
}

} // namespace

Result<int> check(const Context& context, const CheckOptions& options)
{
    const bool repairs = options.mending == RepairMode::repair;
    if (repairs && !options.what.empty())
        return fail(ErrorCode::invalid_argument, "--repair repairs the whole folder: leave the names out");
    auto files = options.what;
    const auto names = std::ranges::stable_partition(files, is_file);
    if (names.size() > 1)
        return fail(ErrorCode::invalid_argument, "'{}' and '{}' are two names: give one, or none", names[0], names[1]);
    const auto name = names.empty() ? std::nullopt : std::optional(names.front());
    files.erase(names.begin(), names.end());
    auto trust = trust_of({"", options.accept_file});
    if (!trust) return std::unexpected(trust.error());
    trust->require = trust->require || !options.accept_file.empty();
    CheckReport checked;
    if (name || files.empty())
        if (auto ok = check_folder(context, options, name, *trust, checked); !ok) return std::unexpected(ok.error());
    for (const std::string& file : files) check_bundle(context, file, *trust, checked);
    if (context.output == Output::json)
        print(Json{{"cache_dir", context.cache_dir.string()},
                   {"folder", checked.folder},
                   {"signatures", checked.signatures},
                   {"bundles", checked.bundles},
                   {"damage", checked.damage},
                   {"repair", repairs},
                   {"left", checked.left}});
    else
        print((checked.damage.empty() ? "" : checked.table.text(context.style)) + checked.text);
    return checked.left == 0 ? k_ok : k_found_wrong;
}

} // namespace warmgraph::tool
