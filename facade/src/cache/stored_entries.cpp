// Cache::entries: lists the stored entries of a function, from their headers alone.
#include <algorithm>

#include "cache/cache_impl.hpp"
#include "cache/make_function.hpp"
#include "warmgraph/base/log.hpp"
#include "warmgraph/base/units.hpp"
#include "warmgraph/cachefmt/fact_names.hpp"
#include "warmgraph/call/argument_reader.hpp"
#include "warmgraph/device/device_impl.hpp"
#include "warmgraph/guards/interface_text.hpp"
#include "warmgraph/throwing.hpp"

namespace warmgraph {

namespace {

using cachefmt::RegionKind;
using cachefmt::TensorSpec;

using cachefmt::fact::k_config;
using cachefmt::fact::k_model_config;

/// Returns the tensor's strides; none if the tensor is contiguous.
std::vector<std::int64_t> own_strides(const TensorSpec& tensor)
{
    std::uint64_t step = 1; // if a size is zero, the strides of the other dimensions are not used
    for (std::size_t d = tensor.sizes.size(); d-- > 0;) {
        if (static_cast<std::uint64_t>(tensor.strides[d]) != step) return tensor.strides;
        step *= static_cast<std::uint64_t>(std::max<std::int64_t>(tensor.sizes[d], 1));
    }
    return {};
}

std::uint64_t extent_of(const TensorSpec& tensor)
{
    guards::TensorArg arg;
    arg.dtype = tensor.dtype;
    arg.rank = static_cast<std::uint8_t>(tensor.sizes.size());
    std::ranges::copy(tensor.sizes, arg.sizes.begin());
    std::ranges::copy(tensor.strides, arg.strides.begin());
    return guards::extent_bytes(arg);
}

void declare(Spec& spec, RegionKind kind, const TensorSpec& tensor)
{
    TensorDecl decl{tensor.name, tensor.dtype, tensor.sizes, own_strides(tensor)};
    if (kind == RegionKind::input) return spec.inputs.push_back(std::move(decl));
    if (kind == RegionKind::output) return spec.outputs.push_back(std::move(decl));
    const Access access = kind == RegionKind::weights ? Access::read_only : Access::read_write;
    spec.states.push_back({tensor.name,
                           {Address{}, extent_of(tensor)},
                           access,
                           tensor.dtype,
                           std::move(decl.sizes),
                           std::move(decl.strides)});
}

/// Returns the declaration with this Interface::text(). For an invalid text, returns a declaration with another text.
Spec declared(std::string_view text, const std::vector<TensorSpec>& tensors)
{
    Spec spec;
    const auto interface = guards::parse_interface(text, tensors.size());
    for (std::size_t i = 0; i < interface.kinds.size(); ++i) declare(spec, interface.kinds[i], tensors[i]);
    for (const NumberDecl& number : interface.scalars) {
        ScalarDecl& decl = spec.scalars.emplace_back(scalar(number.name, number.dtype));
        decl.range = number.range;
    }
    return spec;
}

/// Copies a fact to the Spec if the fact comes from the function's Spec and not from the cache's model.
void take_fact(Spec& spec, const cachefmt::Fact& fact, const std::map<std::string, std::string>& model)
{
    const std::string_view name = fact.name;
    if (name == k_metadata_fact)
        spec.metadata = fact.value;
    else if (is_code_fact(name))
        spec.recorded_code.emplace(name, fact.value);
    else if (name.starts_with(cachefmt::fact::k_environment))
        spec.environment.emplace_back(name.substr(cachefmt::fact::k_environment.size()));
    else if (name.starts_with(k_model_config) && model.contains(std::string(name.substr(k_model_config.size()))))
        return;
    else if (name.starts_with(k_config))
        spec.config.emplace(name.substr(k_config.size()), fact.value);
}

const std::string* fact_of(const cachefmt::Guards& guards, std::string_view name)
{
    const auto fact = std::ranges::find(guards.facts, name, &cachefmt::Fact::name);
    return fact != guards.facts.end() ? &fact->value : nullptr;
}

StoredEntry labelled(const cachefmt::EntryHeader& header)
{
    StoredEntry result{{}, {}, to_hex(header.key.guards_digest), header.info.created, {}};
    if (const auto* const metadata = fact_of(header.guards, k_metadata_fact)) result.spec.metadata = *metadata;
    return result;
}

Result<StoredEntry> stored_entry(const cachefmt::EntryHeader& header, const std::map<std::string, std::string>& model)
{
    const auto& guards = header.guards;
    const auto* const interface = fact_of(guards, k_interface_fact);
    const std::string text = interface != nullptr ? *interface : "";
    StoredEntry result = labelled(header);
    result.spec = declared(text, guards.tensors);
    for (const auto& fact : guards.facts) take_fact(result.spec, fact, model);
    for (const auto& value : guards.values) {
        result.spec.values.push_back(scalar(value.name, value.dtype));
        result.values.emplace(value.name, Number{value.dtype, value.bits});
    }
    const auto again = interface_of(result.spec);
    if (!again) return std::unexpected(again.error());
    if (again->text() != text || again->regions.size() != guards.tensors.size())
        return fail(ErrorCode::corrupt, "its interface is '{}', which does not match its {}", text,
                    plural(guards.tensors.size(), "tensor"));
    return result;
}

/// The facts, inputs and states that a Spec declares, here and now. Tensors and values of a call are not compared.
class SpecFilter {
public:
    SpecFilter(const Cache::Impl& cache, const std::string& name, Spec spec, const backends::Device& backend)
        : m_relaxation(cache.settings.relaxation)
    {
        spec.outputs.clear(); // the caller may not know them yet
        m_interface = value_or_raise(interface_of(spec));
        m_facts = gather_facts(cache, name, spec, backend, "", nullptr);
    }
    [[nodiscard]] bool is(const cachefmt::Guards& recorded)
    {
        const auto* const interface = fact_of(recorded, k_interface_fact);
        if (interface == nullptr || !has_regions(recorded)) return false;
        // The fact has the outputs too: the entry's own value is put in, so that they are not compared.
        std::ranges::find(m_facts, k_interface_fact, &cachefmt::Fact::name)->value = *interface;
        return guards::evaluate_facts(recorded.facts, m_facts, m_relaxation).empty();
    }

private:
    [[nodiscard]] bool has_regions(const cachefmt::Guards& recorded) const
    {
        auto after = recorded.tensors.begin(); // the tensors are usually in the same order, except outputs
        return std::ranges::all_of(m_interface.regions, [&](const RegionDecl& region) {
            auto tensor =
                std::find_if(after, recorded.tensors.end(), [&](const auto& one) { return one.name == region.name; });
            if (tensor == recorded.tensors.end())
                tensor = std::ranges::find(recorded.tensors, region.name, &TensorSpec::name);
            if (tensor == recorded.tensors.end()) return false;
            after = tensor + 1;
            return tensor->dtype == region.dtype && tensor->sizes == region.sizes &&
                   (region.strides.empty() || tensor->strides == region.strides);
        });
    }

