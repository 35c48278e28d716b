#include "warmgraph/call/call_arguments.hpp"

#include <algorithm>

#include "warmgraph/throwing.hpp"

namespace warmgraph {

CallArguments::CallArguments(std::shared_ptr<const Declaration> declaration)
    : m_declaration(std::move(declaration)),
      m_reader(m_declaration->interface, m_declaration->backend()->ordinal(),
               m_declaration->backend()->limits().flat_addresses ? Addressing::flat : Addressing::by_base)
{
}

void CallArguments::read(std::span<const Arg> args) { value_or_raise(m_reader.read(args, m_frame)); }

void CallArguments::read(const NativeCapture& capture, const Adoption& adoption, Frame& into)
{
    std::vector<Arg> args;
    for (const auto& [name, memory] : capture.regions) args.emplace_back(name, memory);
    for (const auto* numbers : {&capture.scalars, &adoption.values})
        for (const auto& [name, number] : *numbers) {
            Arg& arg = args.emplace_back(name, MemoryRef{});
            arg.value = number;
        }
    value_or_raise(m_reader.read(args, into));
}

void CallArguments::bind(std::string_view state, const MemoryRef& memory)
{
    const Interface& interface = m_declaration->interface;
    const auto region = interface.region(state);
    const bool is_state = region && (interface.regions[*region].kind == cachefmt::RegionKind::state ||
                                     interface.regions[*region].kind == cachefmt::RegionKind::weights);
    if (!is_state)
        raise({ErrorCode::invalid_argument,
               fmt::format("'{}' has no state '{}': inputs and outputs are given in the call", m_declaration->name,
                           state)});
    if (memory.size != interface.regions[*region].memory.size)
        raise({ErrorCode::invalid_argument, fmt::format("state '{}' has {} bytes, expected {} as declared", state,
                                                        memory.size, interface.regions[*region].memory.size)});
    m_reader.bind_state(*region, memory);
}

const replay::Bindings& CallArguments::bindings(std::size_t regions)
{
    m_bindings.regions.resize(regions);
    std::ranges::copy(m_frame.memory, m_bindings.regions.begin());
    m_bindings.scalars.assign(m_frame.scalars.begin(), m_frame.scalars.end());
    return m_bindings;
}

} // namespace warmgraph
