// A capture that one process writes and another process reads as the second capture of its adoption. Its addresses
// belong to a process that has ended; they are only compared, never dereferenced.
//
// The file (docs/format.md): magic, version, size, SHA-256 of the rest; then the fields one after another. All
// functions are thread-safe.
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

inline constexpr std::uint64_t k_most_capture_bytes = 64ULL << 20U; ///< largest file

struct StoredCapture {
    cachefmt::EntryKey key; ///< key of the function and of the call that uses the capture's memory
    std::string process;    ///< random name of the process that wrote the capture
    /// The modules of kernels and the functions of host nodes are null.
    backends::RawGraph graph;
    std::vector<std::uint32_t> kernel_modules; ///< index into `code` for each kernel, in the order of the nodes
    std::vector<Digest> code;                  ///< digest of each module's image
    std::vector<std::string> host_functions;   ///< registered name of each host node's function, in node order
    std::vector<NamedMemory> regions;          ///< declared regions, in the interface's order
    std::vector<NamedMemory> scratch;
    std::vector<MemoryRef> free_blocks; ///< as CapturedGraph::free_blocks
    std::vector<std::uint64_t> scalars; ///< in the order of Interface::scalars
    DeclaredHandles handles;
    /// Facts about the words in the graph that look like addresses: the live device allocations that they lie in, and
    /// the words that were addresses of ordinary host memory. Both are sorted by address.
    std::vector<MemoryRef> live;
    std::vector<std::uint64_t> host_words;
    bool operator==(const StoredCapture&) const = default;
};

/// This process's StoredCapture::process. A forked child has its parent's name, because it has the same addresses.
[[nodiscard]] const std::string& process_name();
[[nodiscard]] Bytes encode(const StoredCapture& capture);
/// stale: a newer format. corrupt: any other fault. No count in the bytes is trusted.
[[nodiscard]] Result<StoredCapture> decode_capture(ByteView bytes);

} // namespace warmgraph
