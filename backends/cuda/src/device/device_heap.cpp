#include "device/device_heap.hpp"

#include "device/memory.hpp"
#include "warmgraph/base/log.hpp"

namespace warmgraph::backends::cuda {
namespace {

// __global__ void warmgraph_find_heap(unsigned long long* found): stores malloc(16) in *found and frees it. Compiled by
// nvcc 13.0 for compute_75; .version is the oldest that supports it (PTX ISA, "Release Notes").
constexpr const char* k_ptx = R"ptx(
.version 6.4
.target sm_70
.address_size 64
.extern .func (.param .b64 func_retval0) malloc (.param .b64 malloc_param_0);
.extern .func free (.param .b64 free_param_0);
.visible .entry warmgraph_find_heap(.param .u64 found)
{
	.reg .b64 %rd<4>;
	ld.param.u64 %rd1, [found];
	cvta.to.global.u64 %rd2, %rd1;
	{
	.param .b64 param0;
	st.param.b64 [param0+0], 16;
	.param .b64 retval0;
	call.uni (retval0), malloc, (param0);
	ld.param.b64 %rd3, [retval0+0];
	}
	st.global.u64 [%rd2], %rd3;
	{
	.param .b64 param0;
	st.param.b64 [param0+0], %rd3;
	call.uni free, (param0);
	}
	ret;
}
)ptx";

} // namespace

DeviceHeap::~DeviceHeap()
{
    if (m_module == nullptr) return;
    const CurrentContext context(m_core);
    const Driver& driver = *m_core.driver;
    if (auto done = driver.call("cuModuleUnload", driver.cuModuleUnload, m_module); !done)
        log().warn("cannot unload the kernel that finds the heap: {}", done.error().message);
}

Result<void> DeviceHeap::load()
{
    if (m_module != nullptr) return {};
    const Driver& driver = *m_core.driver;
    auto loaded = driver.call("cuModuleLoadData", driver.cuModuleLoadData, &m_module, static_cast<const void*>(k_ptx));
    if (!loaded) m_module = nullptr;
    return loaded;
}

Result<std::uint64_t> DeviceHeap::ask()
{
    const Driver& driver = *m_core.driver;
    CUfunction function = nullptr;
    if (auto found =
            driver.call("cuModuleGetFunction", driver.cuModuleGetFunction, &function, m_module, "warmgraph_find_heap");
        !found)
        return std::unexpected(found.error());
    CUdeviceptr place = 0;
    if (auto made = driver.call("cuMemAlloc", driver.cuMemAlloc, &place, sizeof(std::uint64_t)); !made)
        return std::unexpected(made.error());
    std::uint64_t found = 0;
    void* params[] = {&place};
    CUlaunchConfig config{};
    config.gridDimX = config.gridDimY = config.gridDimZ = 1;
    config.blockDimX = config.blockDimY = config.blockDimZ = 1;
    config.hStream = CU_STREAM_PER_THREAD; // waits for no other stream
    auto done = driver.call("cuLaunchKernelEx", driver.cuLaunchKernelEx, &config, function, params,
                            static_cast<void**>(nullptr));
    if (done) done = driver.call("cuStreamSynchronize", driver.cuStreamSynchronize, CUstream{CU_STREAM_PER_THREAD});
    if (done) done = transfer(m_core, reinterpret_cast<CUdeviceptr>(&found), place, sizeof found);
    auto freed = driver.call("cuMemFree", driver.cuMemFree, place);
    if (!done) return std::unexpected(done.error());
    if (!freed) return std::unexpected(freed.error());
    return found;
}

Result<MemoryRef> DeviceHeap::find()
{
    const std::scoped_lock lock(m_mutex);
    if (m_known) return *m_known;
    const CurrentContext context(m_core);
    const OutsideCapture outside(m_core);
    if (auto loaded = load(); !loaded) return std::unexpected(loaded.error());
    const auto inside = ask();
    if (!inside) return std::unexpected(inside.error());
    if (*inside == 0)
        return fail(ErrorCode::out_of_memory,
                    "the heap of malloc in device code is full: raise CU_LIMIT_MALLOC_HEAP_SIZE");
    const std::uint64_t size = m_core.malloc_heap, start = *inside > size ? *inside - size : 1;
    return *(m_known = MemoryRef{Address::from_flat(start), *inside + size - start});
}

} // namespace warmgraph::backends::cuda
