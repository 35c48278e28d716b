// Cache::entries: what is stored for a function, from headers alone.
#include <algorithm>
#include <charconv>
#include <sstream>

#include "cache/cache_impl.hpp"
#include "device/device_impl.hpp"
#include "throwing.hpp"
#include "warmgraph/base/log.hpp"
#include "warmgraph/base/units.hpp"
#include "warmgraph/cachefmt/fact_names.hpp"
#include "warmgraph/capture/numbers.hpp"

namespace warmgraph {

namespace {

using cachefmt::TensorSpec;

constexpr std::string_view k_model_config = "config.model.", k_config = "config.";

std::vector<std::string_view> split(std::string_view text, std::string_view by)
{
    std::vector<std::string_view> parts;
    for (std::size_t end = text.find(by); end != std::string_view::npos; end = text.find(by)) {
        parts.push_back(text.substr(0, end));
        text.remove_prefix(end + by.size());
    }
    parts.push_back(text);
    return parts;
}

/// 0 where it is none.
template <class T>
T parse_number(std::string_view text)
{
    T value{};
    std::from_chars(text.data(), text.data() + text.size(), value);
    return value;
}

/// Empty where the sizes say as much.
std::vector<std::int64_t> own_strides(const TensorSpec& tensor)
{
    std::uint64_t step = 1; // sizes beside a zero may be anything
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

void declare(Spec& spec, std::string_view kind, const TensorSpec& tensor)
{
    TensorDecl decl{tensor.name, tensor.dtype, tensor.sizes, own_strides(tensor)};
    if (kind == "input") return spec.inputs.push_back(std::move(decl));
    if (kind == "output") return spec.outputs.push_back(std::move(decl));
    const Access access = kind == "weights" ? Access::read_only : Access::read_write;
    spec.states.push_back({tensor.name,
                           {Address{}, extent_of(tensor)},
                           access,
                           tensor.dtype,
                           std::move(decl.sizes),
                           std::move(decl.strides)});
}

/// "scalar position i32 [0, 255]". A range that is the type's own was none.
void declare_scalar(Spec& spec, std::string_view text)
{
    std::istringstream words{std::string(text)};
    std::string what, name, type, low, high;
    words >> what >> name >> type >> low >> high;
    const auto dtype = parse_dtype(type);
    if (!dtype || low.empty() || high.empty()) return;
    low.erase(0, 1);
    low.pop_back();
    high.pop_back();
    ScalarDecl decl = scalar(name, *dtype);
    const auto whole = range_of({name, *dtype, std::nullopt});
    if (!whole || low != number_text(*dtype, whole->low) || high != number_text(*dtype, whole->high))
        decl.range = {parse_number<double>(low), parse_number<double>(high)};
    spec.scalars.push_back(std::move(decl));
}

/// The declaration whose Interface::text() this is. What is no such text gives another one's.
Spec declared(std::string_view text, const std::vector<TensorSpec>& tensors)
{
    Spec spec;
    const auto parts = split(text, "; ");
    auto tensor = tensors.begin();
    for (const std::string_view run : split(parts.front(), ", ")) {
        const std::string_view kind = run.substr(std::min(run.find(' ') + 1, run.size()));
        for (auto left = parse_number<std::size_t>(run); left != 0 && tensor != tensors.end(); --left)
            declare(spec, kind, *tensor++);
    }
    for (std::size_t i = 1; i < parts.size(); ++i) declare_scalar(spec, parts[i]);
    return spec;
}

/// The facts that a function's Spec makes, and not its cache's model.
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
        return fail(ErrorCode::corrupt, "its interface is '{}', which {} do not make", text,
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
        if (variant.header && cachefmt::is_of_pair(*variant.header)) continue; // no function by itself
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
