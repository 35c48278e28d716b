#include "classify/classify.hpp"

#include <algorithm>
#include <bit>

#include "classify/check_captures.hpp"
#include "classify/classify_scalars.hpp"
#include "classify/classify_semaphores.hpp"
#include "classify/classify_words.hpp"
#include "classify/structural_difference.hpp"
#include "classify/unused_words.hpp"
#include "warmgraph/backends/host_functions.hpp"

namespace warmgraph {

using backends::EdgeData;
using backends::HostFunction;
using backends::Module;
using backends::NodePlace;
using backends::NodePlaceKind;
using backends::RawAttribute;
using backends::RawCopy;
using backends::RawEmpty;
using backends::RawEventRecord;
using backends::RawEventWait;
using backends::RawFill;
using backends::RawGraph;
using backends::RawHost;
using backends::RawKernel;
using backends::RawMemoryOperation;
using backends::RawMemoryOperations;
using backends::RawNode;
using backends::RawParam;
using backends::RawSemaphores;
using cachefmt::Slot;
using cachefmt::SlotKind;

namespace {

/// In bytes. On devices with flat addresses, scratch keeps its captured alignment up to this limit, the alignment that
/// device allocators give. A higher alignment would be chance and could differ in the next recording.
constexpr std::uint64_t k_scratch_alignment = 512;

class Classifier {
public:
    Classifier(const Interface& interface, const Captures& captures) : m_interface(interface), m_captures(captures) {}

    Result<Classification> run();

private:
    void describe_regions();
    [[nodiscard]] Result<void> add_node(std::uint32_t index);
    void add_edges(std::uint32_t index);
    [[nodiscard]] Result<Slot> region_slot(const WordPlace& place, const Address& first,
                                           const std::optional<Address>& moved);
    [[nodiscard]] Result<Slot> based_slot(const WordPlace& place, const Address& first,
                                          const std::optional<Address>& moved);
    [[nodiscard]] Result<cachefmt::Param> param(std::size_t index, std::size_t number);
    [[nodiscard]] Result<cachefmt::Attribute> attribute(std::size_t index, std::size_t number);
    [[nodiscard]] std::uint32_t image_of(Module* module);
    [[nodiscard]] Result<std::uint32_t> event_of(std::size_t index, std::uint64_t handle);

    [[nodiscard]] Result<cachefmt::Node> node_of(std::size_t, const RawEmpty&) { return cachefmt::EmptyNode{}; }
    [[nodiscard]] Result<cachefmt::Node> node_of(std::size_t index, const RawKernel& first);
    [[nodiscard]] Result<cachefmt::Node> node_of(std::size_t index, const RawCopy& first);
    [[nodiscard]] Result<cachefmt::Node> node_of(std::size_t index, const RawFill& first);
    [[nodiscard]] Result<cachefmt::Node> node_of(std::size_t index, const RawEventRecord& first);
    [[nodiscard]] Result<cachefmt::Node> node_of(std::size_t index, const RawEventWait& first);
    [[nodiscard]] Result<cachefmt::Node> node_of(std::size_t index, const RawHost& first);
    [[nodiscard]] Result<cachefmt::Node> node_of(std::size_t index, const RawMemoryOperations& first);
    [[nodiscard]] Result<cachefmt::Node> node_of(std::size_t index, const RawSemaphores& first);
    [[nodiscard]] Result<void> check_destination(std::size_t index, const Slot& slot) const;
    [[nodiscard]] Result<Slot> word_slot(std::size_t index, std::size_t number);
    [[nodiscard]] Result<void> check_written_value(std::size_t index, std::size_t number);

    /// Returns the work of the same node in the other capture; nullptr if there is no other capture.
    template <class Work>
    [[nodiscard]] const Work* moved(std::size_t index) const
    {
        return m_captures.moved ? &std::get<Work>(m_captures.moved->graph.nodes[index].work) : nullptr;
    }
    [[nodiscard]] const RawGraph& graph() const noexcept { return m_captures.first.graph; }

