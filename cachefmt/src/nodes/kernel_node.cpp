// Kernel launches. kernel_check.cpp checks them.
#include <algorithm>
#include <map>
#include <utility>

#include <fmt/ranges.h>

#include "check_count.hpp"
#include "cuda_names.hpp"
#include "describe.hpp"
#include "digest_put.hpp"
#include "flat_parse.hpp"
#include "heap_size.hpp"
#include "identity.hpp"
#include "nodes/kernel_check.hpp"
#include "nodes/node_format_of.hpp"
#include "warmgraph/base/kernel_name.hpp"

namespace warmgraph::cachefmt {
namespace {

/// Returns e.g. "128 (4 B)" or "16 B {0: kv, 8: position + 1}".
std::string bytes_text(const Bytes& value, const std::vector<Slot>& slots, const Graph& graph)
{
    if (slots.empty()) return word_text(value);
    std::string text = fmt::format("{} B", value.size());
    for (const Slot& slot : slots)
        text += fmt::format("{}{}: {}", &slot == slots.data() ? " {" : ", ", slot.offset, to_text(slot, graph));
    return text + "}";
}

/// Returns e.g. "token", "1 (4 B)" or "local 128 B".
std::string param_text(const Param& param, const Graph& graph)
{
    if (param.kind == ParamKind::local) return fmt::format("local {} B", param.local_size);
    if (param.kind == ParamKind::memory && param.slots.size() == 1) return to_text(param.slots[0], graph);
    const bool whole =
        param.slots.size() == 1 && param.slots[0].offset == 0 && param.slots[0].width == param.value.size();
    if (whole) return to_text(param.slots[0], graph);
    return bytes_text(param.value, param.slots, graph);
}

/// The value in its CUDA type: "2,1,1" for a cluster dimension, "-5" for a priority, else bytes and slots.
std::string attribute_text(const Attribute& attribute, const Graph& graph)
{
    const ByteView value = attribute.value;
    if (attribute.slots.empty() && is_three_numbers(attribute.id) && value.size() >= sizeof(Dim3))
        return to_text(load<Dim3>(value, 0));
    if (attribute.slots.empty() && is_one_number(attribute.id) && value.size() >= sizeof(std::int32_t))
        return fmt::format("{}", load<std::int32_t>(value, 0));
    return bytes_text(attribute.value, attribute.slots, graph);
}

/// Pairs the items of both lists by id.
template <class Item>
std::map<std::uint32_t, std::pair<const Item*, const Item*>> by_id(const std::vector<Item>& recorded,
                                                                   const std::vector<Item>& now)
{
    std::map<std::uint32_t, std::pair<const Item*, const Item*>> pairs;
    for (const Item& item : recorded) pairs[item.id].first = &item;
    for (const Item& item : now) pairs[item.id].second = &item;
    return pairs;
}

/// Writes the lines about two launches, from their names to their attributes.
class KernelDifference {
public:
    KernelDifference(const NodeDifference& out, const KernelNode& recorded, const KernelNode& now)
        : m_out(out), m_recorded(recorded), m_now(now)
    {
    }

    void name() const;
    void launch() const;
    void params() const;
    void attributes() const;
    void function_attributes() const;

private:
    static void param(const NodeDifference& out, const Param& a, const Param& b);
    static void attribute(const NodeDifference& out, const Attribute* a, const Attribute* b);

