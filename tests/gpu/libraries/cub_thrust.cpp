// Cases with CUB and Thrust, whose kernels are in this program. Their temporary storage is declared as scratch.
#include "library_case.hpp"

#ifdef WARMGRAPH_HAVE_NVCC

#include "cub_thrust_kernels.hpp"

namespace warmgraph::test::libraries {

namespace {

constexpr int k_count = 100'000;
/// In bytes. A sort by Thrust needs room for a copy of the keys and some counters.
constexpr std::size_t k_thrust_bytes = 4ULL << 20;

/// The temporary storage of a CUB algorithm. A call without storage returns the size that it needs.
class Stored {
protected:
    template <class Run>
    void run(Recorder& r, Run algorithm)
    {
        if (!m_is_known) expect_ok(algorithm(m_temporary), "the question for CUB's storage");
        m_is_known = true;
        Temporary temporary{scratch(r, "temporary", m_temporary.bytes), m_temporary.bytes};
        expect_ok(algorithm(temporary), "CUB");
    }

private:
    bool m_is_known = false;
    Temporary m_temporary;
};

struct Sum : Stored {
    static Case described() { return {.regions = {{"x", Kind::input, f32, k_count}, {"y", Kind::output, f32, 1}}}; }
    void enqueue(Recorder& r)
    {
        run(r, [&](Temporary& temporary) {
            return cub_sum(temporary, r["x"].pointer<float>(), r["y"].pointer<float>(), k_count, stream_of(r));
        });
    }
};

struct RunningSum : Stored {
    static Case described()
    {
        return {.regions = {{"x", Kind::input, i32, k_count}, {"y", Kind::output, i32, k_count}}};
    }
    void enqueue(Recorder& r)
    {
        run(r, [&](Temporary& temporary) {
            return cub_running_sum(temporary, r["x"].pointer<std::int32_t>(), r["y"].pointer<std::int32_t>(), k_count,
                                   stream_of(r));
        });
    }
};

struct Sort : Stored {
    static Case described()
    {
        return {.regions = {{"keys", Kind::input, i32, k_count},
                            {"values", Kind::input, i32, k_count},
                            {"sorted_keys", Kind::output, i32, k_count},
                            {"sorted_values", Kind::output, i32, k_count}}};
    }
    void enqueue(Recorder& r)
    {
        const Pairs in{r["keys"].pointer<std::int32_t>(), r["values"].pointer<std::int32_t>()};
        const Pairs out{r["sorted_keys"].pointer<std::int32_t>(), r["sorted_values"].pointer<std::int32_t>()};
        run(r, [&](Temporary& temporary) { return cub_sort(temporary, in, out, k_count, stream_of(r)); });
    }
};

using ThrustCall = int (*)(const Temporary&, const float*, float*, int, CUstream_st*);

class Thrust {
public:
    explicit Thrust(ThrustCall call) : m_call(call) {}
    void enqueue(Recorder& r) const
    {
        const Temporary temporary{scratch(r, "temporary", k_thrust_bytes), k_thrust_bytes};
        expect_ok(m_call(temporary, r["x"].pointer<float>(), r["y"].pointer<float>(), k_count, stream_of(r)), "Thrust");
    }

private:
    ThrustCall m_call;
};

MakeCase thrust_case(ThrustCall call, std::int64_t results)
{
    return [call, results](const Device&) {
        Case described{.regions = {{"x", Kind::input, f32, k_count}, {"y", Kind::output, f32, results}}};
        return with_work<Thrust>(std::move(described), call);
    };
}

template <class T>
MakeCase plain_case()
{
    return [](const Device&) { return with_work<T>(T::described()); };
}

} // namespace

void add_cub_thrust_cases(Cases& all)
{
    all.add("cub_reduce", plain_case<Sum>());
    all.add("cub_scan", plain_case<RunningSum>());
    all.add("cub_radix_sort", plain_case<Sort>());
    all.add("thrust_sort", thrust_case(thrust_sort, k_count));
    all.add("thrust_transform_reduce", thrust_case(thrust_sum_of_squares, 1)); // waits for the stream, so it is refused
}

} // namespace warmgraph::test::libraries

#else

namespace warmgraph::test::libraries {
void add_cub_thrust_cases(Cases& all)
{
    all.leave_out("CUB and Thrust", "nvcc or libcudart_static was not found at configure time");
}
} // namespace warmgraph::test::libraries

#endif
