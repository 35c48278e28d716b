// One entry of a cache folder with the bytes that it names, and where a process that restores it puts its memory.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "warmgraph/cachefmt/entry.hpp"

namespace warmgraph::bench {

struct EntryName {
    std::filesystem::path cache_dir;
    std::string model; ///< its name, or the whole folder's
    std::string function;
    std::string rank = "world1global_rank0";
    std::string digits{}; ///< the first of the entry's guards digest; empty where the function has one entry
};

struct StoredEntry {
    cachefmt::Entry entry;
    std::map<Digest, Bytes> images; ///< and contents of constants
};

/// Everything is read and verified; the folder is left as it is. std::runtime_error lists what there is where nothing, or more
/// than one entry, has that name.
[[nodiscard]] StoredEntry read_entry(const EntryName& name);

/// std::runtime_error with what a restore by hand does not know: another backend, other nodes than kernels, copies, fills and
/// empty ones.
void require_supported(const StoredEntry& stored);

/// "182 nodes (180 kernels of 12 functions, 2 copies), 240 edges, ..."
[[nodiscard]] std::string describe(const StoredEntry& stored);

/// The caller's regions are the first ones: inputs, outputs, states and weights, as many as the guards have tensors.
[[nodiscard]] std::size_t callers_regions(const cachefmt::Entry& entry) noexcept;

/// Where each region lies. Regions of the caller's that overlapped when they were recorded share an allocation, the entry's
/// scratch is one, as the library's.
struct MemoryPlan {
    struct Allocation {
        std::uint64_t size = 0; ///< bytes, at least 1
        std::uint64_t alignment = 1;
        cachefmt::MemorySpace space = cachefmt::MemorySpace::device;
    };
    struct Place {
        std::size_t allocation = 0;
        std::uint64_t offset = 0;
    };
    std::vector<Allocation> allocations; ///< the caller's first
    std::size_t callers = 0;             ///< how many are the caller's
    std::vector<Place> regions;          ///< as Graph::regions
};
[[nodiscard]] MemoryPlan plan_memory(const cachefmt::Entry& entry);

/// What a call is given for the scalar: 0, or what lies next to it in its declared range.
struct ScalarUse {
    std::string name;
    DType dtype = DType::i32;
    std::string low, high; ///< as the interface's text has them; empty where it says nothing
    std::uint64_t bits = 0;
};
[[nodiscard]] std::vector<ScalarUse> scalars_of(const cachefmt::Entry& entry);

} // namespace warmgraph::bench
