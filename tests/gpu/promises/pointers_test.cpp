// Promises about pointers that are not plain parameters: pointers in tables, halves of pointers, and pointers into the
// heap of device code.
#include "promise_fixture.hpp"

namespace warmgraph::test::pointers_test {
namespace {

constexpr const char* k_source = R"(
#define INDEX (static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x))
struct Halves { unsigned lo; int n; unsigned hi; };
extern "C" __global__ void gather(int* const* table, const int* x) { int i = INDEX; table[1][i] += table[0][i] + x[i]; }
extern "C" __global__ void join(Halves to, const int* x)
{
    int* y = reinterpret_cast<int*>((static_cast<unsigned long long>(to.hi) << 32) | to.lo);
    int i = INDEX;
    if (i < to.n) y[i] = x[i] + 1;
}
extern "C" __global__ void add_from(const int* x, const int* from, int* y) { int i = INDEX; y[i] = x[i] + from[i]; })";

struct Halves {
    std::uint32_t lo;
    std::int32_t n;
    std::uint32_t hi;
};

class PromisedPointers : public GpuPromise {
protected:
    [[nodiscard]] Buffer table_of(std::initializer_list<const Buffer*> buffers) const
    {
        std::vector<std::uint64_t> table;
        for (const Buffer* buffer : buffers) table.push_back(buffer->memory().address.flat());
        return device.upload<std::uint64_t>(table);
    }
    Program program = device.program("pointers", k_source);
};

TEST_F(PromisedPointers, WorkThroughADeclaredTableWorksOnceOnTheCallersMemory)
{
    enum class Declared : std::uint8_t { as_state, as_input };
    for (const Declared declared_as : {Declared::as_state, Declared::as_input})
        expect_refused(
            [this, declared_as](Cache& cache, CallResults& seen) {
                const Buffer x = words(5), a = words(1), y = filled(1), table = table_of({&a, &y});
                const bool is_state = declared_as == Declared::as_state;
                Spec declared = spec(program);
                declared.outputs.clear();
                if (is_state)
                    declared.states = {weights("table", table)};
                else
                    declared.inputs.push_back(input("table", u64, {2}));
                Function f = cache.wrap(is_state ? "table_state" : "table_input", device, declared, [&](Recorder& r) {
                    r.stream().launch(program, "gather", k_launch, r["table"], r["x"]);
                });
                std::vector<Arg> args{{"x", x}};
                if (!is_state) args.emplace_back("table", table);
                for (int i = 0; i < 4; ++i) call(seen, f, args, {&y, &a});
            },
            AllOf(HasSubstr("'table' holds at byte 0 the address"), HasSubstr("a replay cannot follow")));
}

TEST_F(PromisedPointers, ATableOfDeclaredRegionsIsRefusedByTheirNames)
{
    expect_refused(
        [this](Cache& cache, CallResults& seen) {
            const Buffer x = words(5), a = words(1), y = filled(1), table = table_of({&a, &y});
            Spec declared = spec(program);
            declared.outputs.clear();
            declared.states = {weights("table", table), state("target", y), weights("a", a)};
            Function f = cache.wrap("table_of_regions", device, declared, [&](Recorder& r) {
                r.stream().launch(program, "gather", k_launch, r["table"], r["x"]);
            });
            for (int i = 0; i < 4; ++i) call(seen, f, {{"x", x}}, {&y, &a});
        },
        AllOf(HasSubstr("'table' holds at byte"), AnyOf(HasSubstr("lies in 'a'"), HasSubstr("lies in 'target'"))));
}

TEST_F(PromisedPointers, WorkThroughAnUndeclaredTableWorksOnceOnTheCallersMemory)
{
    expect_refused(
        [this](Cache& cache, CallResults& seen) {
            const Buffer x = words(5), a = words(1), y = filled(1), table = table_of({&a, &y});
            Spec declared = spec(program);
            declared.outputs.clear();
            Function f = cache.wrap("table_undeclared", device, declared, [&](Recorder& r) {
                r.stream().launch(program, "gather", k_launch, table, r["x"]);
            });
            for (int i = 0; i < 4; ++i) call(seen, f, {{"x", x}}, {&y, &a});
        },
        HasSubstr("kernel gather"));
}

TEST_F(PromisedPointers, APointerInTwoHalvesWithANumberBetweenIsRefused)
{
    expect_refused(
        [this](Cache& cache, CallResults& seen) {
            const Buffer x = words(5), y = filled(-1);
            Function f = cache.wrap("halves", device, spec(program), [&](Recorder& r) {
                const std::uint64_t to = r["y"].flat();
                const Halves halves{static_cast<std::uint32_t>(to), k_count, static_cast<std::uint32_t>(to >> 32)};
                r.stream().launch(program, "join", k_launch, halves, r["x"]);
            });
            for (int i = 0; i < 4; ++i) call(seen, f, {{"x", x}, {"y", y}}, {&y});
        },
        HasSubstr("kernel join"));
}

constexpr const char* k_heap_source = R"(
extern "C" __global__ void make(int** where, int value)
{
    int* made = static_cast<int*>(malloc(256 * 4));
    for (int i = 0; i < 256; ++i) made[i] = value + i;
    *where = made;
}
extern "C" __global__ void use(const int* x, int* heap, int* y)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    y[i] = x[i] + heap[i];
    heap[i] += 1;
})";

/// Memory that device code allocated with malloc. The host reads its address.
class Heap {
public:
    Heap(const Native& native, const Device& device, const Code& code)
    {
        const Buffer where = device.allocate(8);
        void* at = where.memory().address.pointer();
        int value = 1000;
        native.launch(nullptr, code["make"], 1, 1, {&at, &value});
        native.check(native.driver().cuCtxSynchronize(), "cuCtxSynchronize");
        pointer = where.read<std::uint64_t>().front();
    }
    std::uint64_t pointer = 0;
};

TEST_F(PromisedPointers, APointerOfDeviceCodesHeapIsRefused)
{
    expect_refused(
        [this](Cache& cache, CallResults& seen) {
            const Code code{k_heap_source};
            const Heap heap{native, device, code};
            ASSERT_NE(heap.pointer, 0U);
            const Buffer x = words(5), y = filled(-1);
            Function f = cache.wrap("heap", device, plain_spec(), [&](Recorder& r) {
                void *from = r["x"].pointer(), *to = r["y"].pointer();
                std::uint64_t at = heap.pointer;
                launch(stream_of(r), code["use"], {&from, &at, &to});
            });
            for (int i = 0; i < 4; ++i) call(seen, f, {{"x", x}, {"y", y}}, {&y});
        },
        Not(IsEmpty()));
}

TEST_F(PromisedPointers, APointerOfTheHeapIsRefusedInKernelsOfOtherModulesToo)
{
    expect_refused(
        [this](Cache& cache, CallResults& seen) {
            const Code code{k_heap_source};
            const Heap heap{native, device, code};
            ASSERT_NE(heap.pointer, 0U);
            const Buffer x = words(5), y = filled(-1);
            Function f = cache.wrap("heap_elsewhere", device, spec(program), [&](Recorder& r) {
                r.stream().launch(program, "add_from", k_launch, r["x"], heap.pointer, r["y"]);
            });
            for (int i = 0; i < 4; ++i) call(seen, f, {{"x", x}, {"y", y}}, {&y});
        },
        Not(IsEmpty()));
}

} // namespace
} // namespace warmgraph::test::pointers_test