    const NodeDifference& m_out;
    const KernelNode& m_recorded;
    const KernelNode& m_now;
};

/// Shows readable names, or the mangled names if the readable ones are equal.
void KernelDifference::name() const
{
    const std::string &a = m_recorded.kernel, &b = m_now.kernel;
    const std::string was = readable_kernel_name(a), is = readable_kernel_name(b);
    m_out.text("kernel", was != is ? was : a, was != is ? is : b);
}

void KernelDifference::launch() const
{
    const KernelNode &a = m_recorded, &b = m_now;
    m_out.number("image", a.image, b.image);
    if (a.grid != b.grid) m_out.line("grid", to_text(a.grid), to_text(b.grid));
    if (a.block != b.block) m_out.line("block", to_text(a.block), to_text(b.block));
    m_out.number("dynamic shared bytes", a.shared_bytes, b.shared_bytes);
}

void KernelDifference::params() const
{
    const std::vector<Param>&a = m_recorded.params, &b = m_now.params;
    const auto form = [](const KernelNode& kernel) { return kernel.packed ? "packed" : "separate"; };
    if (m_recorded.packed != m_now.packed) m_out.line("parameters", form(m_recorded), form(m_now));
    m_out.number("parameters", a.size(), b.size());
    for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i)
        if (!(a[i] == b[i])) param(m_out.part(fmt::format("parameter {}", i)), a[i], b[i]);
}

void KernelDifference::param(const NodeDifference& out, const Param& a, const Param& b)
{
    const auto described = [](const Param& param, const Graph& graph) {
        return fmt::format("{} ({})", to_string(param.kind), param_text(param, graph));
    };
    if (a.kind != b.kind) return out.line("", described(a, out.recorded()), described(b, out.now()));
    out.bytes("value", canonical_value(a), canonical_value(b));
    out.number("work-group bytes", a.local_size, b.local_size);
    out.slots(a.slots, b.slots);
}

void KernelDifference::attributes() const
{
    for (const auto& [id, both] : by_id(m_recorded.attributes, m_now.attributes))
        attribute(m_out.part(launch_attribute_name(id)), both.first, both.second);
}

void KernelDifference::attribute(const NodeDifference& out, const Attribute* a, const Attribute* b)
{
    if (a == nullptr) return out.added();
    if (b == nullptr) return out.gone();
    const std::string recorded = attribute_text(*a, out.recorded()), now = attribute_text(*b, out.now());
    const bool same = canonical_value(*a) == canonical_value(*b);
    // If the short texts are equal, show the bytes.
    if (!same && a->slots.empty() && b->slots.empty() && recorded != now) return out.line("", recorded, now);
    out.bytes("value", canonical_value(*a), canonical_value(*b));
    out.slots(a->slots, b->slots);
}

void KernelDifference::function_attributes() const
{
    for (const auto& [id, both] : by_id(m_recorded.function_attributes, m_now.function_attributes)) {
        const NodeDifference out = m_out.part(fmt::format("function's {}", function_attribute_name(id)));
        if (both.first == nullptr)
            out.added();
        else if (both.second == nullptr)
            out.gone();
        else
            out.number("", both.first->value, both.second->value);
    }
}

flat::Dim3 to_flat_dim(const Dim3& dim) { return {dim[0], dim[1], dim[2]}; }

Dim3 to_dim(const flat::Dim3& dim) { return {dim.x(), dim.y(), dim.z()}; }

flatbuffers::Offset<flat::Param> write_param(FlatBuilder& builder, const Param& param)
{
    const auto value = write(builder, ByteView{canonical_value(param)});
    const auto slots = write_slots(builder, param.slots);
    return flat::CreateParam(builder, static_cast<flat::ParamKind>(param.kind), value, param.local_size, slots);
}

flatbuffers::Offset<flat::Attribute> write_attribute(FlatBuilder& builder, const Attribute& attribute)
{
    const auto value = write(builder, ByteView{canonical_value(attribute)});
    const auto slots = write_slots(builder, attribute.slots);
    return flat::CreateAttribute(builder, attribute.id, value, slots);
}

Param to_param(const flat::Param& param)
{
    return {static_cast<ParamKind>(param.kind()), to_bytes(param.value()), param.local_size(),
            to_vector<Slot>(param.slots(), to_slot)};
}

Attribute to_attribute(const flat::Attribute& attribute)
{
    return {attribute.id(), to_bytes(attribute.value()), to_vector<Slot>(attribute.slots(), to_slot)};
}

void set_param(Json& out, const Param& param, const Graph& graph)
{
    set_text(out, "kind", to_string(param.kind));
    if (param.kind == ParamKind::value) set_text(out, "value", hex(param.value, param.value.size()));
    if (const auto number = number_in(param.value); number && param.kind == ParamKind::value && param.slots.empty())
        set_number(out, "number", *number);
    if (param.kind == ParamKind::local) set_number(out, "local_size", param.local_size);
    if (param.kind != ParamKind::local) set_slots(out, "slots", param.slots, graph);
}

void set_attribute(Json& out, const Attribute& attribute, const Graph& graph)
{
    set_number(out, "id", attribute.id);
    set_text(out, "name", launch_attribute_name(attribute.id));
    set_text(out, "value", hex(attribute.value, attribute.value.size()));
    set_slots(out, "slots", attribute.slots, graph);
    set_text(out, "text", attribute_text(attribute, graph));
}

void set_function_attribute(Json& out, const FunctionAttribute& attribute)
{
    set_number(out, "id", attribute.id);
    set_text(out, "name", function_attribute_name(attribute.id));
    set_signed(out, "value", attribute.value);
}

struct KernelFormat {
    using Work = KernelNode;
    using Flat = flat::Kernel;

