// Cases with cuSPARSE: a CSR matrix times a vector, and times a dense matrix.
#include "library_case.hpp"

#ifdef WARMGRAPH_HAVE_CUSPARSE

#include <optional>

#include <cusparse.h>

namespace warmgraph::test::libraries {

namespace {

constexpr std::int64_t k_rows = 1000, k_columns = 800, k_per_row = 8, k_stored = k_rows * k_per_row, k_width = 32;
constexpr float k_one = 1, k_zero = 0;

const Library& cusparse()
{
    static const Library library{"libcusparse.so.12", "libcusparse.so.11", "libcusparse.so"};
    return library;
}

std::vector<std::int32_t> row_starts()
{
    std::vector<std::int32_t> starts;
    for (std::int64_t row = 0; row <= k_rows; ++row) starts.push_back(static_cast<std::int32_t>(row * k_per_row));
    return starts;
}

/// Column indices that rise within a row. Each row starts at another column.
std::vector<std::int32_t> column_indices()
{
    constexpr std::int64_t k_step = k_columns / k_per_row;
    std::vector<std::int32_t> columns;
    for (std::int64_t row = 0; row < k_rows; ++row)
        for (std::int64_t i = 0; i < k_per_row; ++i)
            columns.push_back(static_cast<std::int32_t>(i * k_step + row * 37 % k_step));
    return columns;
}

std::vector<Region> regions(std::int64_t width)
{
    return {{"starts", Kind::weights, i32, k_rows + 1, values(row_starts())},
            {"columns", Kind::weights, i32, k_stored, values(column_indices())},
            {"stored", Kind::weights, f32, k_stored},
            {"x", Kind::input, f32, k_columns * width},
            {"y", Kind::output, f32, k_rows * width}};
}

/// A descriptor for one call, because it contains addresses. Making it only needs the host.
template <class Handle>
class Described {
public:
    template <class Make, class... Args>
    Described(Make make, cusparseStatus_t (*destroy)(const std::remove_pointer_t<Handle>*), Args... args)
        : m_destroy(destroy)
    {
        expect_ok(make(&m_handle, args...), "cusparseCreate...");
    }
    Described(const Described&) = delete;
    Described& operator=(const Described&) = delete;
    ~Described() { m_destroy(m_handle); }
    operator Handle() const noexcept { return m_handle; } // NOLINT: it is passed in the handle's place

private:
    Handle m_handle = nullptr;
    cusparseStatus_t (*m_destroy)(const std::remove_pointer_t<Handle>*);
};

class Sparse {
public:
    Sparse() { WG_LIBRARY_CALL(cusparse(), cusparseCreate, &m_handle); }

protected:
    [[nodiscard]] cusparseHandle_t on(Recorder& r) const
    {
        WG_LIBRARY_CALL(cusparse(), cusparseSetStream, m_handle, stream_of(r));
        return m_handle;
    }
    [[nodiscard]] static Described<cusparseSpMatDescr_t> matrix(Recorder& r)
    {
        return {WG_FIND(cusparse(), cusparseCreateCsr),
                WG_FIND(cusparse(), cusparseDestroySpMat),
                k_rows,
                k_columns,
                k_stored,
                r["starts"].pointer(),
                r["columns"].pointer(),
                r["stored"].pointer(),
                CUSPARSE_INDEX_32I,
                CUSPARSE_INDEX_32I,
                CUSPARSE_INDEX_BASE_ZERO,
                CUDA_R_32F};
    }
    /// Scratch of the size that the library asks for. The size depends only on the shape, so it is requested once.
    template <class Ask>
    [[nodiscard]] void* buffer(Recorder& r, Ask ask)
    {
        if (!m_buffer_bytes) {
            std::size_t bytes = 0;
            ask(&bytes);
            m_buffer_bytes = bytes;
        }
        return scratch(r, "buffer", *m_buffer_bytes);
    }

private:
    cusparseHandle_t m_handle = nullptr;
    std::optional<std::size_t> m_buffer_bytes;
};

struct TimesVector : Sparse {
    void enqueue(Recorder& r)
    {
        const cusparseHandle_t handle = on(r);
        const auto a = matrix(r);
        const auto make = WG_FIND(cusparse(), cusparseCreateDnVec);
        const auto destroy = WG_FIND(cusparse(), cusparseDestroyDnVec);
        const Described<cusparseDnVecDescr_t> x{make, destroy, k_columns, r["x"].pointer(), CUDA_R_32F};
        const Described<cusparseDnVecDescr_t> y{make, destroy, k_rows, r["y"].pointer(), CUDA_R_32F};
        constexpr auto k_plain = CUSPARSE_OPERATION_NON_TRANSPOSE;
        constexpr auto k_algorithm = CUSPARSE_SPMV_CSR_ALG2; // this algorithm gives the same sums in each run
        void* const memory = buffer(r, [&](std::size_t* bytes) {
            WG_LIBRARY_CALL(cusparse(), cusparseSpMV_bufferSize, handle, k_plain, &k_one, a, x, &k_zero, y, CUDA_R_32F,
                            k_algorithm, bytes);
        });
        WG_LIBRARY_CALL(cusparse(), cusparseSpMV, handle, k_plain, &k_one, a, x, &k_zero, y, CUDA_R_32F, k_algorithm,
                        memory);
    }
};

struct TimesMatrix : Sparse {
    void enqueue(Recorder& r)
    {
        const cusparseHandle_t handle = on(r);
        const auto a = matrix(r);
        const auto make = WG_FIND(cusparse(), cusparseCreateDnMat);
        const auto destroy = WG_FIND(cusparse(), cusparseDestroyDnMat);
        const Described<cusparseDnMatDescr_t> x{make,    destroy,          k_columns,  k_width,
                                                k_width, r["x"].pointer(), CUDA_R_32F, CUSPARSE_ORDER_ROW};
        const Described<cusparseDnMatDescr_t> y{make,    destroy,          k_rows,     k_width,
                                                k_width, r["y"].pointer(), CUDA_R_32F, CUSPARSE_ORDER_ROW};
        constexpr auto k_plain = CUSPARSE_OPERATION_NON_TRANSPOSE;
        constexpr auto k_algorithm = CUSPARSE_SPMM_CSR_ALG2; // this algorithm is for row-major matrices
        void* const memory = buffer(r, [&](std::size_t* bytes) {
            WG_LIBRARY_CALL(cusparse(), cusparseSpMM_bufferSize, handle, k_plain, k_plain, &k_one, a, x, &k_zero, y,
                            CUDA_R_32F, k_algorithm, bytes);
        });
        WG_LIBRARY_CALL(cusparse(), cusparseSpMM, handle, k_plain, k_plain, &k_one, a, x, &k_zero, y, CUDA_R_32F,
                        k_algorithm, memory);
    }
};

} // namespace

void add_cusparse_cases(Cases& all)
{
    all.add("cusparse_spmv_csr", [](const Device&) { return with_work<TimesVector>(Case{.regions = regions(1)}); });
    all.add("cusparse_spmm_csr",
            [](const Device&) { return with_work<TimesMatrix>(Case{.regions = regions(k_width)}); });
}

} // namespace warmgraph::test::libraries

#else

namespace warmgraph::test::libraries {
void add_cusparse_cases(Cases& all) { all.leave_out("cuSPARSE", "cusparse.h was not found at configure time"); }
} // namespace warmgraph::test::libraries

#endif
