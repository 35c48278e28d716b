// Cases about launch attributes and forms of parameters.
#include <cstring>

#include "../case.hpp"

namespace warmgraph::test {

namespace {

constexpr std::int64_t k_count = 4096;

std::vector<Memory> one_to_one()
{
    return {{"x", Memory::Kind::input, f32, k_count}, {"y", Memory::Kind::output, f32, k_count}};
}

CUlaunchAttribute attribute(CUlaunchAttributeID id)
{
    CUlaunchAttribute result{};
    result.id = id;
    return result;
}

Case cluster_of_16()
{
    auto code = std::make_shared<LazyModule>(R"(
extern "C" __global__ void ranks(const float* x, float* y, int n) {
    unsigned rank, size;
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    asm volatile("mov.u32 %0, %%cluster_nctarank;" : "=r"(size));
    asm volatile("barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;" ::: "memory");
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i] + rank * 100 + size;
})");
    return {.name = "cluster_of_16", .memory = one_to_one(), .work = [code](Recorder& r) {
                const Native& native = Native::instance();
                CUfunction function = (*code)["ranks"];
                native.check(native.driver().cuFuncSetAttribute(function,
                                                                CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1),
                             "cuFuncSetAttribute");
                auto cluster = attribute(CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION);
                cluster.value.clusterDim = {16, 1, 1};
                void *x = r["x"].pointer(), *y = r["y"].pointer();
                int n = k_count;
                native.launch(native_stream(r.stream()), function, 64, 64, {&x, &y, &n}, 0, {cluster});
            }};
}

Case cooperative_grid_sync()
{
    auto code = std::make_shared<LazyModule>(R"(
extern "C" __global__ void neighbours(const float* x, float* y, float* between, unsigned* arrived, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    between[i] = 2 * x[i];
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) {
        atomicAdd(arrived, 1u);
        while (atomicAdd(arrived, 0u) < gridDim.x) {}
    }
    __syncthreads();
    y[i] = between[(i + 1237) % n];
})");
    return {.name = "cooperative_grid_sync", .memory = one_to_one(), .work = [code](Recorder& r) {
                const Native& native = Native::instance();
                auto cooperative = attribute(CU_LAUNCH_ATTRIBUTE_COOPERATIVE);
                cooperative.value.cooperative = 1;
                const Address arrived_at = r.alloc("arrived", 256);
                r.stream().zero(arrived_at, 256);
                void *x = r["x"].pointer(), *y = r["y"].pointer(), *between = r.alloc("between", k_count * 4).pointer(),
                     *arrived = arrived_at.pointer();
                int n = k_count;
                native.launch(native_stream(r.stream()), (*code)["neighbours"], k_count / 128, 128,
                              {&x, &y, &between, &arrived, &n}, 0, {cooperative});
            }};
}

Case pdl_chain()
{
    auto code = std::make_shared<LazyModule>(R"(
extern "C" __global__ void step(const float* x, float* y, int n) {
    asm volatile("griddepcontrol.wait;" ::: "memory");
    asm volatile("griddepcontrol.launch_dependents;");
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[(i + 1) % n] * 0.5f + y[i];
})");
    return {.name = "pdl_chain",
            .memory = {{"x", Memory::Kind::state, f32, k_count}, {"y", Memory::Kind::state, f32, k_count}},
            .work = [code](Recorder& r) {
                const Native& native = Native::instance();
                auto overlap = attribute(CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION);
                overlap.value.programmaticStreamSerializationAllowed = 1;
                void *x = r["x"].pointer(), *y = r["y"].pointer();
                int n = k_count;
                for (int i = 0; i < 16; ++i) {
                    std::vector<CUlaunchAttribute> attributes;
                    if (i > 0) attributes.push_back(overlap);
                    native.launch(native_stream(r.stream()), (*code)["step"], k_count / 256, 256,
                                  i % 2 == 0 ? std::vector<void*>{&x, &y, &n} : std::vector<void*>{&y, &x, &n}, 0,
                                  attributes);
                }
            }};
}

Case shared_memory_of_200_kib()
{
    auto code = std::make_shared<LazyModule>(R"(
extern __shared__ float tile[];
extern "C" __global__ void reverse(const float* x, float* y, int n) {
    for (int i = threadIdx.x; i < n; i += blockDim.x) tile[i * 12] = x[i];
    __syncthreads();
    for (int i = threadIdx.x; i < n; i += blockDim.x) y[i] = tile[(n - 1 - i) * 12];
})");
    return {.name = "shared_memory_of_200_kib", .memory = one_to_one(), .work = [code](Recorder& r) {
                const Native& native = Native::instance();
                CUfunction function = (*code)["reverse"];
                native.check(native.driver().cuFuncSetAttribute(
                                 function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 200 * 1024),
                             "cuFuncSetAttribute");
                native.check(native.driver().cuFuncSetAttribute(
                                 function, CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, 100),
                             "cuFuncSetAttribute");
                void *x = r["x"].pointer(), *y = r["y"].pointer();
                int n = k_count;
                native.launch(native_stream(r.stream()), function, 1, 256, {&x, &y, &n}, 200 * 1024);
            }};
}

