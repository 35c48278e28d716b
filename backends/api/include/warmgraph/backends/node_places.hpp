// The data in each kind of node that may depend on a region, a scalar or the process: addresses, bytes that may contain
// addresses, numbers, and handles. All code that visits them goes through here, so that a new kind is listed once.
#pragma once

#include <compare>
#include <concepts>
#include <cstdint>
#include <type_traits>
#include <utility>
#include <variant>

#include "warmgraph/backends/raw_graph.hpp"

namespace warmgraph::backends {

enum class NodePlaceKind : std::uint8_t {
    parameter,       ///< a kernel's parameter
    attribute,       ///< a launch attribute
    source,          ///< a copy's source
    destination,     ///< a copy's or fill's destination
    operation,       ///< the address of a memory operation
    operation_value, ///< the value that a memory operation writes or compares with: a constant, so for_each_place skips it
    semaphore,       ///< the value of an external semaphore
};

/// A place in a node, independent of the node.
struct NodePlace {
    NodePlaceKind kind = NodePlaceKind::parameter;
    std::uint32_t index = 0; ///< index of the parameter, attribute, memory operation or semaphore; else 0
    auto operator<=>(const NodePlace&) const = default;
};

/// The data at a place of `Work` (RawWork or const RawWork): one pointer is set, or none if the node lacks that place.
template <class Work>
struct Content {
    template <class T>
    using Pointer = std::conditional_t<std::is_const_v<Work>, const T, T>*;
    Pointer<Address> address = nullptr;
    Pointer<Bytes> bytes = nullptr;          ///< bytes whose words may be addresses or follow scalars
    Pointer<std::uint64_t> number = nullptr; ///< a number that may follow a scalar, but is not an address
};

enum class HandleKind : std::uint8_t { event, semaphore };

namespace detail {

template <class T, class Raw>
concept Is = std::same_as<std::remove_const_t<T>, Raw>;
template <class T>
concept HasNoPlace = Is<T, RawEmpty> || Is<T, RawEventRecord> || Is<T, RawEventWait> || Is<T, RawHost>;
template <class T>
concept HasEvent = Is<T, RawEventRecord> || Is<T, RawEventWait>;
template <class T>
concept HasNoHandle = Is<T, RawEmpty> || Is<T, RawKernel> || Is<T, RawCopy> || Is<T, RawFill> || Is<T, RawHost> ||
                      Is<T, RawMemoryOperations>;

/// The Content for an alternative of RawWork, const if `Raw` is const.
template <class Raw>
using ContentOf = Content<std::conditional_t<std::is_const_v<Raw>, const RawWork, RawWork>>;

// --- For each kind of node: the content at a place, and the node's places in order

template <HasNoPlace Work>
constexpr ContentOf<Work> content(Work&, const NodePlace&) noexcept
{
    return {};
}
template <HasNoPlace Work, class Visit>
constexpr void visit_places(Work&, Visit&&)
{
}

template <Is<RawKernel> Kernel>
constexpr ContentOf<Kernel> content(Kernel& kernel, const NodePlace& place) noexcept
{
    if (place.kind == NodePlaceKind::attribute && place.index < kernel.attributes.size())
        return {.bytes = &kernel.attributes[place.index].value};
    if (place.kind != NodePlaceKind::parameter || place.index >= kernel.params.size()) return {};
    auto& param = kernel.params[place.index];
    if (param.kind == ParamKind::memory) return {.address = &param.address};
    if (param.kind == ParamKind::value) return {.bytes = &param.value};
    return {};
}
template <Is<RawKernel> Kernel, class Visit>
constexpr void visit_places(Kernel& kernel, Visit&& visit)
{
    for (std::uint32_t i = 0; i < kernel.params.size(); ++i)
        if (kernel.params[i].kind != ParamKind::local) visit(NodePlace{NodePlaceKind::parameter, i});
    for (std::uint32_t i = 0; i < kernel.attributes.size(); ++i) visit(NodePlace{NodePlaceKind::attribute, i});
}

template <Is<RawCopy> Copy>
constexpr ContentOf<Copy> content(Copy& copy, const NodePlace& place) noexcept
{
    if (place.kind == NodePlaceKind::source) return {.address = &copy.source};
    if (place.kind == NodePlaceKind::destination) return {.address = &copy.destination};
    return {};
}
template <Is<RawCopy> Copy, class Visit>
constexpr void visit_places(Copy&, Visit&& visit)
{
    visit(NodePlace{NodePlaceKind::source});
    visit(NodePlace{NodePlaceKind::destination});
}

template <Is<RawFill> Fill>
constexpr ContentOf<Fill> content(Fill& fill, const NodePlace& place) noexcept
{
    if (place.kind == NodePlaceKind::destination) return {.address = &fill.destination};
    return {};
}
template <Is<RawFill> Fill, class Visit>
constexpr void visit_places(Fill&, Visit&& visit)
{
    visit(NodePlace{NodePlaceKind::destination});
}

/// An operation without an address (a barrier) has a null address.
template <Is<RawMemoryOperations> Batch>
constexpr ContentOf<Batch> content(Batch& batch, const NodePlace& place) noexcept
{
    if (place.index >= batch.operations.size()) return {};
    if (place.kind == NodePlaceKind::operation) return {.address = &batch.operations[place.index].address};
    if (place.kind == NodePlaceKind::operation_value) return {.number = &batch.operations[place.index].value};
    return {};
}
template <Is<RawMemoryOperations> Batch, class Visit>
constexpr void visit_places(Batch& batch, Visit&& visit)
{
    for (std::uint32_t i = 0; i < batch.operations.size(); ++i) visit(NodePlace{NodePlaceKind::operation, i});
}

template <Is<RawSemaphores> Semaphores>
constexpr ContentOf<Semaphores> content(Semaphores& semaphores, const NodePlace& place) noexcept
{
    if (place.kind != NodePlaceKind::semaphore || place.index >= semaphores.uses.size()) return {};
    return {.number = &semaphores.uses[place.index].value};
}
template <Is<RawSemaphores> Semaphores, class Visit>
constexpr void visit_places(Semaphores& semaphores, Visit&& visit)
{
    for (std::uint32_t i = 0; i < semaphores.uses.size(); ++i) visit(NodePlace{NodePlaceKind::semaphore, i});
}

// --- For each kind of node: its driver handles

template <HasNoHandle Work, class Visit>
constexpr void visit_handles(Work&, Visit&&)
{
}
template <HasEvent Work, class Visit>
constexpr void visit_handles(Work& work, Visit&& visit)
{
    visit(HandleKind::event, work.event);
}
template <Is<RawSemaphores> Semaphores, class Visit>
constexpr void visit_handles(Semaphores& semaphores, Visit&& visit)
{
    for (auto& use : semaphores.uses) visit(HandleKind::semaphore, use.semaphore);
}

} // namespace detail

/// Returns an empty Content if the node lacks that place. Does not allocate.
template <detail::Is<RawWork> Work>
[[nodiscard]] constexpr Content<Work> content_at(Work& work, const NodePlace& place) noexcept
{
    return std::visit([&](auto& one) -> Content<Work> { return detail::content(one, place); }, work);
}

/// Calls `visit(place, content)` for each place of the node, in an order that depends only on its kind and sizes.
template <detail::Is<RawWork> Work, class Visit>
constexpr void for_each_place(Work& work, Visit&& visit)
{
    std::visit(
        [&](auto& one) {
            detail::visit_places(
                one, [&](const NodePlace& place) { visit(place, Content<Work>(detail::content(one, place))); });
        },
        work);
}

/// Calls `visit(kind, handle)` for each driver handle in the node. Handles differ from process to process.
template <detail::Is<RawWork> Work, class Visit>
constexpr void for_each_handle(Work& work, Visit&& visit)
{
    std::visit([&](auto& one) { detail::visit_handles(one, visit); }, work);
}

} // namespace warmgraph::backends
