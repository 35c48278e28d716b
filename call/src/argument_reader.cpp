#include "warmgraph/call/argument_reader.hpp"

#include <algorithm>
#include <unordered_set>
#include <utility>

#include "warmgraph/cachefmt/key.hpp"
#include "warmgraph/capture/numbers.hpp"

namespace warmgraph {

namespace {

Result<void> check_shape(const RegionDecl& region)
{
    if (region.sizes.size() > cachefmt::k_max_rank)
        return fail(ErrorCode::invalid_argument, "'{}' has {} dimensions, expected at most {}", region.name,
                    region.sizes.size(), cachefmt::k_max_rank);
    if (std::ranges::any_of(region.sizes, [](std::int64_t size) { return size < 0; }))
        return fail(ErrorCode::invalid_argument, "'{}' has a negative size: declare the sizes of a typical call",
                    region.name);
    if (!region.strides.empty() && region.strides.size() != region.sizes.size())
        return fail(ErrorCode::invalid_argument,
                    "'{}' is declared with {} strides for {} dimensions: give one for each, or none", region.name,
                    region.strides.size(), region.sizes.size());
    if (std::ranges::any_of(region.strides, [](std::int64_t stride) { return stride < 0; }))
        return fail(ErrorCode::invalid_argument,
                    "'{}' is declared with a negative stride: copy it to a contiguous tensor first", region.name);
    return {};
}

/// Returns the region of a state. If the declaration gives no sizes, the region is all of the state's memory.
Result<RegionDecl> region_of(const StateDecl& decl)
{
    const auto kind = decl.access == Access::read_only ? cachefmt::RegionKind::weights : cachefmt::RegionKind::state;
    RegionDecl result{decl.name, kind, decl.dtype, decl.sizes, decl.memory, false, decl.strides};
    if (!decl.sizes.empty()) return result;
    const std::uint64_t element = size_of(decl.dtype);
    if (decl.memory.size % element != 0)
        return fail(
            ErrorCode::invalid_argument,
            "the state '{}' has {} bytes, which is not a multiple of the {} bytes of its type {}: declare its sizes",
            decl.name, decl.memory.size, element, to_string(decl.dtype));
    result.sizes = {static_cast<std::int64_t>(decl.memory.size / element)};
    return result;
}

Result<void> check_scalar(const NumberDecl& scalar)
{
    if (!is_scalar_type(scalar.dtype))
        return fail(ErrorCode::invalid_argument, "scalar '{}' is {}, expected i32, u32, i64, u64, f32 or f64",
                    scalar.name, to_string(scalar.dtype));
    if (scalar.range && !(scalar.range->first <= scalar.range->second))
        return fail(ErrorCode::invalid_argument, "scalar '{}' has the empty range [{}, {}]", scalar.name,
                    scalar.range->first, scalar.range->second);
    return {};
}

} // namespace

Result<Interface> interface_of(const Spec& spec)
{
    using cachefmt::RegionKind;
    Interface result;
    const std::size_t count = spec.inputs.size() + spec.outputs.size() + spec.states.size();
    result.regions.reserve(count);
    result.region_names.reserve(count);
    for (const auto& decl : spec.inputs)
        result.regions.push_back({decl.name, RegionKind::input, decl.dtype, decl.sizes, {}, false, decl.strides});
    for (const auto& decl : spec.outputs)
        result.regions.push_back({decl.name, RegionKind::output, decl.dtype, decl.sizes, {}, false, decl.strides});
    for (const auto& decl : spec.states) {
        auto region = region_of(decl);
        if (!region) return std::unexpected(region.error());
        result.regions.push_back(std::move(*region));
    }
    for (const auto& scalar : spec.scalars) result.scalars.push_back({scalar.name, scalar.dtype, scalar.range});
    for (const auto& value : spec.values) result.values.push_back({value.name, value.dtype, value.range});

    for (const auto& decl : spec.constants) {
        if (!decl.memory.address.is_null() && decl.memory.size == 0)
            return fail(ErrorCode::invalid_argument, "the constant '{}' has no bytes: leave it out", decl.name);
        result.constants.push_back({decl.name, decl.memory});
    }

    for (const std::string& name : spec.no_addresses) {
        const auto region = std::ranges::find(result.regions, name, &RegionDecl::name);
        const auto constant = std::ranges::find(result.constants, name, &NamedConstant::name);
        if (region == result.regions.end() && constant == result.constants.end())
            return fail(
                ErrorCode::invalid_argument,
                "no_addresses names '{}', which is not an input, output, state or constant: name a declared one", name);
        if (region != result.regions.end())
            region->no_addresses = true;
        else
            constant->no_addresses = true;
    }
    std::unordered_set<std::string_view> names(2 * count);
    const auto check_binding_name = [&names](const std::string& name) -> Result<void> {
        if (auto checked = cachefmt::check_name("binding name", name); !checked) return checked;
        if (!names.insert(name).second)
            return fail(ErrorCode::invalid_argument, "'{}' is declared twice: give each binding its own name", name);
        return {};
    };
    for (const auto& region : result.regions) {
        if (auto checked = check_binding_name(region.name); !checked) return std::unexpected(checked.error());
        if (auto checked = check_shape(region); !checked) return std::unexpected(checked.error());
        result.region_names.push_back(region.name);
    }
    for (const auto& constant : result.constants)
        if (auto checked = check_binding_name(constant.name); !checked) return std::unexpected(checked.error());
    for (const auto* list : {&result.scalars, &result.values})
        for (const auto& scalar : *list) {
            if (auto checked = check_binding_name(scalar.name); !checked) return std::unexpected(checked.error());
            if (auto checked = check_scalar(scalar); !checked) return std::unexpected(checked.error());
        }
    for (const auto& scalar : result.scalars) {
        auto range = range_of(scalar);
        if (!range) return std::unexpected(range.error());
        result.ranges.push_back(*range);
    }
    return result;
}

// --- a call's arguments

namespace {

void contiguous_strides(guards::TensorArg& tensor) noexcept
{
    std::int64_t stride = 1;
    for (std::size_t d = tensor.rank; d-- > 0;) {
        tensor.strides[d] = stride;
        stride *= std::max<std::int64_t>(tensor.sizes[d], 1);
    }
}

} // namespace

ArgumentReader::ArgumentReader(const Interface& interface, std::uint16_t device, Addressing addressing)
    : m_interface(interface), m_addressing(addressing)
{
    for (std::size_t i = 0; i < interface.regions.size(); ++i) {
        const auto& region = interface.regions[i];
        m_bindings.push_back({region.name, ArgumentKind::region, i});
        guards::TensorArg tensor;
        tensor.dtype = region.dtype;
        tensor.device = device;
        tensor.rank = static_cast<std::uint8_t>(region.sizes.size());
        std::ranges::copy(region.sizes, tensor.sizes.begin());
        if (region.strides.empty())
            contiguous_strides(tensor);
        else
            std::ranges::copy(region.strides, tensor.strides.begin());
        tensor.base = region.memory.address.base;
        tensor.offset = region.memory.address.offset;
        m_defaults.tensors.push_back(tensor);
        m_defaults.memory.push_back(region.memory);
    }
    for (std::size_t i = 0; i < interface.scalars.size(); ++i)
        m_bindings.push_back({interface.scalars[i].name, ArgumentKind::scalar, i});
    for (std::size_t i = 0; i < interface.values.size(); ++i)
        m_bindings.push_back({interface.values[i].name, ArgumentKind::value, i});
    m_defaults.scalars.resize(interface.scalars.size());
    m_defaults.values.resize(interface.values.size());
    m_seen.resize(m_bindings.size());
    list_needed();
}

std::size_t ArgumentReader::find(std::string_view name, std::size_t hint) const noexcept
{
    // Calls usually name arguments in the order of their declaration.
    if (hint < m_bindings.size() && m_bindings[hint].name == name) return hint;
    return static_cast<std::size_t>(std::ranges::find(m_bindings, name, &Binding::name) - m_bindings.begin());
}

Result<void> ArgumentReader::read_region(std::size_t index, const Arg& arg, Frame& frame)
{
    auto& tensor = frame.tensors[index];
    if (const auto* memory = std::get_if<MemoryRef>(&arg.value)) {
        frame.memory[index] = *memory;
        return {};
    }
    const auto* given = std::get_if<Tensor>(&arg.value);
    if (given == nullptr)
        return fail(ErrorCode::invalid_argument, "'{}' is a number in this call, expected memory or a Tensor",
                    arg.name);
    if (given->sizes.size() > cachefmt::k_max_rank)
        return fail(ErrorCode::invalid_argument, "'{}' has {} dimensions, expected at most {}", arg.name,
                    given->sizes.size(), cachefmt::k_max_rank);
    if (!given->strides.empty() && given->strides.size() != given->sizes.size())
        return fail(ErrorCode::invalid_argument, "'{}' has {} strides for {} dimensions: give one for each, or none",
                    arg.name, given->strides.size(), given->sizes.size());
    for (const auto* list : {&given->sizes, &given->strides})
        if (std::ranges::any_of(*list, [](std::int64_t n) { return n < 0; }))
            return fail(ErrorCode::invalid_argument,
                        "'{}' has a negative size or stride: copy it to a contiguous tensor first", arg.name);
    frame.memory[index] = given->memory;
    tensor.dtype = given->dtype;
    tensor.rank = static_cast<std::uint8_t>(given->sizes.size());
    std::ranges::copy(given->sizes, tensor.sizes.begin());
    if (given->strides.empty())
        contiguous_strides(tensor);
    else
        std::ranges::copy(given->strides, tensor.strides.begin());
    return {};
}

Result<void> check_number(std::string_view name, const Number& number)
{
    if (is_scalar_type(number.dtype)) return {};
    return fail(ErrorCode::invalid_argument, "'{}' is a number of type {}, expected i32, u32, i64, u64, f32 or f64",
                name, to_string(number.dtype));
}

Result<void> ArgumentReader::read_one(const Binding& binding, const Arg& arg, Frame& frame)
{
    if (binding.what == ArgumentKind::region) return read_region(binding.index, arg, frame);
    const bool scalar = binding.what == ArgumentKind::scalar;
    const auto& decl = scalar ? m_interface.scalars[binding.index] : m_interface.values[binding.index];
    const auto* number = std::get_if<Number>(&arg.value);
    if (number == nullptr)
        return fail(ErrorCode::invalid_argument, "'{}' is memory in this call, expected a number of type {}", arg.name,
                    to_string(decl.dtype));
    if (auto checked = check_number(arg.name, *number); !checked) return checked;
    auto bits = convert(number->dtype, number->bits, decl.dtype);
    if (!bits)
        return fail(ErrorCode::invalid_argument,
                    "'{}' is {} {} in this call, which {} cannot hold: pass the declared type", arg.name,
                    to_string(number->dtype), number_text(number->dtype, number->bits), to_string(decl.dtype));
    if (scalar && decl.range && !in_range(decl.dtype, *bits, m_interface.ranges[binding.index])) {
        const auto& range = m_interface.ranges[binding.index];
        return fail(ErrorCode::invalid_argument,
                    "'{}' is {}, outside its declared range [{}, {}]: widen the range in the Spec", arg.name,
                    number_text(decl.dtype, *bits), number_text(decl.dtype, range.low),
                    number_text(decl.dtype, range.high));
    }
    (scalar ? frame.scalars : frame.values)[binding.index] = *bits;
    return {};
}

void ArgumentReader::bind_state(std::size_t region, const MemoryRef& memory)
{
    const bool is_as_needed = memory.address.is_null() == m_defaults.memory[region].address.is_null();
    m_defaults.memory[region] = memory;
    m_defaults.tensors[region].base = memory.address.base;
    m_defaults.tensors[region].offset = memory.address.offset;
    ++m_filled; // marks all frames as old, because none has the new defaults
    ++m_defaults_number;
    if (!is_as_needed) list_needed();
}

void ArgumentReader::list_needed()
{
    m_needed.clear();
    for (std::size_t i = 0; i < m_bindings.size(); ++i)
        if (!has_default(m_bindings[i])) m_needed.push_back(i);
}

bool ArgumentReader::has_default(const Binding& binding) const noexcept
{
    return binding.what == ArgumentKind::region && !m_defaults.memory[binding.index].address.is_null();
}

/// Resets the frame to the defaults. If the frame is from the last read, resets only the arguments that this read
/// filled, because a model has hundreds of weights that do not change.
auto ArgumentReader::reset(Frame& frame) -> Reset
{
    const bool is_ours = frame.filled != 0 && std::exchange(frame.filled, 0) == m_filled;
    if (is_ours) {
        for (const std::size_t region : m_given) {
            frame.tensors[region] = m_defaults.tensors[region];
            frame.memory[region] = m_defaults.memory[region];
        }
        frame.scalars = m_defaults.scalars;
        frame.values = m_defaults.values;
    } else {
        frame = m_defaults; // this assignment reuses the storage, because the sizes are equal
    }
    m_given.clear();
    std::ranges::fill(m_seen, std::uint8_t{0});
    return is_ours ? Reset::given : Reset::all;
}

Result<void> ArgumentReader::read_all(std::span<const Arg> args, Frame& frame)
{
    for (std::size_t i = 0; i < args.size(); ++i) {
        const std::size_t index = find(args[i].name, i);
        if (index == m_bindings.size()) {
            std::string known;
            for (const Binding& binding : m_bindings)
                known += fmt::format("{}{}", known.empty() ? "" : ", ", binding.name);
            return fail(ErrorCode::invalid_argument, "'{}' is not declared: declared are {}", args[i].name, known);
        }
        if (m_seen[index] != 0) return fail(ErrorCode::invalid_argument, "'{}' is given twice", args[i].name);
        m_seen[index] = 1;
        if (auto read = read_one(m_bindings[index], args[i], frame); !read) return read;
        if (m_bindings[index].what != ArgumentKind::region) continue;
        const std::size_t region = m_bindings[index].index;
        m_given.push_back(region);
        frame.tensors[region].base = frame.memory[region].address.base;
        frame.tensors[region].offset = frame.memory[region].address.offset;
    }
    return {};
}

Result<void> ArgumentReader::check_given() const
{
    for (const std::size_t i : m_needed)
        if (m_seen[i] == 0)
            return fail(ErrorCode::invalid_argument,
                        "'{}' is missing: the call must give every input, output and scalar", m_bindings[i].name);
    return {};
}

Result<void> ArgumentReader::check_memory(const Frame& frame, std::size_t region) const
{
    const auto& memory = frame.memory[region];
    const auto& name = m_interface.regions[region].name;
    const std::uint64_t needed = guards::extent_bytes(frame.tensors[region]);
    if (memory.address.is_null())
        return needed == 0 ? Result<void>{} // frameworks pass null for empty tensors
                           : fail(ErrorCode::invalid_argument, "'{}' has no memory, expected {} bytes", name, needed);
    if ((memory.address.base == k_flat_base) != (m_addressing == Addressing::flat))
        return fail(
            ErrorCode::invalid_argument, "'{}' is at base {:#x} and offset {:#x}, which is {}", name,
            memory.address.base, memory.address.offset,
            m_addressing == Addressing::flat
                ? "not a pointer of this device: make it with Address::from_pointer, or allocate it on the device"
                : "a pointer, but this device has no pointers: pass memory from Device::allocate");
    if (memory.size < needed)
        return fail(ErrorCode::invalid_argument, "'{}' needs {} bytes, its memory has {}: pass a larger buffer", name,
                    needed, memory.size);
    return {};
}

Result<void> ArgumentReader::read(std::span<const Arg> args, Frame& frame)
{
    const Reset done = reset(frame);
    if (auto read = read_all(args, frame); !read) return read;
    if (auto complete = check_given(); !complete) return complete;
    if (done == Reset::given) {
        for (const std::size_t region : m_given)
            if (auto checked = check_memory(frame, region); !checked) return checked;
    } else {
        for (std::size_t region = 0; region < frame.tensors.size(); ++region)
            if (auto checked = check_memory(frame, region); !checked) return checked;
    }
    frame.filled = ++m_filled;
    return {};
}

} // namespace warmgraph
