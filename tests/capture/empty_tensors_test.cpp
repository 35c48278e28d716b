// Tensors without elements: most frameworks give them no memory.
#include "cuda_facade_fixture.hpp"

namespace warmgraph::test::empty_tensors_test {
namespace {

class EmptyTensors : public CudaFacade {
protected:
    /// The function y = x + 1, and "more" += 1. A kernel gets the pointer of "more" even when this pointer is null.
    Function add_to_both(Cache& cache) const
    {
        Spec with = spec();
        with.outputs.push_back(output("more", i32, {k_count}));
        return cache.wrap("f", device, with, [this](Recorder& r) {
            const Launch launch{.grid = {2}, .block = {128}};
            r.stream().copy(r["y"], r["x"], k_bytes);
            r.stream().launch(program, "add_scalar", launch, r["y"], int32_t{1}, int32_t{k_count});
            r.stream().launch(program, "add_scalar", launch, r["more"], int32_t{1},
                              static_cast<int32_t>(r.sizes("more")[0]));
        });
    }
    Outcome call_with(Function& f, const Tensor& more) const
    {
        const Buffer x = numbers(5), y = device.allocate(k_bytes);
        const Outcome outcome = f({{"x", x}, {"y", y}, {"more", more}});
        EXPECT_EQ(read(y), counting(6)) << f.report().reason;
        return outcome;
    }
};

TEST_F(EmptyTensors, NeedNoMemoryToBeRecordedAndReplayed)
{
    const Tensor none{MemoryRef{}, i32, {0}, {}};
    const Buffer some = numbers(1);
    {
        Cache cache{options()};
        Function f = add_to_both(cache);
        EXPECT_EQ(call_with(f, none), Outcome::recorded) << f.report().reason;
        EXPECT_EQ(call_with(f, none), Outcome::replayed) << f.report().reason;
    }
    Cache cache{options(Policy::require_hit)};
    Function f = add_to_both(cache);
    EXPECT_EQ(call_with(f, none), Outcome::replayed);
    EXPECT_EQ(call_with(f, Tensor{some, i32, {0}, {}}), Outcome::replayed) << "its address says nothing";
    EXPECT_EQ(call_with(f, Tensor{MemoryRef{some.memory().address + 4, 4}, i32, {0}, {}}), Outcome::replayed);
    EXPECT_EQ(read(some), counting(1));
}

TEST_F(EmptyTensors, AreNotTheOnesWithElements)
{
    Cache cache{options()};
    Function f = add_to_both(cache);
    const Buffer some = numbers(1);
    EXPECT_EQ(call_with(f, Tensor{some, i32, {k_count}, {}}), Outcome::recorded) << f.report().reason;
    EXPECT_EQ(read(some), counting(2));
    EXPECT_EQ(call_with(f, Tensor{some, i32, {0}, {}}), Outcome::recorded) << f.report().reason;
    EXPECT_EQ(read(some), counting(2));
    EXPECT_THAT(message_of(thrown_by([&] { call_with(f, Tensor{MemoryRef{}, i32, {k_count}, {}}); })),
                HasSubstr("'more' has no memory, expected 1024 bytes"));
}

} // namespace
} // namespace warmgraph::test::empty_tensors_test