    static std::string_view kind(const KernelNode&) noexcept { return "kernel"; }
    static std::string name(const KernelNode& kernel) { return "kernel " + readable_kernel_name(kernel.kernel); }
    static void digest(Sha256& hash, const KernelNode& kernel);
    static void compare(const NodeDifference& out, const KernelNode& a, const KernelNode& b);
    static Result<void> validate(const KernelNode& kernel, const Graph& graph, const Limits& limits)
    {
        return check_kernel(kernel, graph, limits);
    }
    static std::uint64_t footprint(const KernelNode& kernel) noexcept;

    static flatbuffers::Offset<flat::Kernel> to_flat(FlatBuilder& builder, const KernelNode& kernel);
    static Result<void> check_flat(const flat::Kernel& kernel, const Limits& limits);
    static std::uint64_t flat_footprint(const flat::Kernel& kernel);
    static KernelNode from_flat(const flat::Kernel& kernel);

    static void json(Json& out, const KernelNode& kernel, const Graph& graph);
    static NodeRow row(const KernelNode& kernel, const Graph& graph);
    static std::vector<std::string> label(const KernelNode& kernel, const Graph& graph);
};

void KernelFormat::digest(Sha256& hash, const KernelNode& kernel)
{
    put(hash, kernel.image);
    put(hash, kernel.kernel);
    for (const std::uint32_t extent : kernel.grid) put(hash, extent);
    for (const std::uint32_t extent : kernel.block) put(hash, extent);
    put_count(hash, kernel.params.size());
    for (const Param& param : kernel.params) {
        put(hash, param.kind);
        put(hash, canonical_value(param));
        put(hash, param.local_size);
        put(hash, param.slots);
    }
    put(hash, kernel.shared_bytes);
    put(hash, static_cast<std::uint8_t>(kernel.packed));
    put_count(hash, kernel.attributes.size());
    for (const Attribute& attribute : kernel.attributes) {
        put(hash, attribute.id);
        put(hash, canonical_value(attribute));
        put(hash, attribute.slots);
    }
    put_count(hash, kernel.function_attributes.size());
    for (const FunctionAttribute& attribute : kernel.function_attributes) {
        put(hash, attribute.id);
        put(hash, attribute.value);
    }
}

void KernelFormat::compare(const NodeDifference& out, const KernelNode& a, const KernelNode& b)
{
    const KernelDifference difference{out, a, b};
    difference.name();
    difference.launch();
    difference.params();
    difference.attributes();
    difference.function_attributes();
}

std::uint64_t KernelFormat::footprint(const KernelNode& kernel) noexcept
{
    std::uint64_t bytes = text_size(kernel.kernel.size()) + items_size<Param>(kernel.params.size()) +
                          items_size<Attribute>(kernel.attributes.size()) +
                          items_size<FunctionAttribute>(kernel.function_attributes.size());
    for (const Param& param : kernel.params)
        bytes += heap_size(param.value.size()) + items_size<Slot>(param.slots.size());
    for (const Attribute& attribute : kernel.attributes)
        bytes += heap_size(attribute.value.size()) + items_size<Slot>(attribute.slots.size());
    return bytes;
}

flatbuffers::Offset<flat::Kernel> KernelFormat::to_flat(FlatBuilder& builder, const KernelNode& kernel)
{
    const auto name = write(builder, kernel.kernel);
    const auto params =
        write_tables(builder, kernel.params, [&](const Param& param) { return write_param(builder, param); });
    const flat::Dim3 grid = to_flat_dim(kernel.grid);
    const flat::Dim3 block = to_flat_dim(kernel.block);
    const auto attributes = write_tables(
        builder, kernel.attributes, [&](const Attribute& attribute) { return write_attribute(builder, attribute); });
    const auto function_attributes =
        write_structs<flat::FunctionAttribute>(builder, kernel.function_attributes, [](const FunctionAttribute& item) {
            return flat::FunctionAttribute{item.id, item.value};
        });
    return flat::CreateKernel(builder, kernel.image, name, &grid, &block, params, kernel.shared_bytes, kernel.packed,
                              attributes, function_attributes);
}

Result<void> KernelFormat::check_flat(const flat::Kernel& kernel, const Limits& limits)
{
    auto ok = check_count("parameters", count(kernel.params()), limits.params_per_node);
    if (ok) ok = check_count("attributes", count(kernel.attributes()), limits.attributes_per_node);
    if (ok) ok = check_count("function attributes", count(kernel.function_attributes()), limits.attributes_per_node);
    return ok;
}

std::uint64_t KernelFormat::flat_footprint(const flat::Kernel& kernel)
{
    std::uint64_t bytes = text_size(count(kernel.name())) + items_size<Param>(count(kernel.params())) +
                          items_size<Attribute>(count(kernel.attributes())) +
                          items_size<FunctionAttribute>(count(kernel.function_attributes()));
    for (std::uint32_t i = 0; i < count(kernel.params()); ++i) {
        const flat::Param& param = *kernel.params()->Get(i);
        bytes += heap_size(count(param.value())) + items_size<Slot>(count(param.slots()));
    }
    for (std::uint32_t i = 0; i < count(kernel.attributes()); ++i) {
        const flat::Attribute& attribute = *kernel.attributes()->Get(i);
        bytes += heap_size(count(attribute.value())) + items_size<Slot>(count(attribute.slots()));
    }
    return bytes;
}

KernelNode KernelFormat::from_flat(const flat::Kernel& kernel)
{
    return {.image = kernel.image(),
            .kernel = to_text(kernel.name()),
            .grid = to_dim(*kernel.grid()),
            .block = to_dim(*kernel.block()),
            .params = to_vector<Param>(kernel.params(), to_param),
            .shared_bytes = kernel.shared_bytes(),
            .packed = kernel.packed(),
            .attributes = to_vector<Attribute>(kernel.attributes(), to_attribute),
            .function_attributes =
                to_vector<FunctionAttribute>(kernel.function_attributes(), [](const flat::FunctionAttribute& item) {
                    return FunctionAttribute{item.id(), item.value()};
                })};
}

void KernelFormat::json(Json& out, const KernelNode& kernel, const Graph& graph)
{
    set_text(out, "kernel", kernel.kernel);
    set_text(out, "name", readable_kernel_name(kernel.kernel));
    set_number(out, "image", kernel.image);
    set_numbers(out, "grid", kernel.grid);
    set_numbers(out, "block", kernel.block);
    set_list(out, "params", kernel.params, [&](Json& item, const Param& param) { set_param(item, param, graph); });
    set_number(out, "shared_bytes", kernel.shared_bytes);
    set_flag(out, "packed", kernel.packed);
    set_list(out, "attributes", kernel.attributes,
             [&](Json& item, const Attribute& attribute) { set_attribute(item, attribute, graph); });
    set_list(out, "function_attributes", kernel.function_attributes, set_function_attribute);
}

NodeRow KernelFormat::row(const KernelNode& kernel, const Graph& graph)
{
    std::vector<std::string> items;
    for (const Param& param : kernel.params)
        items.push_back((kernel.packed ? "packed " : "") + param_text(param, graph));
    if (kernel.shared_bytes != 0) items.push_back(fmt::format("shared {} B", kernel.shared_bytes));
    for (const Attribute& attribute : kernel.attributes)
        items.push_back(fmt::format("{} = {}", launch_attribute_name(attribute.id), attribute_text(attribute, graph)));
    for (const FunctionAttribute& attribute : kernel.function_attributes)
        items.push_back(fmt::format("function's {} = {}", function_attribute_name(attribute.id), attribute.value));
    return {readable_kernel_name(kernel.kernel), to_text(kernel.grid), to_text(kernel.block),
            fmt::format("{}", fmt::join(items, ", "))};
}

std::vector<std::string> KernelFormat::label(const KernelNode& kernel, const Graph& graph)
{
    std::vector<std::string> lines{readable_kernel_name(kernel.kernel),
                                   fmt::format("grid {} block {}", to_text(kernel.grid), to_text(kernel.block))};
    for (const Param& param : kernel.params)
        for (const Slot& slot : param.slots) lines.push_back(to_text(slot, graph));
    if (kernel.shared_bytes != 0) lines.push_back(fmt::format("shared {}", size_text(kernel.shared_bytes)));
    for (const Attribute& attribute : kernel.attributes)
        lines.push_back(fmt::format("{} = {}", launch_attribute_name(attribute.id), attribute_text(attribute, graph)));
    return lines;
}

} // namespace

const NodeFormat& format_of(std::type_identity<KernelNode>) noexcept
{
    static const NodeFormatOf<KernelFormat> format;
    return format;
}

} // namespace warmgraph::cachefmt
