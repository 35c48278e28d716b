// Cases about a kernel's device code, and about the contents of the code's variables.
#include <array>

#include "../case.hpp"

namespace warmgraph::test {

namespace {

constexpr std::int64_t k_count = 4096;

std::vector<Memory> one_to_one()
{
    return {{"x", Memory::Kind::input, f32, k_count}, {"y", Memory::Kind::output, f32, k_count}};
}

std::vector<Memory> two_results()
{
    return {{"x", Memory::Kind::input, f32, k_count},
            {"y", Memory::Kind::output, f32, k_count},
            {"z", Memory::Kind::output, f32, k_count}};
}

void launch_on(Recorder& r, CUfunction function, const char* to)
{
    void *x = r["x"].pointer(), *y = r[to].pointer();
    Native::instance().launch(native_stream(r.stream()), function, k_count / 256, 256, {&x, &y});
}

Case equal_kernel_names()
{
    auto plus = std::make_shared<LazyModule>(
        R"(extern "C" __global__ void apply(const float* x, float* y) { int i = blockIdx.x * 256 + threadIdx.x; y[i] = x[i] + 3; })");
    auto times = std::make_shared<LazyModule>(
        R"(extern "C" __global__ void apply(const float* x, float* y) { int i = blockIdx.x * 256 + threadIdx.x; y[i] = x[i] * 5; })");
    return {.name = "two_modules_with_equal_kernel_names", .memory = two_results(), .work = [plus, times](Recorder& r) {
                launch_on(r, (*plus)["apply"], "y");
                launch_on(r, (*times)["apply"], "z");
            }};
}

constexpr const char* k_with_variables = R"(
__constant__ float factor = 1;
__device__ int offset;
extern "C" __global__ void apply(const float* x, float* y) { int i = blockIdx.x * 256 + threadIdx.x; y[i] = x[i] * factor + offset; })";

void set(CUmodule module, const char* name, const void* value)
{
    const Native& native = Native::instance();
    CUdeviceptr at = 0;
    std::size_t size = 0;
    native.check(native.driver().cuModuleGetGlobal(&at, &size, module, name), "cuModuleGetGlobal");
    native.check(native.driver().cuMemcpy(at, reinterpret_cast<CUdeviceptr>(value), size), "cuMemcpy");
}

/// Two modules that this process loaded from equal images, but whose variables differ.
struct Pair {
    CUmodule first = nullptr, second = nullptr;
    void load()
    {
        if (first != nullptr) return;
        const Native& native = Native::instance();
        const Bytes cubin = Native::compile(k_with_variables);
        first = native.load(cubin);
        second = native.load(cubin);
        const float two = 2, ten = 10;
        const int seven = 7, nine = 9;
        set(first, "factor", &two);
        set(first, "offset", &seven);
        set(second, "factor", &ten);
        set(second, "offset", &nine);
    }
};

Case one_image_with_two_states()
{
    auto pair = std::make_shared<Pair>();
    return {.name = "one_image_loaded_twice_with_other_variables",
            .memory = two_results(),
            .work =
                [pair](Recorder& r) {
                    pair->load();
                    launch_on(r, Native::instance().function(pair->first, "apply"), "y");
                    launch_on(r, Native::instance().function(pair->second, "apply"), "z");
                },
            .frozen_variables = {"*"}};
}

/// A variable that holds a pointer to memory of the call. A replay cannot update it, so the call is refused.
Case pointer_in_a_variable()
{
    auto code = std::make_shared<LazyModule>(R"(
__constant__ const float* table;
extern "C" __global__ void apply(const float* x, float* y) { int i = blockIdx.x * 256 + threadIdx.x; y[i] = x[i] + *table; })");
    auto memory = std::make_shared<CUdeviceptr>(0);
    return {.name = "pointer_in_a_constant",
            .memory = one_to_one(),
            .work =
                [code, memory](Recorder& r) {
                    const Native& native = Native::instance();
                    if (*memory == 0) {
                        native.check(native.driver().cuMemAlloc(memory.get(), 4096), "cuMemAlloc");
                        const float eleven = 11;
                        native.check(
                            native.driver().cuMemcpy(*memory, reinterpret_cast<CUdeviceptr>(&eleven), sizeof eleven),
                            "cuMemcpy");
                        set(code->module(), "table", memory.get());
                    }
                    launch_on(r, (*code)["apply"], "y");
                },
            .expected = Outcome::refused,
            .refusal = "table"};
}

/// The address of a module's variable is a parameter. The address differs in another process, and no replay can update
/// it.
Case address_of_a_variable()
{
    auto code = std::make_shared<LazyModule>(R"(
__device__ float table[4] = {1, 2, 3, 4};
extern "C" __global__ void apply(const float* x, float* y, const float* table) { int i = blockIdx.x * 256 + threadIdx.x; y[i] = x[i] + table[2]; })");
    return {.name = "address_of_a_variable",
            .memory = one_to_one(),
            .work =
                [code](Recorder& r) {
                    const Native& native = Native::instance();
                    CUdeviceptr table = 0;
                    native.check(native.driver().cuModuleGetGlobal(&table, nullptr, code->module(), "table"),
                                 "cuModuleGetGlobal");
                    void *x = r["x"].pointer(), *y = r["y"].pointer();
                    native.launch(native_stream(r.stream()), (*code)["apply"], k_count / 256, 256, {&x, &y, &table});
                },
            .expected = Outcome::refused,
            .refusal = "lies in no declared region"};
}

/// The call uses only one of many kernels: the stored image is cut down to this kernel and the functions that it calls.
Case one_of_many_kernels()
{
    std::string source = R"(
__device__ __noinline__ float twice(float v) { return v + v; }
__device__ __noinline__ float unused(float v) { return v * v * v; }
)";
    for (int i = 0; i < 60; ++i)
        source += "extern \"C\" __global__ void kernel" + std::to_string(i) +
                  "(const float* x, float* y) { int i = blockIdx.x * 256 + threadIdx.x; y[i] = " +
                  (i % 2 == 0 ? "twice" : "unused") + "(x[i]) + " + std::to_string(i) + "; }\n";
    auto code = std::make_shared<LazyModule>(source);
    return {.name = "one_of_many_kernels", .memory = two_results(), .work = [code](Recorder& r) {
                launch_on(r, (*code)["kernel32"], "y");
                launch_on(r, (*code)["kernel34"], "z");
            }};
}

