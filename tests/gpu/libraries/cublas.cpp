// Cases with cuBLAS: factors in device memory, and batches whose matrices are given by strides or by tables of
// pointers.
#include "library_case.hpp"

#ifdef WARMGRAPH_HAVE_CUBLAS

#include <array>

#include <cublas_v2.h>

namespace warmgraph::test::libraries {

namespace {

constexpr std::size_t k_workspace = 32ULL << 20; // bytes; the size that cuBLAS's documentation recommends for Hopper
constexpr int k_side = 64, k_batch = 4;
constexpr std::int64_t k_matrix = std::int64_t{k_side} * k_side;
constexpr float k_one = 1, k_zero = 0;

const Library& cublas()
{
    static const Library library{"libcublas.so.13", "libcublas.so.12", "libcublas.so"};
    return library;
}

class Blas {
public:
    Blas() { WG_LIBRARY_CALL(cublas(), cublasCreate, &m_handle); }
    /// Returns the handle for the recorder's stream. The stream is set first, because cublasSetStream resets the
    /// handle's workspace.
    [[nodiscard]] cublasHandle_t on(Recorder& r) const
    {
        WG_LIBRARY_CALL(cublas(), cublasSetStream, m_handle, stream_of(r));
        WG_LIBRARY_CALL(cublas(), cublasSetWorkspace, m_handle, scratch(r, "workspace", k_workspace), k_workspace);
        return m_handle;
    }

private:
    cublasHandle_t m_handle = nullptr;
};

std::vector<Region> square_matrices(DType dtype, std::int64_t count)
{
    return {{"a", Kind::weights, dtype, count * k_matrix},
            {"b", Kind::input, dtype, count * k_matrix},
            {"c", Kind::output, dtype, count * k_matrix}};
}

/// c = alpha * a * b + beta * c. cuBLAS reads alpha and beta from device memory.
struct DeviceScalars : Blas {
    static Case described()
    {
        return {.regions = {{"a", Kind::weights, f32, k_matrix},
                            {"b", Kind::input, f32, k_matrix},
                            {"alpha", Kind::input, f32, 1},
                            {"beta", Kind::input, f32, 1},
                            {"c", Kind::state, f32, k_matrix}}};
    }
    void enqueue(Recorder& r) const
    {
        const cublasHandle_t handle = on(r);
        WG_LIBRARY_CALL(cublas(), cublasSetPointerMode, handle, CUBLAS_POINTER_MODE_DEVICE);
        WG_LIBRARY_CALL(cublas(), cublasSgemm, handle, CUBLAS_OP_N, CUBLAS_OP_N, k_side, k_side, k_side,
                        r["alpha"].pointer<float>(), r["a"].pointer<float>(), k_side, r["b"].pointer<float>(), k_side,
                        r["beta"].pointer<float>(), r["c"].pointer<float>(), k_side);
    }
};

/// y = a * x
struct MatrixVector : Blas {
    static constexpr int k_rows = 512, k_columns = 300;
    static Case described()
    {
        return {.regions = {{"a", Kind::weights, f32, std::int64_t{k_rows} * k_columns},
                            {"x", Kind::input, f32, k_columns},
                            {"y", Kind::output, f32, k_rows}}};
    }
    void enqueue(Recorder& r) const
    {
        WG_LIBRARY_CALL(cublas(), cublasSgemv, on(r), CUBLAS_OP_N, k_rows, k_columns, &k_one, r["a"].pointer<float>(),
                        k_rows, r["x"].pointer<float>(), 1, &k_zero, r["y"].pointer<float>(), 1);
    }
};

/// Products of f16 matrices that lie one after the other.
struct StridedBatch : Blas {
    static Case described() { return {.regions = square_matrices(f16, k_batch)}; }
    void enqueue(Recorder& r) const
    {
        // cublas_api.h overloads the function for C++, so its type is written here to choose one overload.
        using Multiply = cublasStatus_t (*)(cublasHandle_t, cublasOperation_t, cublasOperation_t, int, int, int,
                                            const void*, const void*, cudaDataType, int, long long, const void*,
                                            cudaDataType, int, long long, const void*, void*, cudaDataType, int,
                                            long long, int, cublasComputeType_t, cublasGemmAlgo_t);
        const auto multiply = cublas().find<Multiply>("cublasGemmStridedBatchedEx");
        expect_ok(multiply(on(r), CUBLAS_OP_N, CUBLAS_OP_N, k_side, k_side, k_side, &k_one, r["a"].pointer(),
                           CUDA_R_16F, k_side, k_matrix, r["b"].pointer(), CUDA_R_16F, k_side, k_matrix, &k_zero,
                           r["c"].pointer(), CUDA_R_16F, k_side, k_matrix, k_batch, CUBLAS_COMPUTE_32F,
                           CUBLAS_GEMM_DEFAULT),
                  "cublasGemmStridedBatchedEx");
    }
};

/// Contents: the addresses of the k_batch matrices in `region`.
Contents table_of(std::string region)
{
    return [region = std::move(region)](const AddressOf& address_of) {
        std::vector<std::uint64_t> table;
        for (int i = 0; i < k_batch; ++i)
            table.push_back(address_of(region) + static_cast<std::uint64_t>(i) * k_matrix * sizeof(float));
        return values(table)(address_of);
    };
}

std::vector<Region> with_tables(std::vector<Region> regions)
{
    for (const char* name : {"a", "b", "c"})
        regions.push_back({std::string{name} + "_table", Kind::weights, u64, k_batch, table_of(name)});
    return regions;
}

void multiply_batched(const Blas& blas, Recorder& r, const Address& a, const Address& b, const Address& c)
{
    using Multiply =
        cublasStatus_t (*)(cublasHandle_t, cublasOperation_t, cublasOperation_t, int, int, int, const void*,
                           const void* const*, cudaDataType, int, const void* const*, cudaDataType, int, const void*,
                           void* const*, cudaDataType, int, int, cublasComputeType_t, cublasGemmAlgo_t);
    const auto multiply = cublas().find<Multiply>("cublasGemmBatchedEx");
    expect_ok(multiply(blas.on(r), CUBLAS_OP_N, CUBLAS_OP_N, k_side, k_side, k_side, &k_one, a.pointer<const void*>(),
                       CUDA_R_32F, k_side, b.pointer<const void*>(), CUDA_R_32F, k_side, &k_zero, c.pointer<void*>(),
                       CUDA_R_32F, k_side, k_batch, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT),
              "cublasGemmBatchedEx");
}

/// The addresses of the matrices are in tables that the caller fills. No replay can update these tables, so the call
/// must be refused.
struct TablesOfTheCaller : Blas {
    static Case described() { return {.regions = with_tables(square_matrices(f32, k_batch))}; }
    void enqueue(Recorder& r) const { multiply_batched(*this, r, r["a_table"], r["b_table"], r["c_table"]); }
};

/// The way to avoid the refusal: a kernel of the callable writes the tables from its pointer parameters.
struct TablesOfAKernel : Blas {
    explicit TablesOfAKernel(Program writer) : m_writer(std::move(writer)) {}
    static Case described(const Program& writer)
    {
        return {.regions = square_matrices(f32, k_batch), .code = {writer}};
    }
    static Program writer(const Device& device)
    {
        return device.program("tables", R"(extern "C" __global__ void tables(float** to, float* from, unsigned stride)
            { to[threadIdx.x] = from + threadIdx.x * stride; })");
    }
    void enqueue(Recorder& r) const { multiply_batched(*this, r, table(r, "a"), table(r, "b"), table(r, "c")); }

private:
    Address table(Recorder& r, const std::string& region) const
    {
        const Address at = r.alloc(region + "_table", 256);
        r.stream().launch(m_writer, "tables", {.grid = {1}, .block = {k_batch}}, at, r[region],
                          static_cast<std::uint32_t>(k_matrix));
        return at;
    }
    Program m_writer;
};

/// Two groups of two products each, with different shapes. The caller's tables have the addresses.
struct Grouped : Blas {
    /// The results of the second group do not fill their matrices, so parts of the earlier contents stay.
    static Case described()
    {
        std::vector<Region> regions = square_matrices(f32, k_batch);
        regions.back().kind = Kind::state;
        return {.regions = with_tables(std::move(regions))};
    }
    void enqueue(Recorder& r) const
    {
        static constexpr std::array<cublasOperation_t, 2> plain{CUBLAS_OP_N, CUBLAS_OP_N};
        static constexpr std::array<int, 2> rows{k_side, k_side / 2}, columns{k_side, k_side},
            depth{k_side, k_side / 4};
        static constexpr std::array<int, 2> leading{k_side, k_side}, sizes{2, 2};
        static constexpr std::array<float, 2> alpha{1, 2}, beta{0, 0};
        WG_LIBRARY_CALL(cublas(), cublasGemmGroupedBatchedEx, on(r), plain.data(), plain.data(), rows.data(),
                        columns.data(), depth.data(), alpha.data(), r["a_table"].pointer<const void*>(), CUDA_R_32F,
                        leading.data(), r["b_table"].pointer<const void*>(), CUDA_R_32F, leading.data(), beta.data(),
                        r["c_table"].pointer<void*>(), CUDA_R_32F, leading.data(), static_cast<int>(sizes.size()),
                        sizes.data(), CUBLAS_COMPUTE_32F);
    }
};

template <class T>
MakeCase plain_case()
{
    return [](const Device&) { return with_work<T>(T::described()); };
}

} // namespace

void add_cublas_cases(Cases& all)
{
    all.add("cublas_sgemm_device_scalars", plain_case<DeviceScalars>());
    all.add("cublas_sgemv", plain_case<MatrixVector>());
    all.add("cublas_gemm_strided_batched", plain_case<StridedBatch>());
    all.add("cublas_gemm_batched_tables", plain_case<TablesOfTheCaller>());
    all.add("cublas_gemm_batched_tables_of_kernel", [](const Device& device) {
        const Program writer = TablesOfAKernel::writer(device);
        return with_work<TablesOfAKernel>(TablesOfAKernel::described(writer), writer);
    });
    all.add("cublas_gemm_grouped", plain_case<Grouped>());
}

} // namespace warmgraph::test::libraries

#else

namespace warmgraph::test::libraries {
void add_cublas_cases(Cases& all) { all.leave_out("cuBLAS", "cublas_v2.h was not found at configure time"); }
} // namespace warmgraph::test::libraries

#endif