Case priority_and_window()
{
    auto code = std::make_shared<LazyModule>(R"(
extern "C" __global__ void add_one(const float* x, float* y) { int i = blockIdx.x * blockDim.x + threadIdx.x; y[i] = x[i] + 1; })");
    return {.name = "priority_domain_and_access_policy_window", .memory = one_to_one(), .work = [code](Recorder& r) {
                const Native& native = Native::instance();
                auto priority = attribute(CU_LAUNCH_ATTRIBUTE_PRIORITY);
                priority.value.priority = -3;
                auto domain = attribute(CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN);
                domain.value.memSyncDomain = CU_LAUNCH_MEM_SYNC_DOMAIN_REMOTE;
                auto window = attribute(CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW);
                window.value.accessPolicyWindow.base_ptr = (r["x"] + 256).pointer();
                window.value.accessPolicyWindow.num_bytes = 4096;
                window.value.accessPolicyWindow.hitRatio = 1.0F;
                window.value.accessPolicyWindow.hitProp = CU_ACCESS_PROPERTY_PERSISTING;
                window.value.accessPolicyWindow.missProp = CU_ACCESS_PROPERTY_STREAMING;
                void *x = r["x"].pointer(), *y = r["y"].pointer();
                native.launch(native_stream(r.stream()), (*code)["add_one"], k_count / 256, 256, {&x, &y}, 0,
                              {priority, domain, window});
            }};
}

/// A struct of 8 KiB with two pointers in the middle: one to the end of x, and one to the start of y.
struct Big {
    std::int64_t before[500] = {};
    float* x_end = nullptr;
    float* y = nullptr;
    std::int32_t n = 0;
    std::int32_t after[40] = {};
};

Case pointers_in_a_big_struct()
{
    auto code = std::make_shared<LazyModule>(R"(
struct Big { long long before[500]; float* x_end; float* y; int n; int after[40]; };
extern "C" __global__ void backwards(__grid_constant__ const Big big) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < big.n) big.y[i] = big.x_end[-1 - i] + big.after[39] + (float)big.before[499];
})");
    return {.name = "pointers_in_a_struct_over_4_kib", .memory = one_to_one(), .work = [code](Recorder& r) {
                const Native& native = Native::instance();
                Big big;
                big.x_end = (r["x"] + k_count * 4).pointer<float>();
                big.y = r["y"].pointer<float>();
                big.n = k_count;
                big.after[39] = 7;
                big.before[499] = 9;
                native.launch(native_stream(r.stream()), (*code)["backwards"], k_count / 256, 256, {&big});
            }};
}

Case packed_parameters()
{
    auto code = std::make_shared<LazyModule>(R"(
extern "C" __global__ void scale(const float* x, float* y, float factor, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = factor * x[i];
})");
    return {.name = "packed_parameters", .memory = one_to_one(), .work = [code](Recorder& r) {
                const Native& native = Native::instance();
                struct Packed {
                    void *x, *y;
                    float factor;
                    std::int32_t n;
                } packed{r["x"].pointer(), r["y"].pointer(), 2.5F, k_count};
                std::size_t size = sizeof packed;
                void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &packed, CU_LAUNCH_PARAM_BUFFER_SIZE, &size,
                                 CU_LAUNCH_PARAM_END};
                CUlaunchConfig config{};
                config.gridDimX = k_count / 256;
                config.gridDimY = config.gridDimZ = config.blockDimY = config.blockDimZ = 1;
                config.blockDimX = 256;
                config.hStream = native_stream(r.stream());
                native.check(native.driver().cuLaunchKernelEx(&config, (*code)["scale"], nullptr, extra),
                             "cuLaunchKernelEx");
            }};
}

/// With TMA, the address of a tensor is inside an opaque map of 128 bytes, which the driver encodes.
Case tensor_map()
{
    auto code = std::make_shared<LazyModule>(R"(
struct alignas(64) Map { unsigned long long opaque[16]; };
extern "C" __global__ void load(__grid_constant__ const Map map, float* y) {
    __shared__ alignas(128) float tile[256];
    __shared__ unsigned long long barrier;
    unsigned at = (unsigned)__cvta_generic_to_shared(&barrier), to = (unsigned)__cvta_generic_to_shared(tile);
    if (threadIdx.x == 0) {
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" :: "r"(at));
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 1024;" :: "r"(at) : "memory");
        asm volatile("cp.async.bulk.tensor.1d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2}], [%3];"
                     :: "r"(to), "l"(&map), "r"((int)(blockIdx.x * 256)), "r"(at) : "memory");
    }
    __syncthreads();
    unsigned done = 0;
    while (!done)
        asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], 0; selp.u32 %0, 1, 0, p; }"
                     : "=r"(done) : "r"(at) : "memory");
    y[blockIdx.x * 256 + threadIdx.x] = tile[threadIdx.x] + 1;
})");
    return {.name = "tensor_map", .memory = one_to_one(), .work = [code](Recorder& r) {
                const Native& native = Native::instance();
                alignas(64) CUtensorMap map{};
                const cuuint64_t size = k_count, stride = k_count * 4;
                const cuuint32_t box = 256, step = 1;
                const auto encode = native.find<decltype(&cuTensorMapEncodeTiled)>("cuTensorMapEncodeTiled");
                native.check(encode(&map, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 1, r["x"].pointer(), &size, &stride, &box,
                                    &step, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_NONE,
                                    CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE),
                             "cuTensorMapEncodeTiled");
                void* y = r["y"].pointer();
                native.launch(native_stream(r.stream()), (*code)["load"], k_count / 256, 256, {&map, &y});
            }};
}

