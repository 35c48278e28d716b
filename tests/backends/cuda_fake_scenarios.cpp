#include "cuda_fake_scenario_parts.hpp"
#include "warmgraph/backends/compiler.hpp"
#include "warmgraph/backends/recording.hpp"

namespace warmgraph::backends::test {
namespace {

Result<void> opens(Device& device, const FakeCuda&)
{
    return device.facts().size() >= 8 ? Result<void>{} : fail(ErrorCode::internal, "{}: few facts", k_wrong);
}

Result<void> uses_memory(Device& device, const FakeCuda& fake)
{
    TAKE(memory, device.allocate(k_bytes));
    const OwnedMemory owned(device, memory);
    DO(device.upload(memory.address, all_of(7)));
    DO(expect_all(device, memory.address, 7));
    TAKE(host, device.allocate_host(k_bytes));
    const OwnedMemory owned_host(device, host);
    DO(device.upload(host.address, all_of(8)));
    const OtherUser user(fake);
    const auto current = device.enter();
    CUdeviceptr theirs = 0;
    CALL(user, cuMemAlloc, &theirs, std::size_t{k_bytes});
    const OwnedHandle made(theirs, fake.entry<decltype(::cuMemFree)>("cuMemFree"));
    static_cast<void>(device.space_of(Address::from_flat(theirs))); // if this fails, the library assumes device memory
    static_cast<void>(device.recording().is_handle(1));             // may fail: then 1 is assumed to be a handle
    if (device.free_memory() == 0)
        return fail(ErrorCode::internal, "{}: no memory is free", k_wrong); // or may fail: then all is free
    return expect_all(device, host.address, 8);
}

Result<void> reserves_shadows(Device& device, const FakeCuda&)
{
    TAKE(one, device.reserve_shadow(5ULL << 20));
    const OwnedMemory owned(device, one);
    TAKE(other, device.reserve_shadow(1000));
    const OwnedMemory owned_other(device, other);
    if (other.address.offset - one.address.offset < one.size)
        return fail(ErrorCode::internal, "{}: two shadows touch", k_wrong);
    TAKE(host, device.recording().reserve_host_shadow(k_bytes));
    const OwnedMemory owned_host(device, host);
    DO(device.upload(host.address, all_of(9)));
    return expect_all(device, host.address, 9);
}

Result<void> runs_kernels(Device& device, const FakeCuda&)
{
    TAKE(compiled, device.compiler().compile(warmgraph::test::k_fake_cuda_program, ""));
    TAKE(image, compiled->image());
    TAKE(loaded, device.load(image));
    TAKE(x, device.allocate(k_bytes));
    const OwnedMemory owned(device, x);
    TAKE(stream, device.create_stream());
    DO(stream->fill({x.address, Bytes(4), k_bytes}));
    DO(stream->launch(add_scalar(*compiled, x.address, 1)));
    DO(stream->launch(add_scalar(*loaded, x.address, 2)));
    TAKE(event, stream->record_event());
    TAKE(is_done, event->is_done());
    if (!is_done) return fail(ErrorCode::internal, "{}: work at once is not done", k_wrong);
    DO(stream->synchronize());
    return expect_all(device, x.address, 3);
}

/// A capture over two streams. The first kernel has attributes of the launch and of the function, which must not get
/// lost.
Result<RawGraph> capture(Device& device, Module& module, const Address& x, const Address& y, const Address& z)
{
    TAKE(stream, device.create_stream());
    TAKE(side, device.create_stream());
    RawKernel first = add_scalar(module, x, 1);
    first.attributes = {{8, Bytes(4, std::byte{0})}}; // CU_LAUNCH_ATTRIBUTE_PRIORITY
    first.attributes[0].value[0] = std::byte{2};
    first.shared_bytes = 100 * 1024;
    DO(stream->begin_capture());
    DO(stream->launch(first));
    TAKE(fork, stream->record_event());
    DO(side->wait(fork));
    DO(side->copy({x, y, k_bytes}));
    DO(stream->fill({z, Bytes(4), k_bytes}));
    TAKE(join, side->record_event());
    DO(stream->wait(join));
    DO(stream->launch(add_scalar(module, y, 10)));
    TAKE(graph, stream->end_capture());
    const auto* const kernel = graph.nodes.size() == 4 ? std::get_if<RawKernel>(&graph.nodes[0].work) : nullptr;
    const std::vector limit{FunctionAttribute{CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 100 * 1024}};
    if (kernel == nullptr || kernel->attributes != first.attributes || kernel->function_attributes != limit ||
        kernel->shared_bytes != first.shared_bytes || graph.nodes[3].dependencies.size() != 2)
        return fail(ErrorCode::internal, "{}: the graph lost something", k_wrong);
    return graph;
}

Result<void> captures(Device& device, const FakeCuda&)
{
    TAKE(module, device.compiler().compile(warmgraph::test::k_fake_cuda_program, ""));
    TAKE(memory, device.reserve_shadow(3 * k_bytes));
    const OwnedMemory owned(device, memory);
    const Address x = memory.address;
    TAKE(y, device.allocate(k_bytes));
    const OwnedMemory owned_too(device, y);
    TAKE(stream, device.create_stream());
    RawKernel larger = add_scalar(*module, y.address, 1);
    larger.shared_bytes = 150 * 1024; // needs a higher limit, which the captured launch must not get
    DO(stream->launch(larger));
    TAKE(graph, capture(device, *module, x, x + k_bytes, x + 2 * k_bytes));
    return graph.nodes.empty() ? fail(ErrorCode::internal, "{}: nothing captured", k_wrong) : Result<void>{};
}

Result<void> replays(Device& device, const FakeCuda&)
{
    TAKE(module, device.compiler().compile(warmgraph::test::k_fake_cuda_program, ""));
    TAKE(memory, device.allocate(4 * k_bytes));
    const OwnedMemory owned(device, memory);
    const Address x = memory.address, y = x + k_bytes, z = y + k_bytes, w = z + k_bytes;
    TAKE(graph, capture(device, *module, x, y, z));
    TAKE(captured, device.recording().instantiate_captured(graph));
    TAKE(exec, device.instantiate(graph));
    TAKE(stream, device.create_stream());
    DO(captured->launch(*stream));
    DO(stream->fill({x, Bytes(4, std::byte{1}), k_bytes})); // 0x01010101
    DO(exec->upload());
    DO(exec->launch(*stream));
    DO(exec->update(1, RawCopy{x, w, k_bytes}));
    DO(exec->update(2, RawFill{z, {std::byte{3}, {}, {}, {}}, k_bytes}));
    DO(exec->update(3, add_scalar(*module, w, 20)));
    DO(exec->launch(*stream));
    DO(stream->synchronize());
    DO(expect_all(device, y, 0x01010102 + 10)); // 0x01010102 comes from the first launch alone
    DO(expect_all(device, z, 3));
    return expect_all(device, w, 0x01010103 + 20);
}

Result<void> runs_host_and_event_nodes(Device& device, const FakeCuda&)
{
    int calls = 0;
    const auto count = [](void* data) { ++*static_cast<int*>(data); };
    TAKE(first, device.create_event());
    TAKE(second, device.create_event());
    RawGraph graph;
    graph.nodes = {{RawEventRecord{first->native()}, {}},
                   {RawHost{+count, &calls}, {0}},
                   {RawEventWait{first->native()}, {1}},
                   {RawEmpty{}, {2}}};
    TAKE(exec, device.instantiate(graph));
    TAKE(stream, device.create_stream());
    int others = 0;
    DO(exec->launch(*stream));
    DO(exec->update(0, RawEventRecord{second->native()}));
    DO(exec->update(1, RawHost{+count, &others}));
    DO(exec->update(2, RawEventWait{second->native()}));
    DO(exec->launch(*stream));
    DO(stream->synchronize());
    if (calls != 1 || others != 1)
        return fail(ErrorCode::internal, "{}: {} and {} calls of the host node", k_wrong, calls, others);
    return {};
}

/// Builds a graph with plain and programmatic edges in turn, on a driver that accepts only one kind in a call. While
/// the backend builds the graph, it reads the edges back.
Result<void> keeps_edge_data(Device& device, const FakeCuda&)
{
    constexpr EdgeData k_plain{}, k_programmatic{1, 0, 1};
    TAKE(module, device.compiler().compile(warmgraph::test::k_fake_cuda_program, ""));
    TAKE(memory, device.allocate(k_bytes));
    const OwnedMemory owned(device, memory);
    const RawKernel add = add_scalar(*module, memory.address, 1);
    RawGraph graph;
    graph.nodes = {{add, {}},
                   {add, {0}, {k_programmatic}},
                   {add, {0, 1}, {k_plain, k_programmatic}},
                   {add, {2}},
                   {add, {2, 3}, {k_programmatic, k_plain}}};
    DO(device.instantiate(graph));
    return {};
}

/// Runs a batch of memory operations between two fills. It waits for words of the first fill, and writes other words.
Result<void> runs_memory_operations(Device& device, const FakeCuda&)
{
    using enum MemoryOperationKind;
    TAKE(memory, device.allocate(2 * k_bytes));
    const OwnedMemory owned(device, memory);
    const Address x = memory.address, y = x + k_bytes;
    const auto batch = [&](const Address& to, std::uint64_t value) {
        return RawMemoryOperations{{{wait_32, x + 4, 7, CU_STREAM_WAIT_VALUE_EQ},
                                    {barrier, {}, 0, 0},
                                    {write_32, to, value, 0},
                                    {write_64, to + 8, value << 32U | value, 0}}};
    };
    RawGraph graph;
    graph.nodes = {{RawFill{x, {std::byte{7}, {}, {}, {}}, k_bytes}, {}}, {batch(x, 9), {0}}};
    TAKE(exec, device.instantiate(graph));
    TAKE(stream, device.create_stream());
    DO(stream->fill({y, {std::byte{6}, {}, {}, {}}, k_bytes}));
    DO(exec->launch(*stream));
    DO(exec->update(1, batch(y, 5)));
    DO(exec->launch(*stream));
    DO(stream->synchronize());
    DO(expect_all(device, x, 7)); // the fills stay, because the second launch writes to other memory
    std::vector<std::int32_t> written(5);
    DO(device.download(std::as_writable_bytes(std::span(written)), y));
    if (written == std::vector<std::int32_t>{5, 6, 5, 5, 6}) return {};
    return fail(ErrorCode::internal, "{}: {} and {} written", k_wrong, written[0], written[2]);
}

/// Waits for one semaphore and signals two. Then uses other semaphores with other values. Then captures the same work.
Result<void> runs_semaphores(Device& device, const FakeCuda& fake)
{
    const auto ready = fake.semaphore(5), shown = fake.semaphore(0), other = fake.semaphore(0);
    const auto handle = [](const std::shared_ptr<void>& one) { return reinterpret_cast<std::uintptr_t>(one.get()); };
    const auto wait = [&](std::uint64_t value) {
        return RawSemaphores{SemaphoreAction::wait, {{handle(ready), value, 0}}};
    };
    const auto signal = [&](const std::shared_ptr<void>& second, std::uint64_t value) {
        return RawSemaphores{SemaphoreAction::signal, {{handle(shown), value, 0}, {handle(second), value + 1, 0}}};
    };
    TAKE(memory, device.allocate(k_bytes));
    const OwnedMemory owned(device, memory);
    const RawFill fill{memory.address, {std::byte{3}, {}, {}, {}}, k_bytes};
    RawGraph graph;
    graph.nodes = {{wait(5), {}}, {fill, {0}}, {signal(ready, 6), {1}}};
    TAKE(exec, device.instantiate(graph));
    TAKE(stream, device.create_stream());
    DO(exec->launch(*stream)); // now `ready` is 7 and `shown` is 6
    DO(exec->update(0, wait(7)));
    DO(exec->update(2, signal(other, 8)));
    DO(exec->launch(*stream));
    DO(stream->synchronize());
    DO(expect_all(device, memory.address, 3));
    if (fake.value_of(ready) != 7 || fake.value_of(shown) != 8 || fake.value_of(other) != 9)
        return fail(ErrorCode::internal, "{}: {}, {} and {} signalled", k_wrong, fake.value_of(ready),
                    fake.value_of(shown), fake.value_of(other));
    const auto current = device.enter();
    DO(stream->begin_capture());
    auto* const semaphore = static_cast<CUexternalSemaphore>(shown.get());
    CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS params{};
    params.params.fence.value = 20;
    const CUresult status = fake.entry<decltype(::cuWaitExternalSemaphoresAsync)>("cuWaitExternalSemaphoresAsync")(
        &semaphore, &params, 1, static_cast<CUstream>(stream->native()));
    TAKE(read, stream->end_capture());
    if (status != CUDA_SUCCESS) // the status is the fault that the test injected
        return fail(status == CUDA_ERROR_OUT_OF_MEMORY ? ErrorCode::out_of_memory : ErrorCode::driver_failed,
                    "cuWaitExternalSemaphoresAsync failed: {}", static_cast<int>(status));
    const RawSemaphores expected{SemaphoreAction::wait, {{handle(shown), 20, 0}}};
    if (read.nodes.size() != 1 || read.nodes[0].work != RawWork{expected})
        return fail(ErrorCode::internal, "{}: the capture lost something", k_wrong);
    return {};
}

/// Enqueues fills of each width in one row and in several rows, and copies of several rows.
Result<void> enqueues_boxes(Device& device, const FakeCuda&)
{
    constexpr std::uint64_t k_row = 16, k_rows = k_bytes / (2 * k_row);
    TAKE(memory, device.allocate(2 * k_bytes));
    const OwnedMemory owned(device, memory);
    const Address x = memory.address, y = x + k_bytes;
    TAKE(stream, device.create_stream());
    for (const std::size_t width : {1U, 2U, 4U}) {
        const Bytes ones(width, std::byte{1}), twos(width, std::byte{2});
        DO(stream->fill({x, ones, k_bytes}));
        for (const std::uint64_t half : {std::uint64_t{0}, k_row})
            DO(stream->fill({x + half, twos, k_row, k_rows, 2 * k_row}));
        DO(stream->fill({y, ones, k_bytes}));
        for (const std::uint64_t half : {std::uint64_t{0}, k_row}) {
            RawCopy copy{x + half, y + half, k_row, k_rows};
            copy.source_pitch = copy.destination_pitch = {2 * k_row, k_bytes};
            DO(stream->copy(copy));
        }
        DO(stream->synchronize());
        DO(expect_all(device, y, 0x02020202));
    }
    return {};
}

} // namespace

std::vector<Scenario> scenarios()
{
    std::vector<Scenario> all{{"OpeningADevice", opens, 5},
                              {"UsingMemory", uses_memory, 5},
                              {"ReservingShadows", reserves_shadows, 5},
                              {"RunningKernels", runs_kernels, 10},
                              {"CapturingAForkAndAJoin", captures, 20},
                              {"InstantiatingUpdatingAndReplaying", replays, 30},
                              {"RunningHostAndEventNodes", runs_host_and_event_nodes, 10},
                              {"KeepingEdgeData", keeps_edge_data, 10},
                              {"RunningMemoryOperations", runs_memory_operations, 10},
                              {"RunningSemaphores", runs_semaphores, 10},
                              {"EnqueueingBoxes", enqueues_boxes, 10},
                              {"WorkingOnBulkMemory", works_on_bulk_memory, 30}};
    std::ranges::move(foreign_scenarios(), std::back_inserter(all));
    return all;
}

} // namespace warmgraph::backends::test
