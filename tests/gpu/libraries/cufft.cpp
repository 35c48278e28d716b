// Cases with cuFFT. Its plans are made once, and their tables are the library's own memory.
#include "library_case.hpp"

#ifdef WARMGRAPH_HAVE_CUFFT

#include <cufft.h>

namespace warmgraph::test::libraries {

namespace {

const Library& cufft()
{
    static const Library library{"libcufft.so.12", "libcufft.so.11", "libcufft.so"};
    return library;
}

struct Shape {
    std::vector<int> sizes;
    int batch = 1;
    [[nodiscard]] std::int64_t numbers() const
    {
        std::int64_t all = 2LL * batch; // number of complex values
        for (const int size : sizes) all *= size;
        return all;
    }
};

/// A forward transform from complex to complex, out of place. Its work area is declared as scratch; its tables stay in
/// cuFFT's own memory.
class Transform {
public:
    explicit Transform(Shape shape) : m_shape(std::move(shape))
    {
        WG_LIBRARY_CALL(cufft(), cufftCreate, &m_plan);
        WG_LIBRARY_CALL(cufft(), cufftSetAutoAllocation, m_plan, 0);
        WG_LIBRARY_CALL(cufft(), cufftMakePlanMany, m_plan, static_cast<int>(m_shape.sizes.size()),
                        m_shape.sizes.data(), nullptr, 1, 0, nullptr, 1, 0, CUFFT_C2C, m_shape.batch, &m_work_bytes);
    }
    void enqueue(Recorder& r) const
    {
        WG_LIBRARY_CALL(cufft(), cufftSetStream, m_plan, stream_of(r));
        WG_LIBRARY_CALL(cufft(), cufftSetWorkArea, m_plan, scratch(r, "work", m_work_bytes));
        WG_LIBRARY_CALL(cufft(), cufftExecC2C, m_plan, r["x"].pointer<cufftComplex>(), r["y"].pointer<cufftComplex>(),
                        CUFFT_FORWARD);
    }

private:
    Shape m_shape;
    cufftHandle m_plan = 0;
    std::size_t m_work_bytes = 0;
};

MakeCase transform(Shape shape)
{
    return [shape](const Device&) {
        Case described{.regions = {{"x", Kind::input, f32, shape.numbers()}, {"y", Kind::output, f32, shape.numbers()}},
                       .undeclared = Undeclared::constants};
        return with_work<Transform>(std::move(described), shape);
    };
}

} // namespace

void add_cufft_cases(Cases& all)
{
    all.add("cufft_1d_1024", transform({{1024}}));
    all.add("cufft_1d_1000_batched", transform({{1000}, 64}));
    all.add("cufft_2d_331x128", transform({{331, 128}})); // 331 is a prime, for which cuFFT uses Bluestein's algorithm
}

} // namespace warmgraph::test::libraries

#else

namespace warmgraph::test::libraries {
void add_cufft_cases(Cases& all) { all.leave_out("cuFFT", "cufft.h was not found at configure time"); }
} // namespace warmgraph::test::libraries

#endif
