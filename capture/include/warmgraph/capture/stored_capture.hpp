// A capture that one process writes and another one reads, as the second capture of its adoption. The addresses in it
// are those of a process that is gone: numbers to compare with, which nothing ever follows.
//
// The file (docs/format.md): magic, version, size, SHA-256 of the rest; then fields one after the other. Thread-safe, all
// functions.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "warmgraph/backends/raw_graph.hpp"
#include "warmgraph/base/bytes.hpp"
#include "warmgraph/base/error.hpp"
#include "warmgraph/base/sha256.hpp"
#include "warmgraph/cachefmt/key.hpp"
#include "warmgraph/capture/interface.hpp"

namespace warmgraph {

inline constexpr std::uint64_t k_most_capture_bytes = 64ULL << 20U; ///< of a file

struct StoredCapture {
    cachefmt::EntryKey key; ///< of the function and the call that the capture's memory makes
    std::string process;    ///< a random name of the process that wrote it
    /// Kernels have no module, host nodes no function.
    backends::RawGraph graph;
    std::vector<std::uint32_t> kernel_modules; ///< of each kernel in the order of the nodes: index into `code`
    std::vector<Digest> code;                  ///< of each module: the image that the graph needs of it
    std::vector<std::string> host_functions;   ///< of each host node in the order of the nodes: its registered name
    std::vector<NamedMemory> regions;          ///< declared ones, in the interface's order
    std::vector<NamedMemory> scratch;
    std::vector<MemoryRef> free_blocks; ///< as CapturedGraph::free_blocks
    std::vector<std::uint64_t> scalars; ///< as Interface::scalars
    DeclaredHandles handles;
    /// What the process said of words in the graph that look like addresses: the live allocations of the device's that
    /// they lie in, and those words that were ordinary host memory. By address.
    std::vector<MemoryRef> live;
    std::vector<std::uint64_t> host_words;
    bool operator==(const StoredCapture&) const = default;
};

/// StoredCapture::process of what this process writes. A child that was forked has its parent's: the same addresses.
[[nodiscard]] const std::string& process_name();
[[nodiscard]] Bytes encode(const StoredCapture& capture);
/// stale: a newer format. corrupt: anything else that is wrong; no count in the bytes is believed.
[[nodiscard]] Result<StoredCapture> decode_capture(ByteView bytes);

} // namespace warmgraph