    guards::Relaxation m_relaxation;
    Interface m_interface;
    std::vector<cachefmt::Fact> m_facts;
};

std::vector<store::EntryUse> uses_of(Cache::Impl& cache, const cachefmt::FunctionKey& function)
{
    auto uses = cache.store->by_last_use(function);
    if (!uses) {
        cache.counters.cache_fault();
        log().warn("entries of '{}' cannot be listed: {}", function.function, uses.error().message);
    }
    return value_or_raise(std::move(uses));
}

} // namespace

std::vector<StoredEntry> Cache::entries(const std::string& name, const Device& device, EntryQuery query) const
{
    value_or_raise(cachefmt::check_name("function name", name));
    const auto& backend = *DeviceAccess::impl(device)->device;
    const auto policy = query.spec && query.spec->policy ? *query.spec->policy : m_impl->settings.policy;
    if (query.spec) require_version("looked for", name, *query.spec);
    if (!m_impl->looks_for_entries(policy)) return {};
    std::optional<SpecFilter> wanted;
    if (query.spec) wanted.emplace(*m_impl, name, std::move(*query.spec), backend);
    auto here = backend.facts();
    guards::canonicalize(here);
    const auto function = m_impl->settings.key(name, backend);
    std::vector<StoredEntry> result;
    for (const store::EntryUse& use : uses_of(*m_impl, function)) {
        if (result.size() >= query.most) break;
        const auto header = m_impl->store->header({function, use.guards_digest});
        if (header && !*header) continue; // it was removed meanwhile
        if (header && (*header)->kind != cachefmt::EntryKind::graph) continue;
        if (header && cachefmt::is_of_pair(**header)) continue; // an entry of a pair cannot be loaded alone
        if (wanted && !(header && wanted->is((*header)->guards))) continue;
        auto entry = !header               ? std::unexpected(header.error())
                     : query.metadata_only ? Result<StoredEntry>{labelled(**header)}
                                           : stored_entry(**header, m_impl->settings.options.config);
        if (!entry) {
            log().warn("entry {} of '{}' is not listed: {}", short_hex(use.guards_digest), name, entry.error().message);
            continue;
        }
        if (!wanted) { // with a Spec, SpecFilter has compared the device's facts
            const auto misfits = device_mismatches((*header)->guards, here, m_impl->settings.relaxation);
            if (!misfits.empty()) entry->misfit = guards::summarize(misfits);
        }
        result.push_back(std::move(*entry));
    }
    return result;
}

} // namespace warmgraph
