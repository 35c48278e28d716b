// What a function declares, and one call of it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "warmgraph/backends/address.hpp"
#include "warmgraph/base/error.hpp"
#include "warmgraph/cachefmt/graph.hpp"
#include "warmgraph/guards/call_guard.hpp"
#include "warmgraph/guards/numbers.hpp"

namespace warmgraph {

/// An input, output or state, in this order: the first regions of every graph of the function.
struct RegionDecl {
    std::string name;
    cachefmt::RegionKind kind = cachefmt::RegionKind::input;
    DType dtype = DType::u8;
    std::vector<std::int64_t> sizes;
    MemoryRef memory;                    ///< states: where it is unless a call says otherwise
    bool no_addresses = false;           ///< the caller's word: no word in it is an address, whatever it looks like
    std::vector<std::int64_t> strides{}; ///< elements; empty: contiguous
};

using NamedMemory = std::pair<std::string, MemoryRef>;

/// Memory whose contents an entry carries. Null: only loaded here, its contents are the entry's.
struct NamedConstant {
    std::string name;
    MemoryRef memory;
    bool no_addresses = false; ///< as RegionDecl's
};

/// Objects of the driver's by name and handle.
using NamedHandles = std::vector<std::pair<std::string, std::uint64_t>>;
/// The first of that name, or with that handle; end where there is none.
[[nodiscard]] NamedHandles::const_iterator find_name(const NamedHandles& handles, std::string_view name);
[[nodiscard]] NamedHandles::const_iterator find_handle(const NamedHandles& handles, std::uint64_t handle);

/// What graphs share with work outside them.
struct DeclaredHandles {
    NamedHandles events{};     ///< CUevent
    NamedHandles semaphores{}; ///< CUexternalSemaphore
    bool operator==(const DeclaredHandles&) const = default;
};

struct Interface {
    std::vector<RegionDecl> regions;
    std::vector<std::string> region_names;
    std::vector<NumberDecl> scalars;
    std::vector<ScalarRange> ranges; ///< of scalars
    std::vector<NumberDecl> values;
    std::vector<NamedConstant> constants{}; ///< no guards, and bound by no call

    /// "1 input, 1 output, 1 state, 38 weights; scalar position i32 [0, 255]": a guard fact. The kinds in the order of
    /// the tensors, whose names are guarded beside it.
    [[nodiscard]] std::string text() const;
    [[nodiscard]] std::optional<std::size_t> region(std::string_view name) const noexcept;
};

/// A call's arguments by position. Reused from call to call, so that a steady call allocates nothing.
struct Frame {
    std::vector<guards::TensorArg> tensors; ///< as Interface::regions
    std::vector<MemoryRef> memory;          ///< the same
    std::vector<std::uint64_t> scalars, values;
    std::uint64_t filled = 0; ///< ArgumentReader's own: which of its reads filled this; 0 for none
};

/// Those that have memory here.
[[nodiscard]] std::vector<NamedMemory> named(const std::vector<NamedConstant>& constants);
/// The sizes of a tensor as a vector.
[[nodiscard]] std::vector<std::int64_t> sizes_of(const guards::TensorArg& tensor);

} // namespace warmgraph