    const Interface& m_interface;
    const Captures& m_captures;
    // Set only on devices with flat addresses, when the captures' structure is known to be equal.
    std::optional<FlatWords> m_words;
    Classification m_result;
};

void Classifier::describe_regions()
{
    auto& graph = m_result.graph;
    const auto regions = map_regions(m_interface, m_captures);
    for (std::size_t i = 0; i < regions.size(); ++i) {
        const bool declared = regions[i].origin == MappedRegion::Origin::declared;
        const auto own = regions[i].origin == MappedRegion::Origin::constant ? cachefmt::RegionKind::constant
                                                                             : cachefmt::RegionKind::arena;
        std::uint32_t alignment = 1;
        if (!declared && m_captures.flat_addresses) {
            // The function may have chosen a kernel for this alignment. Only the lower of both addresses' alignments is
            // certain.
            std::uint64_t bits = k_scratch_alignment | regions[i].first.address.flat();
            if (regions[i].moved) bits |= regions[i].moved->address.flat();
            alignment = 1U << std::countr_zero(bits);
        }
        graph.regions.push_back(
            {regions[i].name, declared ? m_interface.regions[i].kind : own, regions[i].first.size, alignment, {}});
    }
    for (const auto& scalar : m_interface.scalars) graph.scalars.push_back({scalar.name, scalar.dtype});
}

// --- addresses of memory with bases

struct RegionOffset {
    std::uint32_t region;
    std::uint64_t offset;
};

bool holds(const MemoryRef& memory, const Address& address, Pointee pointee) noexcept
{
    if (address.base != memory.address.base || address.offset < memory.address.offset) return false;
    const std::uint64_t offset = address.offset - memory.address.offset;
    // The address one past the end counts as inside, unless the node reads or writes there.
    return offset < memory.size || (offset == memory.size && pointee == Pointee::unknown);
}

/// Returns the region at the address. If several regions overlap there, returns the region that reaches farthest,
/// because the node's work may run past the end of the other regions.
std::optional<RegionOffset> locate(const CapturedGraph& capture, std::span<const NamedMemory> constants,
                                   const Address& address, Pointee pointee)
{
    std::uint32_t index = 0;
    const auto inside = [&address, pointee](const MemoryRef& memory) { return holds(memory, address, pointee); };
    std::optional<RegionOffset> farthest;
    std::uint64_t most = 0; // bytes from the address to the region's end
    for (const auto& memory : capture.regions) {
        if (inside(memory)) {
            const std::uint64_t offset = address.offset - memory.address.offset;
            if (!farthest || memory.size - offset > most) farthest = RegionOffset{index, offset};
            most = std::max(most, memory.size - offset);
        }
        ++index;
    }
    if (farthest) return farthest;
    for (const auto& [name, memory] : capture.scratch) {
        if (inside(memory)) return RegionOffset{index, address.offset - memory.address.offset};
        ++index;
    }
    // Only devices with flat addresses have graph allocations.
    index += static_cast<std::uint32_t>(capture.graph.allocations.size());
    for (const auto& [name, memory] : constants) {
        if (inside(memory)) return RegionOffset{index, address.offset - memory.address.offset};
        ++index;
    }
    return std::nullopt;
}

Result<Slot> Classifier::based_slot(const WordPlace& place, const Address& first, const std::optional<Address>& moved)
{
    const std::string where = place.name();
    auto at = locate(m_captures.first, m_captures.constants, first, place.pointee);
    const auto then = moved ? locate(*m_captures.moved, m_captures.constants, *moved, place.pointee) : at;
    // Regions may overlap in the first capture, as in the call; in the other capture each region has its own range.
    if (then && then->region < m_captures.first.regions.size())
        if (const MemoryRef& same = m_captures.first.regions[then->region]; holds(same, first, place.pointee))
            at = RegionOffset{then->region, first.offset - same.address.offset};
    if (!at || !then)
        return fail(ErrorCode::not_recordable,
                    "{} takes an address at {} that lies in no declared region{}: it is undeclared memory. Declare it "
                    "(input, output, state, weights) and ask "
                    "Recorder::address for it, or allocate it with Recorder::alloc",
                    place.subject(), where, describe_other_memory(m_captures, first));
    if (at->region != then->region || at->offset != then->offset)
        return fail(ErrorCode::not_recordable,
                    "{} takes an address at {} that does not follow its region: it was {} bytes into region {}, and "
                    "then {} bytes into region {}",
                    place.subject(), where, at->offset, at->region, then->offset, then->region);
    if (!moved && m_captures.proof == Proof::required)
        return fail(
            ErrorCode::not_recordable,
            "{} takes an address at {} that one capture does not prove: give a second capture with every region "
            "at another address",
            place.subject(), where);
    if (!moved) ++m_result.unproven;
    return Slot{SlotKind::region, at->region, 0, 8, static_cast<std::int64_t>(at->offset)};
}

Result<Slot> Classifier::region_slot(const WordPlace& place, const Address& first, const std::optional<Address>& moved)
{
    return m_words ? m_words->address(place, first, moved) : based_slot(place, first, moved);
}

// --- nodes

constexpr NodePlace place_of(NodePlaceKind kind, std::size_t index = 0) noexcept
{
    return {kind, static_cast<std::uint32_t>(index)};
}

std::uint32_t Classifier::image_of(Module* module)
{
    auto& modules = m_result.modules;
    const auto known = std::ranges::find(modules, module);
    const auto index = static_cast<std::uint32_t>(known - modules.begin());
    if (known == modules.end()) modules.push_back(module);
    return index;
}

Result<cachefmt::Param> Classifier::param(std::size_t index, std::size_t number)
{
    const auto& kernel = std::get<RawKernel>(graph().nodes[index].work);
    const auto* other = moved<RawKernel>(index);
    const RawParam& first = kernel.params[number];
    const RawParam* then = other != nullptr ? &other->params[number] : nullptr;
    cachefmt::Param param{first.kind, first.value, first.local_size, {}};
    const WordPlace place{graph(), index, place_of(NodePlaceKind::parameter, number)};
    if (param.kind == cachefmt::ParamKind::memory) {
        auto slot = region_slot(place, first.address, then != nullptr ? std::optional{then->address} : std::nullopt);
        if (!slot) return std::unexpected(slot.error());
        param.slots.push_back(*slot);
        return param;
    }
    if (param.kind != cachefmt::ParamKind::value) return param;
    if (!m_words && then != nullptr && param.value != then->value)
        return fail(ErrorCode::not_recordable, "{} takes at parameter {} a plain value that depends on addresses",
                    describe_node(graph(), index), number);
    auto slots = scalar_slots(m_interface, m_captures, {index, place.place});
    if (!slots) return std::unexpected(slots.error());
    param.slots = std::move(*slots);
    if (!m_words) return param;
    std::vector<std::size_t> unused;
    auto pointers =
        m_words->slots(place, first.value, then != nullptr ? std::optional<ByteView>{then->value} : std::nullopt,
                       param.slots, &unused);
    if (!pointers) return std::unexpected(pointers.error());
    if (!unused.empty()) {
        auto words = unused_words({index, number}, place, first.value, then->value, unused);
        for (const UnusedWord& word : words) set_unused(param.value, word, UnusedFill::zero);
        std::ranges::move(words, std::back_inserter(m_result.unused));
    }
    param.slots.insert(param.slots.end(), pointers->begin(), pointers->end());
    std::ranges::sort(param.slots, {}, &Slot::offset);
    if (auto checked = m_words->check_handles(place, param.value, param.slots); !checked)
        return std::unexpected(checked.error());
    return param;
}

Result<cachefmt::Attribute> Classifier::attribute(std::size_t index, std::size_t number)
{
    const RawAttribute& first = std::get<RawKernel>(graph().nodes[index].work).attributes[number];
    const auto* other = moved<RawKernel>(index);
    cachefmt::Attribute attribute{first.id, first.value, {}};
    if (!m_words) {
        if (other != nullptr && other->attributes[number].value != first.value)
            return fail(ErrorCode::not_recordable, "{} has a launch attribute {} that depends on addresses",
                        describe_node(graph(), index), first.id);
        return attribute;
    }
    auto slots =
        m_words->slots({graph(), index, place_of(NodePlaceKind::attribute, number)}, first.value,
                       other != nullptr ? std::optional<ByteView>{other->attributes[number].value} : std::nullopt, {});
    if (!slots) return std::unexpected(slots.error());
    attribute.slots = std::move(*slots);
    return attribute;
}

Result<cachefmt::Node> Classifier::node_of(std::size_t index, const RawKernel& first)
{
    cachefmt::KernelNode node;
    node.image = image_of(first.module);
    node.kernel = first.kernel;
    node.grid = first.grid;
    node.block = first.block;
    node.shared_bytes = first.shared_bytes;
    node.packed = first.packed;
    node.function_attributes = first.function_attributes;
    for (std::size_t i = 0; i < first.params.size(); ++i) {
        auto one = param(index, i);
        if (!one) return std::unexpected(one.error());
        node.params.push_back(std::move(*one));
    }
    for (std::size_t i = 0; i < first.attributes.size(); ++i) {
        auto one = attribute(index, i);
        if (!one) return std::unexpected(one.error());
        node.attributes.push_back(std::move(*one));
    }
    return node;
}

Result<void> Classifier::check_destination(std::size_t index, const Slot& slot) const
{
    const auto& region = m_result.graph.regions[slot.target];
    if (region.kind != cachefmt::RegionKind::constant) return {};
    return fail(ErrorCode::not_recordable, "{} writes the constant '{}': declare it as a state",
                describe_node(graph(), index), region.name);
}

Result<cachefmt::Node> Classifier::node_of(std::size_t index, const RawCopy& first)
{
    const auto* other = moved<RawCopy>(index);
    const bool is_nothing = first.size == 0 || first.rows == 0 || first.slices == 0;
    const Pointee pointee = is_nothing ? Pointee::unknown : Pointee::bytes;
    auto source = region_slot({graph(), index, place_of(NodePlaceKind::source), pointee}, first.source,
                              other != nullptr ? std::optional{other->source} : std::nullopt);
    if (!source) return std::unexpected(source.error());
    auto destination = region_slot({graph(), index, place_of(NodePlaceKind::destination), pointee}, first.destination,
                                   other != nullptr ? std::optional{other->destination} : std::nullopt);
    if (!destination) return std::unexpected(destination.error());
    if (auto checked = check_destination(index, *destination); !checked) return std::unexpected(checked.error());
    return cachefmt::CopyNode{*source,
                              *destination,
                              first.size,
                              first.rows,
                              first.slices,
                              first.source_pitch,
                              first.destination_pitch,
                              first.source_space,
                              first.destination_space};
}

Result<cachefmt::Node> Classifier::node_of(std::size_t index, const RawFill& first)
{
    const auto* other = moved<RawFill>(index);
    const Pointee pointee = first.size == 0 || first.rows == 0 ? Pointee::unknown : Pointee::bytes;
    auto destination = region_slot({graph(), index, place_of(NodePlaceKind::destination), pointee}, first.destination,
                                   other != nullptr ? std::optional{other->destination} : std::nullopt);
    if (!destination) return std::unexpected(destination.error());
    if (auto checked = check_destination(index, *destination); !checked) return std::unexpected(checked.error());
    return cachefmt::FillNode{*destination, first.pattern, first.size, first.rows, first.pitch};
}

Result<std::uint32_t> Classifier::event_of(std::size_t index, std::uint64_t handle)
{
    const auto& all = m_captures.handles.events;
    const auto declared = std::ranges::find(all, handle, [](const auto& event) { return event.second; });
    if (declared == all.end())
        return fail(ErrorCode::not_recordable,
                    "{} uses an event of the caller ({:#x}) that was not declared: declare it by name (Spec::events), "
                    "so that a replay knows which event of its process to use",
                    describe_node(graph(), index), handle);
    auto& events = m_result.graph.events;
    const auto known = std::ranges::find(events, declared->first);
    const auto number = static_cast<std::uint32_t>(known - events.begin());
    if (known == events.end()) events.push_back(declared->first);
    return number;
}

Result<cachefmt::Node> Classifier::node_of(std::size_t index, const RawEventRecord& first)
{
    const auto event = event_of(index, first.event);
    if (!event) return std::unexpected(event.error());
    return cachefmt::EventRecordNode{*event};
}

Result<cachefmt::Node> Classifier::node_of(std::size_t index, const RawEventWait& first)
{
    const auto event = event_of(index, first.event);
    if (!event) return std::unexpected(event.error());
    return cachefmt::EventWaitNode{*event};
}

Result<cachefmt::Node> Classifier::node_of(std::size_t index, const RawHost& first)
{
    auto name = name_of(HostFunction{first.function, first.data});
    if (!name)
        return fail(ErrorCode::not_recordable,
                    "{} calls the host function {:#x} with data {:#x}, which has no name: register the function and "
                    "its data with register_host_function before recording",
                    describe_node(graph(), index), reinterpret_cast<std::uintptr_t>(first.function),
                    reinterpret_cast<std::uintptr_t>(first.data));
    return cachefmt::HostNode{std::move(*name)};
}

/// Returns the slot for the address of a memory operation. The word at that address must be aligned and lie inside its
/// region.
Result<Slot> Classifier::word_slot(std::size_t index, std::size_t number)
{
    const auto* other = moved<RawMemoryOperations>(index);
    const RawMemoryOperation& first = std::get<RawMemoryOperations>(graph().nodes[index].work).operations[number];
    auto slot = region_slot({graph(), index, place_of(NodePlaceKind::operation, number), Pointee::bytes}, first.address,
                            other != nullptr ? std::optional{other->operations[number].address} : std::nullopt);
    if (!slot) return slot;
    const std::uint32_t width = cachefmt::width_of(first.kind);
    const auto& region = m_result.graph.regions[slot->target];
    const auto addend = static_cast<std::uint64_t>(slot->addend);
    if (addend % width == 0 && width <= region.size && addend <= region.size - width) return slot;
    return fail(ErrorCode::not_recordable,
                "{} has at operation {} a word of {} bytes at byte {} of region '{}' of {} bytes: the word must lie "
                "inside the region, at a multiple of its size from the region's start",
                describe_node(graph(), index), number, width, addend, region.name, region.size);
}

/// Checks that the value of a memory operation is not an address, which would be wrong in another process.
/// structural_difference() already refuses a value that differs between captures.
Result<void> Classifier::check_written_value(std::size_t index, std::size_t number)
{
    const RawMemoryOperation& first = std::get<RawMemoryOperations>(graph().nodes[index].work).operations[number];
    if (!m_words || cachefmt::width_of(first.kind) != sizeof first.value) return {};
    Bytes value;
    append(value, first.value);
    const std::optional<ByteView> then = m_captures.moved ? std::optional<ByteView>{value} : std::nullopt;
    auto found = m_words->slots({graph(), index, place_of(NodePlaceKind::operation_value, number)}, value, then, {});
    if (!found) return std::unexpected(found.error());
    if (found->empty()) return {};
    return fail(ErrorCode::not_recordable,
                "{} writes or compares at operation {} the value {:#x}, which is an address: let a kernel do it",
                describe_node(graph(), index), number, first.value);
}

Result<cachefmt::Node> Classifier::node_of(std::size_t index, const RawMemoryOperations& first)
{
    cachefmt::MemoryOperationsNode node;
    for (std::size_t i = 0; i < first.operations.size(); ++i) {
        const RawMemoryOperation& operation = first.operations[i];
        node.operations.push_back({operation.kind, {}, operation.value, operation.flags});
        if (cachefmt::width_of(operation.kind) == 0) continue;
        if (auto checked = check_written_value(index, i); !checked) return std::unexpected(checked.error());
        auto slot = word_slot(index, i);
        if (!slot) return std::unexpected(slot.error());
        node.operations.back().address = *slot;
    }
    return node;
}

Result<cachefmt::Node> Classifier::node_of(std::size_t index, const RawSemaphores& first)
{
    cachefmt::SemaphoresNode node{first.action, {}};
    for (std::size_t i = 0; i < first.uses.size(); ++i) {
        const auto name = semaphore_name(graph(), m_captures.handles.semaphores, index, i);
        if (!name) return std::unexpected(name.error());
        auto use = semaphore_value(m_interface, m_captures, index, i);
        if (!use) return std::unexpected(use.error());
        auto& names = m_result.graph.semaphores;
        const auto known = std::ranges::find(names, *name);
        use->semaphore = static_cast<std::uint32_t>(known - names.begin());
        if (known == names.end()) names.push_back(*name);
        node.uses.push_back(*use);
    }
    return node;
}

void Classifier::add_edges(std::uint32_t index)
{
    const RawNode& node = graph().nodes[index];
    for (std::size_t i = 0; i < node.dependencies.size(); ++i)
        m_result.graph.edges.push_back(
            {node.dependencies[i], index, i < node.edges.size() ? node.edges[i] : EdgeData{}});
}

Result<void> Classifier::add_node(std::uint32_t index)
{
    auto node = std::visit([&](const auto& work) { return node_of(index, work); }, graph().nodes[index].work);
    if (!node) return std::unexpected(node.error());
    m_result.graph.nodes.push_back(std::move(*node));
    add_edges(index);
    return {};
}

Result<Classification> Classifier::run()
{
    if (auto checked = check_captures(m_interface, m_captures); !checked) return std::unexpected(checked.error());
    if (m_captures.flat_addresses) m_words.emplace(m_interface, m_captures);
    describe_regions();
    for (std::uint32_t i = 0; i < graph().nodes.size(); ++i)
        if (auto added = add_node(i); !added) return std::unexpected(added.error());
    std::ranges::sort(m_result.graph.edges);
    if (m_words) {
        m_result.unproven += m_words->unproven();
        m_result.suspects = m_words->take_suspects();
        m_result.neighbours = m_words->take_neighbours();
    }
    return std::move(m_result);
}

} // namespace

std::string describe_other_memory(const Captures& captures, const Address& address)
{
    for (const auto& [name, memory] : captures.others)
        if (holds(memory, address, Pointee::bytes)) return fmt::format(" but in {}", name);
    return {};
}

Result<Classification> classify(const Interface& interface, const Captures& captures)
{
    if (captures.first.graph.allocations.empty()) return Classifier{interface, captures}.run();
    // The graph's own allocations may have other addresses at every capture; this is not a difference in the work.
    Captures rebased = captures;
    const auto rebase = [&first = captures.first.graph](CapturedGraph& capture) {
        capture.graph = with_allocations_of(first, std::move(capture.graph));
    };
    if (rebased.again) rebase(*rebased.again);
    for (ScalarProbe& probe : rebased.probes) rebase(probe.capture);
    return Classifier{interface, rebased}.run();
}

} // namespace warmgraph
