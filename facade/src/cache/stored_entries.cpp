// Cache::entries: lists a function's stored entries, from their headers alone.
#include <algorithm>

#include "cache/cache_impl.hpp"
#include "warmgraph/base/log.hpp"
#include "warmgraph/base/units.hpp"
#include "warmgraph/cachefmt/fact_names.hpp"
#include "warmgraph/device/device_impl.hpp"
#include "warmgraph/guards/interface_text.hpp"
#include "warmgraph/throwing.hpp"

namespace warmgraph {

namespace {

using cachefmt::RegionKind;
using cachefmt::TensorSpec;

using cachefmt::fact::k_config;
using cachefmt::fact::k_model_config;

/// Returns no strides if the sizes imply them.
std::vector<std::int64_t> own_strides(const TensorSpec& tensor)
{
    std::uint64_t step = 1; // beside a zero, sizes do not matter
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

/// Returns the declaration with this Interface::text(). An invalid text gives a declaration with another text.
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

/// Copies facts that come from the function's Spec, and not from its cache's model.
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

Result<StoredEntry> stored_entry(const cachefmt::EntryHeader& header, const std::map<std::string, std::string>& model)
{
    const auto& guards = header.guards;
    const auto interface = std::ranges::find(guards.facts, std::string_view{k_interface_fact}, &cachefmt::Fact::name);
    const std::string text = interface != guards.facts.end() ? interface->value : "";
    StoredEntry result{declared(text, guards.tensors), {}, to_hex(header.key.guards_digest), header.info.created, {}};
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

} // namespace

std::vector<StoredEntry> Cache::entries(const std::string& name, const Device& device) const
{
    value_or_raise(cachefmt::check_name("function name", name));
    if (!m_impl->looks_for_entries(m_impl->settings.policy)) return {};
    const auto& backend = *DeviceAccess::impl(device)->device;
    auto variants = value_or_raise(m_impl->store->variants(m_impl->settings.key(name, backend)));
    std::ranges::stable_sort(variants, std::ranges::greater{}, &store::Variant::last_used);
    auto here = backend.facts();
    guards::canonicalize(here);
    std::vector<StoredEntry> result;
    for (const auto& variant : variants) {
        if (variant.header && variant.header->kind != cachefmt::EntryKind::graph) continue;
        if (variant.header && cachefmt::is_of_pair(*variant.header)) continue; // half of a pair
        auto entry = variant.header ? stored_entry(*variant.header, m_impl->settings.options.config)
                                    : std::unexpected(variant.header.error());
        if (!entry) {
            log().warn("entry {} of '{}' is not listed: {}", short_hex(variant.guards_digest), name,
                       entry.error().message);
            continue;
        }
        const auto misfits = device_mismatches(variant.header->guards, here, m_impl->settings.relaxation);
        if (!misfits.empty()) entry->misfit = guards::summarize(misfits);
        result.push_back(std::move(*entry));
    }
    return result;
}

} // namespace warmgraph
