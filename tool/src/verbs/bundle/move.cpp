// `warmgraph bundle create`, `load`, `merge` and `strip`: move objects into, out of and between bundles.
#include <algorithm>

#include "verbs/bundle/actions.hpp"
#include "warmgraph/base/output_file.hpp"
#include "warmgraph/bundle/compatibility.hpp"
#include "warmgraph/bundle/writer.hpp"
#include "warmgraph/profile/profile_library.hpp"
#include "warmgraph/store/torch_artifacts.hpp"

namespace warmgraph::tool {

namespace {

using bundle::Transfer;
using bundle::Verdict;

Result<bundle::Writer> writer_to(const Context& context, const std::string& file, const cachefmt::Trust& trust)
{
    if (auto free = check_output(context, file); !free) return std::unexpected(free.error());
    auto sink = bundle::into_file(file);
    if (!sink) return std::unexpected(sink.error());
    return bundle::Writer(std::move(*sink), {.sign_with = trust.sign_with.get()});
}

Result<std::vector<store::EntryKey>> entries_of(const store::LocalStore& store, const BundleSelection& selection)
{
    const auto functions = store.functions();
    if (!functions) return std::unexpected(functions.error());
    if (auto ok = selection.check_fits(*functions); !ok) return std::unexpected(ok.error());
    std::vector<store::EntryKey> keys;
    if (!selection.chooses(store::ArtifactKind::entries)) return keys;
    for (const auto& function : *functions) {
        if (!selection.chooses(function)) continue;
        const auto variants = store.variants(function);
        if (!variants) return std::unexpected(variants.error());
        for (const auto& variant : *variants) keys.push_back({function, variant.guards_digest});
    }
    return keys;
}

bundle::Getter getter_of(store::LocalStore& store)
{
    return [&store](const store::Name& name) { return store.object(name); };
}

/// Whether the artifact is known to belong to a model or function that was not chosen.
bool is_of_others(store::LocalStore& store, const store::ArtifactName& name, const BundleOptions& options,
                  const BundleSelection& selection)
{
    if (name.kind == store::ArtifactKind::profiles) {
        const auto found = profile::ProfileLibrary(store.tier()).find(name.digest);
        return found && *found && !selection.chooses(**found);
    }
    if (name.kind != store::ArtifactKind::torch || !options.model) return false;
    const auto bytes = store.object(name);
    if (!bytes || !*bytes) return false;
    const auto label = store::inspect_torch(**bytes);
    if (!label) return false;
    const auto model = label->facts.find("model");
    return model == label->facts.end() || model->second != *options.model;
}

/// The artifacts for the bundle. Kinds that need a signed bundle are included only if --kind names them. gather()
/// reports artifacts that cannot be read.
Result<std::vector<store::ArtifactName>> artifacts_to_carry(store::LocalStore& store, const BundleOptions& options,
                                                            const BundleSelection& selection)
{
    auto names = bundle::artifacts_of(store.tier(), [&](store::ArtifactKind kind) {
        return store::needs_signed_bundle(kind) ? selection.names(kind) : selection.chooses(kind);
    });
    if (!names || selection.is_all()) return names;
    std::erase_if(*names,
                  [&](const store::ArtifactName& name) { return is_of_others(store, name, options, selection); });
    return names;
}

/// Writes index and header, and reports the result.
Result<int> finish(const Context& context, bundle::Writer& writer, const std::string& file, const Transfer& transfer)
{
    if (writer.members() == 0) {
        std::string why;
        for (const auto& left : transfer.skipped) why += fmt::format("\n  {}: {}", left.name, left.why);
        return fail(ErrorCode::not_found, "nothing can be put into {}{}", file, why);
    }
    if (auto done = writer.finish(); !done) return std::unexpected(done.error());
    if (!is_standard_output(file)) report_transfer(context, "wrote", file, transfer);
    return k_ok;
}

/// Copies only members that `load` accepts, because the new bundle belongs to this user and may be signed.
Result<Transfer> copy_from(const std::string& file, const cachefmt::Trust& trust, bundle::Writer& writer,
                           const bundle::EntryFilter& wanted, const bundle::ArtifactFilter& artifacts)
{
    const auto opened = open_to_use(file, trust);
    if (!opened) return std::unexpected(opened.error());
    auto copied = bundle::copy_members(**opened, writer, wanted, artifacts);
    if (!copied) return within(file, copied.error());
    return copied;
}

} // namespace

Result<std::unique_ptr<bundle::Bundle>> open_to_use(const std::string& file, const cachefmt::Trust& trust)
{
    const auto owners = trusted_owners();
    if (!owners) return std::unexpected(owners.error());
    return bundle::Bundle::open_trusted(file, trust, *owners, bundle::Streams::spooled);
}

Result<int> bundle_create(const Context& context, const BundleOptions& options)
{
    const auto selection = BundleSelection::of(options);
    if (!selection) return std::unexpected(selection.error());
    const auto trust = trust_of(options.keys);
    if (!trust) return std::unexpected(trust.error());
    const auto store = open_store(context, store::StoreMode::read_only, *trust);
    if (!store) return std::unexpected(store.error());
    if (!*store) return fail(ErrorCode::not_found, "{}", no_folder_text(context));
    const auto keys = entries_of(**store, *selection);
    if (!keys) return std::unexpected(keys.error());
    if (selection->names(store::ArtifactKind::torch) && !trust->sign_with)
        return fail(ErrorCode::invalid_argument,
                    "code that PyTorch compiled can run anything where it is used, and can only be put into a signed "
                    "bundle: give --key-file, or set WARMGRAPH_SIGN_KEY_FILE");
    auto writer = writer_to(context, options.files.front(), *trust);
    if (!writer) return std::unexpected(writer.error());
    const auto artifacts = artifacts_to_carry(**store, options, *selection);
    if (!artifacts) return std::unexpected(artifacts.error());
    auto gathered = bundle::gather(*writer, *keys, getter_of(**store), progress_line(context, "wrote"));
    if (!gathered) return std::unexpected(gathered.error());
    auto others = bundle::gather(*writer, *artifacts, getter_of(**store), progress_line(context, "wrote"));
    if (!others) return std::unexpected(others.error());
    gathered->merge(std::move(*others));
    return finish(context, *writer, options.files.front(), *gathered);
}

Result<int> bundle_load(const Context& context, const BundleOptions& options)
{
    const auto selection = BundleSelection::of(options);
    if (!selection) return std::unexpected(selection.error());
    const auto trust = trust_of(options.keys);
    if (!trust) return std::unexpected(trust.error());
    const auto opened = open_to_use(options.files.front(), *trust);
    if (!opened) return std::unexpected(opened.error());
    const auto store = open_store_to_fill(context, *trust);
    if (!store) return std::unexpected(store.error());
    ThisMachine machine;
    const auto wanted = [&](const cachefmt::EntryHeader& header) -> std::string {
        if (!selection->chooses(header.key.function)) return "not chosen";
        const auto fit = bundle::judge(header.guards, machine.facts_for(header.guards), options.relaxation);
        return fit.verdict == Verdict::fits ? "" : fmt::format("{}: {}", bundle::to_text(fit), fit.detail);
    };
    bundle::UnpackOptions how{progress_line(context, "looked at"), {}, {}};
    how.artifacts = [&](const bundle::Bundle& from, const bundle::Member& member) {
        std::string why = selection->why_not(from, member);
        return why.empty() ? bundle::why_not_here(from, member, device_of(machine)) : why;
    };
    how.profile_lock = [&](const store::ArtifactName& name) { return (*store)->try_artifact_lock(name); };
    const auto loaded = bundle::unpack(**opened, (*store)->tier(), wanted, how);
    if (!loaded) return std::unexpected(loaded.error());
    report_transfer(context, "loaded", options.files.front(), *loaded);
    const bool has_any = !loaded->moved.empty() || !loaded->there.empty();
    return has_any ? k_ok : k_found_wrong;
}

Result<int> bundle_merge(const Context& context, const BundleOptions& options)
{
    const auto selection = BundleSelection::of(options);
    if (!selection) return std::unexpected(selection.error());
    const auto trust = trust_of(options.keys);
    if (!trust) return std::unexpected(trust.error());
    auto writer = writer_to(context, options.files.front(), *trust);
    if (!writer) return std::unexpected(writer.error());
    const auto of_entry = [&](const cachefmt::EntryHeader& header) {
        return selection->chooses(header.key.function) ? std::string() : std::string("not chosen");
    };
    const auto of_artifact = [&](const bundle::Bundle& from, const bundle::Member& member) {
        return selection->why_not(from, member);
    };
    Transfer all;
    for (std::size_t i = 1; i < options.files.size(); ++i) {
        auto copied = copy_from(options.files[i], *trust, *writer, of_entry, of_artifact);
        if (!copied) return std::unexpected(copied.error());
        all.merge(std::move(*copied));
    }
    return finish(context, *writer, options.files.front(), all);
}

Result<int> bundle_strip(const Context& context, const BundleOptions& options)
{
    if (options.architectures.empty())
        return fail(ErrorCode::invalid_argument,
                    "bundle strip needs --arch: the architectures to keep, such as sm_80,sm_90");
    const auto trust = trust_of(options.keys);
    if (!trust) return std::unexpected(trust.error());
    auto writer = writer_to(context, options.files[1], *trust);
    if (!writer) return std::unexpected(writer.error());
    const auto why_not = [&](const std::string& architecture) {
        const bool stays = std::ranges::any_of(options.architectures, [&](const std::string& wanted) {
            return architecture == wanted || architecture == wanted + "a"; // sm_90 runs code for sm_90a
        });
        return stays ? std::string() : fmt::format("its architecture is {}", cachefmt::fact_text(architecture));
    };
    const auto of_entry = [&](const cachefmt::EntryHeader& header) {
        const auto& facts = header.guards.facts;
        const auto of_device = std::ranges::find(facts, "device.architecture", &cachefmt::Fact::name);
        return why_not(of_device != facts.end() ? of_device->value : "unknown");
    };
    const auto of_artifact = [&](const bundle::Bundle& from, const bundle::Member& member) {
        const auto architecture = bundle::architecture_of(from, member);
        if (!architecture) return architecture.error().message;
        return architecture->empty() ? std::string() : why_not(*architecture);
    };
    const auto copied = copy_from(options.files[0], *trust, *writer, of_entry, of_artifact);
    if (!copied) return std::unexpected(copied.error());
    return finish(context, *writer, options.files[1], *copied);
}

} // namespace warmgraph::tool
