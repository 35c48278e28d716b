// The declaration of a function, and one call of it.
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

/// An input, output or state. Every graph of the function begins with these regions, in this order.
struct RegionDecl {
    std::string name;
    cachefmt::RegionKind kind = cachefmt::RegionKind::input;
    DType dtype = DType::u8;
    std::vector<std::int64_t> sizes;
    MemoryRef memory;                    ///< for states: their memory unless a call passes other memory
    bool no_addresses = false;           ///< the caller promises that no word in it is an address
    std::vector<std::int64_t> strides{}; ///< in elements; empty means contiguous
};

using NamedMemory = std::pair<std::string, MemoryRef>;

/// Memory whose contents an entry stores. Null memory: the function only loads entries and takes the contents from
/// them.
struct NamedConstant {
    std::string name;
    MemoryRef memory;
    bool no_addresses = false; ///< as RegionDecl::no_addresses
};

/// Driver objects by name and handle.
using NamedHandles = std::vector<std::pair<std::string, std::uint64_t>>;
/// Both functions return an iterator to the first match, or `handles.end()`.
[[nodiscard]] NamedHandles::const_iterator find_name(const NamedHandles& handles, std::string_view name);
[[nodiscard]] NamedHandles::const_iterator find_handle(const NamedHandles& handles, std::uint64_t handle);

/// Driver objects that a graph shares with work outside the graph.
struct DeclaredHandles {
    NamedHandles events{};     ///< CUevent handles
    NamedHandles semaphores{}; ///< CUexternalSemaphore handles
    bool operator==(const DeclaredHandles&) const = default;
};

struct Interface {
    std::vector<RegionDecl> regions;
    std::vector<std::string> region_names;
    std::vector<NumberDecl> scalars;
    std::vector<ScalarRange> ranges; ///< in the order of `scalars`
    std::vector<NumberDecl> values;
    std::vector<NamedConstant> constants{}; ///< no guard checks the constants, and a call does not bind them

    /// Returns the text of a guard fact: "1 input, 1 output, 1 state, 38 weights; scalar position i32 [0, 255]". Lists
    /// the kinds in the order of the tensors; another guard holds the tensors' names.
    [[nodiscard]] std::string text() const;
    [[nodiscard]] std::optional<std::size_t> region(std::string_view name) const noexcept;
};

/// A call's arguments by position. Later calls reuse the frame, so that repeated calls allocate no memory.
struct Frame {
    std::vector<guards::TensorArg> tensors; ///< in the order of Interface::regions
    std::vector<MemoryRef> memory;          ///< in the order of Interface::regions
    std::vector<std::uint64_t> scalars, values;
    /// For ArgumentReader: the number of the read that filled this frame; 0: no read has filled it.
    std::uint64_t filled = 0;
};

/// Returns the constants that have memory in this process.
[[nodiscard]] std::vector<NamedMemory> named(const std::vector<NamedConstant>& constants);
/// Returns the sizes of a tensor as a vector.
[[nodiscard]] std::vector<std::int64_t> sizes_of(const guards::TensorArg& tensor);

} // namespace warmgraph