constexpr const char* k_functions = R"(
typedef float (*Function)(float);
__device__ __noinline__ float add_one(float v) { return v + 1; }
__device__ __noinline__ float twice(float v) { return v + v; }
__device__ Function table[2] = {add_one, twice};
extern "C" __global__ void pointers(Function* to) { to[0] = add_one; to[1] = twice; }
extern "C" __global__ void by_pointer(const float* x, float* y, Function f) { int i = blockIdx.x * 256 + threadIdx.x; y[i] = f(x[i]); }
extern "C" __global__ void by_row(const float* x, float* y, int row) { int i = blockIdx.x * 256 + threadIdx.x; y[i] = table[row](x[i]); })";

/// The values that &add_one and &twice have in this module and this process.
std::array<std::uint64_t, 2> pointers_of(CUmodule module)
{
    const Native& native = Native::instance();
    CUdeviceptr memory = 0;
    std::array<std::uint64_t, 2> result{};
    native.check(native.driver().cuMemAlloc(&memory, sizeof result), "cuMemAlloc");
    native.launch(native.stream(), native.function(module, "pointers"), 1, 1, {&memory});
    native.check(native.driver().cuCtxSynchronize(), "cuCtxSynchronize");
    native.check(native.driver().cuMemcpy(reinterpret_cast<CUdeviceptr>(result.data()), memory, sizeof result),
                 "cuMemcpy");
    native.check(native.driver().cuMemFree(memory), "cuMemFree");
    return result;
}

void by_pointer(Recorder& r, CUmodule module, std::uint64_t function)
{
    void *x = r["x"].pointer(), *y = r["y"].pointer();
    const Native& native = Native::instance();
    native.launch(native_stream(r.stream()), native.function(module, "by_pointer"), k_count / 256, 256,
                  {&x, &y, &function});
}

/// In code that is compiled as a whole, a function pointer is a row number in the kernel's table. This is also true in
/// a cut image.
Case function_by_its_row()
{
    auto code = std::make_shared<LazyModule>(k_functions);
    auto function = std::make_shared<std::uint64_t>(0);
    return {
        .name = "function_pointer_of_a_whole_program", .memory = one_to_one(), .work = [code, function](Recorder& r) {
            if (*function == 0) *function = pointers_of(code->module())[1];
            by_pointer(r, code->module(), *function);
        }};
}

struct Linked {
    CUmodule module = nullptr;
    void load()
    {
        if (module == nullptr) module = Native::instance().load(Native::instance().compile_and_link(k_functions));
    }
};

/// After linking, a function pointer is an address. It is invalid in another process, and no replay can update it.
Case function_by_its_address()
{
    auto linked = std::make_shared<Linked>();
    auto function = std::make_shared<std::uint64_t>(0);
    return {.name = "function_pointer_of_a_linked_module",
            .memory = one_to_one(),
            .work =
                [linked, function](Recorder& r) {
                    linked->load();
                    if (*function == 0) *function = pointers_of(linked->module)[1];
                    by_pointer(r, linked->module, *function);
                },
            .expected = Outcome::refused,
            .refusal = "device function"};
}

/// The loader fills a table of functions in every process, but the library cannot see whether the table is written
/// later.
Case function_in_a_table()
{
    auto linked = std::make_shared<Linked>();
    return {.name = "function_in_a_table_of_a_linked_module",
            .memory = one_to_one(),
            .work =
                [linked](Recorder& r) {
                    linked->load();
                    void *x = r["x"].pointer(), *y = r["y"].pointer();
                    int row = 1;
                    const Native& native = Native::instance();
                    native.launch(native_stream(r.stream()), native.function(linked->module, "by_row"), k_count / 256,
                                  256, {&x, &y, &row});
                },
            .expected = Outcome::refused,
            .refusal = "addresses that the loader wrote"};
}

} // namespace

void add_module_cases(std::vector<std::pair<std::string, MakeCase>>& all)
{
    all.emplace_back("two_modules_with_equal_kernel_names", equal_kernel_names);
    all.emplace_back("one_image_loaded_twice_with_other_variables", one_image_with_two_states);
    all.emplace_back("pointer_in_a_constant", pointer_in_a_variable);
    all.emplace_back("address_of_a_variable", address_of_a_variable);
    all.emplace_back("one_of_many_kernels", one_of_many_kernels);
    all.emplace_back("function_pointer_of_a_whole_program", function_by_its_row);
    all.emplace_back("function_pointer_of_a_linked_module", function_by_its_address);
    all.emplace_back("function_in_a_table_of_a_linked_module", function_in_a_table);
}

} // namespace warmgraph::test
