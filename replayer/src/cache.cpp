#include "cache.hpp"

#include <algorithm>
#include <atomic>
#include <filesystem>

#include "backends.hpp"
#include "warmgraph/base/cache_folder.hpp"
#include "warmgraph/base/log.hpp"
#include "warmgraph/base/process.hpp"
#include "warmgraph/base/units.hpp"
#include "warmgraph/cachefmt/fact_names.hpp"
#include "warmgraph/guards/loaded_facts.hpp"
#include "warmgraph/ranks/launcher.hpp"
#include "warmgraph/replay/exposure.hpp"
#include "warmgraph/replay/stored_graph.hpp"
#include "warmgraph/store/settings.hpp"

namespace warmgraph::replayer {

namespace {

/// Fails if an environment variable switches off the use of entries, which holds for this library too.
Result<void> check_switches()
{
    if (environment("WARMGRAPH_POLICY").value_or("") == "off")
        return fail(ErrorCode::unsupported, "WARMGRAPH_POLICY is off, so nothing is replayed: unset it");
    const auto kinds = store::environment_kinds();
    if (!kinds) return std::unexpected(kinds.error());
    if (kinds->contains(store::ArtifactKind::entries)) return {};
    return fail(ErrorCode::unsupported, "WARMGRAPH_KINDS switches entries off, so nothing is replayed: unset it");
}

Result<store::StoreOptions> store_options(const CacheSettings& settings)
{
    constexpr const char* k_owners = "WARMGRAPH_TRUSTED_OWNERS";
    store::StoreOptions options;
    auto trust = store::resolve_signing(settings.signing, environment);
    if (!trust) return std::unexpected(trust.error());
    auto owners = store::parse_owners(k_owners, environment(k_owners).value_or(""));
    if (!owners) return std::unexpected(owners.error());
    options.trust = std::move(*trust);
    options.trusted_owners = std::move(*owners);
    options.trusted_owners.insert(options.trusted_owners.end(), settings.trusted_owners.begin(),
                                  settings.trusted_owners.end());
    options.access = settings.access;
    options.falls_back = true;
    return options;
}

std::string code_of(const cachefmt::EntryHeader& header)
{
    std::string text;
    for (const auto& fact : header.guards.facts)
        if (cachefmt::fact::is_of_code(fact.name))
            text += fmt::format("{}{} {}", text.empty() ? "" : "; ", fact.name, cachefmt::fact_text(fact.value));
    return text;
}

/// Checks that this library can replay the entry's kind.
Result<void> check_kind(const cachefmt::EntryHeader& header)
{
    if (header.kind != cachefmt::EntryKind::graph)
        return fail(ErrorCode::stale,
                    "it cannot be replayed, because its recordings differ ({}): give the value that changed as a "
                    "guard, and record it again",
                    header.info.reason);
    if (cachefmt::is_of_pair(header) || header.recording)
        return fail(
            ErrorCode::unsupported,
            "it is the forward or the backward of a pair, which are only used together: replay it with libwarmgraph");
    return {};
}

Result<guards::DeclaredInterface> declared_interface(const cachefmt::Guards& guards)
{
    const auto fact =
        std::ranges::find(guards.facts, std::string_view{guards::k_interface_fact}, &cachefmt::Fact::name);
    const std::string text = fact != guards.facts.end() ? fact->value : "";
    auto interface = guards::parse_interface(text, guards.tensors.size());
    std::vector<ScalarRange> ranges;
    for (const NumberDecl& scalar : interface.scalars) {
        const auto range = range_of(scalar);
        if (!range) return std::unexpected(range.error());
        ranges.push_back(*range);
    }
    const bool is_whole = interface.kinds.size() == guards.tensors.size() &&
                          std::ranges::all_of(interface.scalars, is_scalar_type, &NumberDecl::dtype) &&
                          guards::interface_text(interface.kinds, interface.scalars, ranges) == text;
    if (is_whole) return interface;
    return fail(ErrorCode::corrupt, "its interface is '{}', which does not match its {}", text,
                plural(guards.tensors.size(), "tensor"));
}

/// Checks that the graph's scalars are the declared scalars, because scalars are bound by position.
Result<void> check_scalars(const cachefmt::Graph& graph, const guards::DeclaredInterface& interface)
{
    const bool are_same =
        std::ranges::equal(graph.scalars, interface.scalars, [](const auto& scalar, const auto& declared) {
            return scalar.name == declared.name && scalar.type == declared.dtype;
        });
    if (are_same) return {};
    return fail(ErrorCode::corrupt, "the graph has {}, but its interface has {}",
                plural(graph.scalars.size(), "scalar"), interface.scalars.size());
}

Result<void> check_outside(const cachefmt::Graph& graph)
{
    constexpr std::string_view k_cure = "replay it with libwarmgraph";
    if (!graph.events.empty())
        return fail(ErrorCode::unsupported, "the graph uses the caller's event '{}': {}", graph.events.front(), k_cure);
    if (!graph.semaphores.empty())
        return fail(ErrorCode::unsupported, "the graph uses the external semaphore '{}': {}", graph.semaphores.front(),
                    k_cure);
    for (const auto& node : graph.nodes)
        if (const auto* const host = std::get_if<cachefmt::HostNode>(&node))
            return fail(ErrorCode::unsupported, "the graph calls the host function '{}': {}", host->function, k_cure);
    return {};
}

} // namespace

Result<std::shared_ptr<Device>> Device::open(std::string_view id)
{
    auto device = open_device(id);
    if (!device) return std::unexpected(device.error());
    auto stream = (*device)->create_stream();
    if (!stream) return within(fmt::format("open {}", id), stream.error());
    auto result = std::make_shared<Device>();
    result->device = std::move(*device);
    result->own_stream = std::move(*stream);
    result->target = store::load_target(result->device->name(), result->device->facts());
    result->device->begin_warm_up();
    return result;
}

Result<std::shared_ptr<Cache>> Cache::open(CacheSettings settings)
{
    if (auto named = cachefmt::check_name("model name", settings.model); !named) return std::unexpected(named.error());
    if (auto on = check_switches(); !on) return std::unexpected(on.error());
    const auto rank = ranks::resolve_rank(
        {settings.world_size, settings.global_rank, settings.tp_rank, settings.pp_rank}, environment);
    if (!rank) return std::unexpected(rank.error());
    const auto options = store_options(settings);
    settings.signing.forget();
    if (!options) return std::unexpected(options.error());
    const auto folder = cache_folder(settings.directory);
    std::error_code ignored;
    if (!std::filesystem::exists(folder, ignored)) // opening the folder for writing would make it
        return fail(ErrorCode::not_found,
                    "cache folder {} does not exist: record first, or set WARMGRAPH_CACHE_DIR or cache_dir",
                    folder.string());
    std::shared_ptr<Cache> cache(new Cache(std::move(settings)));
    cache->m_rank = cachefmt::folder_name(*rank);
    auto store = store::LocalStore::open(folder, *options);
    if (!store) return std::unexpected(store.error());
    cache->m_store = std::move(*store);
    return cache;
}

cachefmt::FunctionKey Cache::key(const std::string& function, const Device& device) const
{
    const char* const shapes = m_settings.is_dynamic ? "dynamic" : "static";
    return {cachefmt::model_info(m_settings.model, device.device->backend(), shapes, m_settings.config), m_rank,
            function};
}

Result<guards::DeclaredInterface> Cache::judge(const cachefmt::EntryHeader& header, const Device& device) const
{
    if (auto kind = check_kind(header); !kind) return std::unexpected(kind.error());
    const guards::ProcessFacts here{device.device->facts(), m_settings.model, header.key.function.function, m_rank,
                                    m_settings.config,      environment};
    const auto& recorded = header.guards.facts;
    const auto misfits =
        guards::evaluate_facts(recorded, guards::facts_of_loaded(recorded, here), m_settings.relaxation);
    if (!misfits.empty())
        return fail(ErrorCode::stale, "{}: record it here, or load one that fits", guards::summarize(misfits));
    const std::string id = device.device->id();
    for (const auto& tensor : header.guards.tensors)
        if (tensor.device != id && tensor.device != guards::k_host_memory)
            return fail(ErrorCode::stale, "'{}' was recorded on {}, this is {}: record it here, or open that device",
                        tensor.name, tensor.device, id);
    return declared_interface(header.guards);
}

Result<std::vector<ListedEntry>> Cache::entries(const std::string& function, const Device& device) const
{
    if (auto named = cachefmt::check_name("function name", function); !named) return std::unexpected(named.error());
    auto variants = m_store->variants(key(function, device));
    if (!variants) return std::unexpected(variants.error());
    std::ranges::stable_sort(*variants, std::ranges::greater{}, &store::Variant::last_used);
    std::vector<ListedEntry> result;
    for (const auto& variant : *variants) {
        ListedEntry& listed = result.emplace_back(ListedEntry{variant.guards_digest, "", "", ""});
        if (!variant.header) {
            listed.misfit = variant.header.error().message;
            continue;
        }
        listed.recorded = variant.header->info.created;
        listed.code = code_of(*variant.header);
        if (const auto fits = judge(*variant.header, device); !fits) listed.misfit = fits.error().message;
    }
    return result;
}

Result<Digest> Cache::only_fitting(const std::string& function, const Device& device) const
{
    const auto all = entries(function, device);
    if (!all) return std::unexpected(all.error());
    const ListedEntry* fitting = nullptr;
    for (const ListedEntry& entry : *all) {
        if (!entry.misfit.empty()) continue;
        if (fitting != nullptr)
            return fail(ErrorCode::stale,
                        "several entries of '{}' fit (at least {} and {}): choose one by its digest (wgr_entries_list)",
                        function, short_hex(fitting->digest), short_hex(entry.digest));
        fitting = &entry;
    }
    if (fitting != nullptr) return fitting->digest;
    if (all->empty())
        return fail(ErrorCode::not_found, "there is no entry of '{}' in {}: record it first", function,
                    m_store->root().string());
    // No entry fits. Reports why the last used entry does not fit, with that error's code.
    const auto why = m_store->header({key(function, device), all->front().digest});
    if (!why) return within(function, why.error());
    if (*why != nullptr)
        if (const auto judged = judge(**why, device); !judged) return within(function, judged.error());
    return fail(ErrorCode::stale, "no entry of '{}' fits: {}", function, all->front().misfit);
}

Result<void> Cache::check_graph(const cachefmt::Entry& entry, const guards::DeclaredInterface& interface,
                                const Device& device) const
{
    const auto& tensors = entry.header.guards.tensors;
    std::vector<replay::DeclaredRegion> declared;
    for (std::size_t i = 0; i < tensors.size(); ++i) declared.push_back({tensors[i].name, interface.kinds[i]});
    if (auto regions = replay::check_regions(declared, entry.graph); !regions) return regions;
    if (auto scalars = check_scalars(entry.graph, interface); !scalars) return scalars;
    if (auto size = replay::check_constants_size(entry.graph, m_settings.max_constant_bytes); !size) return size;
    if (auto outside = check_outside(entry.graph); !outside) return outside;
    return replay::check_exposed(*device.device, entry.graph, images(), {});
}

Result<void> Cache::load_code(const cachefmt::Entry& entry, const Device& device)
{
    // Drivers crash on some code; if this one does, the next process finds the mark.
    std::unique_ptr<store::LoadMark> mark;
    const replay::ImageSource source = images();
    for (const cachefmt::ImageRef& image : entry.graph.images) {
        // A variable that holds a constant's address can be written only at the first launch, when the constant has
        // memory.
        const bool has_slots =
            std::ranges::any_of(image.variables, [](const auto& variable) { return !variable.slots.empty(); });
        const auto bytes = [&]() -> Result<Bytes> {
            auto read = source(image);
            if (!read || mark) return read;
            auto begun = m_store->begin_load(entry.header.key, device.target);
            if (!begun) return std::unexpected(begun.error());
            mark = std::move(*begun);
            return read;
        };
        if (has_slots) {
            if (const auto there = source(image); !there) return std::unexpected(there.error());
            continue;
        }
        if (const auto loaded = m_modules.load(device.device, image, replay::k_nobody, bytes); !loaded)
            return within("load image " + short_hex(image.digest), loaded.error());
    }
    return {};
}

Result<LoadedEntry> Cache::load(const std::string& function, const Device& device, std::optional<Digest> digest)
{
    static std::atomic<std::uint64_t> s_last_number = 0;
    if (auto named = cachefmt::check_name("function name", function); !named) return std::unexpected(named.error());
    if (!digest) {
        auto only = only_fitting(function, device);
        if (!only) return std::unexpected(only.error());
        digest = *only;
    }
    const cachefmt::EntryKey entry_key{key(function, device), *digest};
    auto entry = m_store->entry(entry_key);
    if (!entry) return within(function, entry.error());
    if (!*entry)
        return fail(ErrorCode::not_found, "there is no entry {} of '{}' in {}: wgr_entries_list lists the entries",
                    short_hex(*digest), function, m_store->root().string());
    auto interface = judge((**entry).header, device);
    if (!interface) return within(function, interface.error());
    if (auto usable = check_graph(**entry, *interface, device); !usable) return within(function, usable.error());
    if (auto loaded = load_code(**entry, device); !loaded) return within(function, loaded.error());
    log().info("loaded {}/{} {}", m_settings.model, function, short_hex(*digest));
    return LoadedEntry{std::move(**entry), std::move(*interface), ++s_last_number};
}

replay::ImageSource Cache::images() const
{
    return [store = m_store.get()](const cachefmt::ImageRef& image) { return store->image_of_entry(image); };
}

} // namespace warmgraph::replayer
