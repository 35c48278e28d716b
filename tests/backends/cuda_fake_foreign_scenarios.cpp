// Scenarios with work of other users of the driver, which the backend reads, registers and watches.
#include <type_traits>

#include "cuda_fake_scenario_parts.hpp"
#include "warmgraph/backends/compiler.hpp"
#include "warmgraph/backends/recording.hpp"

namespace warmgraph::backends::test {
namespace {

/// Reads a graph of another user of the driver. It has the kinds of nodes that no other scenario reads.
Result<void> reads_graphs_of_others(Device& device, const FakeCuda& fake)
{
    const OtherUser user(fake);
    const auto current = device.enter();
    TAKE(memory, device.allocate(k_bytes));
    const OwnedMemory owned(device, memory);
    TAKE(event, device.create_event());
    auto* const native_event = reinterpret_cast<CUevent>(static_cast<std::uintptr_t>(event->native()));
    const CUdeviceptr x = memory.address.flat();

    CUgraph graph = nullptr, child = nullptr;
    CALL(user, cuGraphCreate, &graph, 0U);
    const OwnedHandle made(graph, fake.entry<decltype(::cuGraphDestroy)>("cuGraphDestroy"));
    CALL(user, cuGraphCreate, &child, 0U);
    const OwnedHandle made_child(child, fake.entry<decltype(::cuGraphDestroy)>("cuGraphDestroy"));
    CUcontext context = nullptr;
    CALL(user, cuCtxGetCurrent, &context);
    CUgraphNode last = nullptr;
    const CUDA_MEMSET_NODE_PARAMS fill{x, 0, 3, 4, k_count, 1};
    CALL(user, cuGraphAddMemsetNode, &last, child, nullptr, std::size_t{0}, &fill, context);

    CUDA_MEM_ALLOC_NODE_PARAMS allocation{};
    allocation.bytesize = k_bytes;
    allocation.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    allocation.poolProps.location = {CU_MEM_LOCATION_TYPE_DEVICE, {0}};
    CALL(user, cuGraphAddMemAllocNode, &last, graph, nullptr, std::size_t{0}, &allocation);
    CALL(user, cuGraphAddMemFreeNode, &last, graph, &last, std::size_t{1}, allocation.dptr);
    CALL(user, cuGraphAddChildGraphNode, &last, graph, &last, std::size_t{1}, child);
    CALL(user, cuGraphAddEventRecordNode, &last, graph, &last, std::size_t{1}, native_event);
    CALL(user, cuGraphAddEventWaitNode, &last, graph, &last, std::size_t{1}, native_event);
    int calls = 0;
    const CUDA_HOST_NODE_PARAMS host{[](void* data) { ++*static_cast<int*>(data); }, &calls};
    CALL(user, cuGraphAddHostNode, &last, graph, &last, std::size_t{1}, &host);
    CUstreamBatchMemOpParams write{};
    write.writeValue = {CU_STREAM_MEM_OP_WRITE_VALUE_32, x, {5}, 0, 0};
    const CUDA_BATCH_MEM_OP_NODE_PARAMS batch{context, 1, &write, 0};
    CALL(user, cuGraphAddBatchMemOpNode, &last, graph, &last, std::size_t{1}, &batch);

    const auto semaphore = fake.semaphore(0);
    auto* handle = static_cast<CUexternalSemaphore>(semaphore.get());
    CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS value{};
    value.params.fence.value = 4;
    const CUDA_EXT_SEM_SIGNAL_NODE_PARAMS signal{&handle, &value, 1};
    CALL(user, cuGraphAddExternalSemaphoresSignalNode, &last, graph, &last, std::size_t{1}, &signal);

    TAKE(read, device.recording().read_graph(graph));
    const auto has = [&]<class Work>(std::type_identity<Work>) {
        return std::ranges::any_of(read.nodes,
                                   [](const RawNode& node) { return std::holds_alternative<Work>(node.work); });
    };
    if (!has(std::type_identity<RawFill>{}) || !has(std::type_identity<RawEventRecord>{}) ||
        !has(std::type_identity<RawEventWait>{}) || !has(std::type_identity<RawHost>{}) ||
        !has(std::type_identity<RawMemoryOperations>{}) || !has(std::type_identity<RawSemaphores>{}))
        return fail(ErrorCode::internal, "{}: the graph lost something", k_wrong);
    return {};
}

/// Reads variables of a module, and a module that another user of the driver loaded.
Result<void> reads_modules(Device& device, const FakeCuda& fake)
{
    const OtherUser user(fake);
    const auto current = device.enter();
    TAKE(module,
         device.compiler().compile(std::string(warmgraph::test::k_fake_cuda_program) + "variable table = 1 2 3\n", ""));
    TAKE(changed, module->changed_variables());
    if (!changed.empty()) return fail(ErrorCode::internal, "{}: a variable that nobody wrote", k_wrong);
    TAKE(image, module->image());
    CUmodule other = nullptr;
    CALL(user, cuModuleLoadData, &other, image.data());
    const OwnedHandle made(other, fake.entry<decltype(::cuModuleUnload)>("cuModuleUnload"));
    DO(device.register_module(other, image));
    const auto own = device.registered_modules();
    if (own.size() != 1) return fail(ErrorCode::internal, "{}: {} modules are registered", k_wrong, own.size());
    TAKE(stream, device.create_stream());
    RawKernel unknown = add_scalar(*own[0], {}, 1);
    unknown.kernel = "nobody"; // the error must list the kernels of the module
    if (stream->launch(unknown)) return fail(ErrorCode::internal, "{}: a kernel that is not there", k_wrong);
    TAKE(theirs, own[0]->changed_variables());
    return theirs.empty() ? Result<void>{} : fail(ErrorCode::internal, "{}: a variable that nobody wrote", k_wrong);
}

/// Enqueues work in another stream while a watch is active.
Result<void> watches(Device& device, const FakeCuda&)
{
    DO(device.recording().prepare_recording());
    TAKE(memory, device.allocate(k_bytes));
    const OwnedMemory owned(device, memory);
    TAKE(stream, device.create_stream());
    TAKE(other, device.create_stream());
    TAKE(watch, device.recording().watch_enqueues(*stream));
    DO(stream->fill({memory.address, Bytes(4), k_bytes}));
    if (watch->stray()) return fail(ErrorCode::internal, "{}: work that belongs is stray", k_wrong);
    DO(other->fill({memory.address, Bytes(4), k_bytes}));
    if (!watch->stray()) return fail(ErrorCode::internal, "{}: stray work is not seen", k_wrong);
    watch.reset();
    DO(other->synchronize());
    return stream->synchronize();
}

} // namespace

std::vector<Scenario> foreign_scenarios()
{
    return {{"ReadingGraphsOfOthers", reads_graphs_of_others, 10},
            {"ReadingModules", reads_modules, 10},
            {"WatchingEnqueues", watches, 10}};
}

} // namespace warmgraph::backends::test
