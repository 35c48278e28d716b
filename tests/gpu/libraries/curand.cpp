// Cases with cuRAND's host interface. The state of its generators is in the library's own memory, or is counted on the
// host.
#include "library_case.hpp"

#ifdef WARMGRAPH_HAVE_CURAND

#include <curand.h>

namespace warmgraph::test::libraries {

namespace {

constexpr std::int64_t k_count = 10'000;
constexpr unsigned long long k_seed = 1234;

const Library& curand()
{
    static const Library library{"libcurand.so.10", "libcurand.so"};
    return library;
}

enum class Start : std::uint8_t {
    each_call, ///< seed and offset are set in each call, so that each call gives the same numbers
    once,      ///< the numbers continue from call to call
};

class Generator {
public:
    Generator(curandRngType_t type, Start start) : m_start(start)
    {
        WG_LIBRARY_CALL(curand(), curandCreateGenerator, &m_generator, type);
        begin();
    }
    void enqueue(Recorder& r) const
    {
        WG_LIBRARY_CALL(curand(), curandSetStream, m_generator, stream_of(r));
        if (m_start == Start::each_call) begin();
        WG_LIBRARY_CALL(curand(), curandGenerateUniform, m_generator, r["y"].pointer<float>(),
                        static_cast<std::size_t>(k_count));
    }

private:
    void begin() const
    {
        WG_LIBRARY_CALL(curand(), curandSetPseudoRandomGeneratorSeed, m_generator, k_seed);
        WG_LIBRARY_CALL(curand(), curandSetGeneratorOffset, m_generator, 0ULL);
    }
    curandGenerator_t m_generator = nullptr;
    Start m_start;
};

MakeCase uniform(curandRngType_t type, Start start)
{
    return [type, start](const Device&) {
        Case described{.regions = {{"y", Kind::output, f32, k_count}}, .is_counting = start == Start::once};
        return with_work<Generator>(std::move(described), type, start);
    };
}

} // namespace

void add_curand_cases(Cases& all)
{
    all.add("curand_philox", uniform(CURAND_RNG_PSEUDO_PHILOX4_32_10, Start::each_call));
    all.add("curand_philox_going_on", uniform(CURAND_RNG_PSEUDO_PHILOX4_32_10, Start::once));
    all.add("curand_xorwow", uniform(CURAND_RNG_PSEUDO_XORWOW, Start::each_call));
    all.add("curand_xorwow_going_on", uniform(CURAND_RNG_PSEUDO_XORWOW, Start::once));
}

} // namespace warmgraph::test::libraries

#else

namespace warmgraph::test::libraries {
void add_curand_cases(Cases& all) { all.leave_out("cuRAND", "curand.h was not found at configure time"); }
} // namespace warmgraph::test::libraries

#endif