/// An integer has the value of an address in undeclared memory that is in use. The library takes it for a pointer and
/// refuses the call.
Case integer_like_an_address()
{
    auto code = std::make_shared<LazyModule>(R"(
extern "C" __global__ void low_bits(const float* x, float* y, unsigned long long number) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    y[i] = x[i] + (float)(number & 0);
})");
    auto hidden = std::make_shared<CUdeviceptr>(0);
    return {.name = "undeclared_memory",
            .memory = one_to_one(),
            .work =
                [code, hidden](Recorder& r) {
                    const Native& native = Native::instance();
                    if (*hidden == 0) native.check(native.driver().cuMemAlloc(hidden.get(), 1 << 20), "cuMemAlloc");
                    std::uint64_t number = *hidden + 128;
                    void *x = r["x"].pointer(), *y = r["y"].pointer();
                    native.launch(native_stream(r.stream()), (*code)["low_bits"], k_count / 256, 256,
                                  {&x, &y, &number});
                },
            .expected = Outcome::refused,
            .refusal = "lies in no declared region"};
}

Case declared_scalar()
{
    auto code = std::make_shared<LazyModule>(R"(
extern "C" __global__ void shift(const float* x, float* y, int position, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = i < position ? x[i] : -x[i];
})");
    return {.name = "declared_scalar",
            .memory = one_to_one(),
            .scalars = {scalar("position", i32, 0, 4096)},
            .scalar_values = {{"position", 1234}},
            .work = [code](Recorder& r) {
                void *x = r["x"].pointer(), *y = r["y"].pointer();
                int position = r.scalar<std::int32_t>("position"), n = k_count;
                Native::instance().launch(native_stream(r.stream()), (*code)["shift"], k_count / 256, 256,
                                          {&x, &y, &position, &n});
            }};
}

/// A random-number generator. Its seed is a declared scalar, and its counter is a state, which every call advances
/// (A12).
Case random_numbers()
{
    auto code = std::make_shared<LazyModule>(R"(
__device__ unsigned mix(unsigned v) { v ^= v >> 16; v *= 0x7feb352du; v ^= v >> 15; v *= 0x846ca68bu; return v ^ (v >> 16); }
extern "C" __global__ void draw(float* y, const unsigned* counter, int seed, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = (float)(mix(mix(seed + 0x9e3779b9u * *counter) + i) >> 8) * (1.0f / 16777216);
}
extern "C" __global__ void advance(unsigned* counter) { *counter += 1; })");
    return {.name = "random_numbers",
            .memory = {{"counter", Memory::Kind::state, i32, 1}, {"y", Memory::Kind::output, f32, k_count}},
            .scalars = {scalar("seed", i32, 0, 1'000'000)},
            .scalar_values = {{"seed", 4711}},
            .calls = 3,
            .work = [code](Recorder& r) {
                const Native& native = Native::instance();
                void *y = r["y"].pointer(), *counter = r["counter"].pointer();
                int seed = r.scalar<std::int32_t>("seed"), n = k_count;
                native.launch(native_stream(r.stream()), (*code)["draw"], k_count / 256, 256,
                              {&y, &counter, &seed, &n});
                native.launch(native_stream(r.stream()), (*code)["advance"], 1, 1, {&counter});
            }};
}

} // namespace

void add_kernel_cases(std::vector<std::pair<std::string, MakeCase>>& all)
{
    all.emplace_back("cluster_of_16", cluster_of_16);
    all.emplace_back("cooperative_grid_sync", cooperative_grid_sync);
    all.emplace_back("pdl_chain", pdl_chain);
    all.emplace_back("shared_memory_of_200_kib", shared_memory_of_200_kib);
    all.emplace_back("priority_domain_and_access_policy_window", priority_and_window);
    all.emplace_back("pointers_in_a_struct_over_4_kib", pointers_in_a_big_struct);
    all.emplace_back("packed_parameters", packed_parameters);
    all.emplace_back("tensor_map", tensor_map);
    all.emplace_back("undeclared_memory", integer_like_an_address);
    all.emplace_back("declared_scalar", declared_scalar);
    all.emplace_back("random_numbers", random_numbers);
}

} // namespace warmgraph::test
