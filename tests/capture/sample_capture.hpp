// A capture with one node of each kind, for the tests of the file format and for the fuzzer.
#pragma once

#include <cstring>

#include "warmgraph/capture/stored_capture.hpp"

namespace warmgraph::test {

/// The offset at which the fields begin in a capture's file, after the header.
inline constexpr std::size_t k_capture_fields = 56;

inline MemoryRef range_at(std::uint64_t flat, std::uint64_t size) { return {Address::from_flat(flat), size}; }

inline Bytes text_bytes(std::string_view text)
{
    const ByteView view = as_bytes(text);
    return {view.begin(), view.end()};
}

/// A capture with one node of each kind.
inline StoredCapture sample_capture()
{
    using namespace backends;
    StoredCapture capture;
    capture.key = {{"toy_static_cudagraphcache_12345678", "world1global_rank0", "f"}, sha256(as_bytes("guards"))};
    capture.process = "a process";
    capture.code = {sha256(as_bytes("one")), sha256(as_bytes("other"))};
    RawKernel kernel;
    kernel.kernel = "add";
    kernel.grid = {4, 3, 2};
    kernel.params = {{ParamKind::value, text_bytes("12345678"), {}, 0}, {ParamKind::local, {}, {}, 64}};
    kernel.shared_bytes = 1024;
    kernel.attributes = {{4, text_bytes("cluster")}};
    kernel.function_attributes = {{8, -1}};
    RawKernel packed = kernel;
    packed.packed = true;
    packed.params.resize(1);
    capture.kernel_modules = {1, 0};
    RawCopy copy{
        Address::from_flat(0x7f00'0000'0000), Address::from_flat(0x7f00'0000'1000), 64, 2, 1, {128, 0}, {64, 0}};
    copy.source_space = MemorySpace::host;
    const RawFill fill{Address::from_flat(0x7f00'0000'2000), text_bytes("zz"), 16, 2, 32};
    capture.graph.nodes = {{kernel, {}},
                           {packed, {0}, {EdgeData{1, 0, 1}}},
                           {copy, {0, 1}},
                           {fill, {}},
                           {RawEmpty{}, {3}},
                           {RawEventRecord{77}, {}},
                           {RawEventWait{78}, {}},
                           {RawHost{}, {}},
                           {RawMemoryOperations{{{MemoryOperationKind::write_64, Address::from_flat(4096), 9, 1}}}, {}},
                           {RawSemaphores{SemaphoreAction::wait, {{5, 6, 7}}}, {}}};
    capture.graph.allocations = {{range_at(0x7e00'0000'0000, 4096)}};
    capture.host_functions = {"on done"};
    capture.regions = {{"x", range_at(0x7f00'0000'0000, 256)}, {"nothing", {}}};
    capture.scratch = {{"pool0", range_at(0x7f00'1000'0000, 2 << 20)}};
    capture.free_blocks = {range_at(0x7f00'2000'0000, 512)};
    capture.scalars = {3};
    capture.handles = {{{"done", 77}}, {{"frame", 5}}};
    capture.live = {range_at(0x7f00'0000'0000, 2 << 20)};
    capture.host_words = {0x5555'0000'1234};
    return capture;
}

/// Seals a file whose bytes after the header were changed, so that its digest matches again.
inline Bytes sealed_capture(Bytes file)
{
    const ByteView fields = ByteView{file}.subspan(k_capture_fields);
    const auto size = static_cast<std::uint64_t>(fields.size());
    const Digest digest = sha256(fields);
    std::memcpy(file.data() + 16, &size, sizeof size);
    std::memcpy(file.data() + 24, digest.bytes.data(), sizeof digest);
    return file;
}

} // namespace warmgraph::test
