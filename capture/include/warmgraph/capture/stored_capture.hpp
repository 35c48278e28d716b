// A capture that one process writes and another process reads as the second capture of its adoption. Its addresses
// belong to a process that has ended; they are only compared, never dereferenced.
//
// The file (docs/format.md) begins with magic, version, size, and the SHA-256 of the rest. The fields follow one after
// another. All functions are thread-safe.
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

inline constexpr std::uint64_t k_most_capture_bytes = 64ULL << 20U; ///< the largest allowed size of a file

struct StoredCapture {
    cachefmt::EntryKey key; ///< key of the function and of the call that uses the capture's memory
    std::string process;    ///< random name of the process that wrote the capture
    /// The modules of kernels and the functions of host nodes are null.
    backends::RawGraph graph;
    std::vector<std::uint32_t> kernel_modules; ///< for each kernel, in the order of the nodes: index into `code`
    std::vector<Digest> code;                  ///< digest of each module's image
    std::vector<std::string> host_functions;   ///< registered name of each host node's function, in node order
    std::vector<NamedMemory> regions;          ///< declared regions, in the interface's order
    std::vector<NamedMemory> scratch;
    std::vector<MemoryRef> free_blocks; ///< as CapturedGraph::free_blocks
    std::vector<std::uint64_t> scalars; ///< in the order of Interface::scalars
    DeclaredHandles handles;
    /// Facts about the words in the graph that look like addresses. `live`: the device allocations in which such words
    /// lie. `host_words`: such words that are addresses of ordinary host memory. Both are sorted by address.
    std::vector<MemoryRef> live;
    std::vector<std::uint64_t> host_words;
    bool operator==(const StoredCapture&) const = default;
};

/// Returns the random name of this process, for StoredCapture::process. A forked child has its parent's name, because
/// it has the same addresses.
[[nodiscard]] const std::string& process_name();
[[nodiscard]] Bytes encode(const StoredCapture& capture);
/// Decodes a capture. Errors: stale if the format is newer, corrupt for any other fault. Does not trust the counts in
/// the bytes.
[[nodiscard]] Result<StoredCapture> decode_capture(ByteView bytes);

} // namespace warmgraph
