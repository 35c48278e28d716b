// Cases with cuBLASLt: bf16, a bias as epilogue, and 8-bit floats with scales in device memory.
#include "library_case.hpp"

#ifdef WARMGRAPH_HAVE_CUBLASLT

#include <cublasLt.h>

namespace warmgraph::test::libraries {

namespace {

constexpr std::size_t k_workspace = 32ULL << 20; // bytes
constexpr std::uint64_t k_m = 128, k_n = 64, k_k = 256;

const Library& cublaslt()
{
    static const Library library{"libcublasLt.so.13", "libcublasLt.so.12", "libcublasLt.so"};
    return library;
}

enum class Flavour : std::uint8_t { plain, bias, fp8 };

/// d = transposed a * b, in column-major order. It uses the first algorithm that the heuristics return.
class Product {
public:
    explicit Product(Flavour flavour) : m_flavour(flavour)
    {
        WG_LIBRARY_CALL(cublaslt(), cublasLtCreate, &m_handle);
        WG_LIBRARY_CALL(cublaslt(), cublasLtMatmulDescCreate, &m_operation, CUBLAS_COMPUTE_32F, CUDA_R_32F);
        set(CUBLASLT_MATMUL_DESC_TRANSA, CUBLAS_OP_T); // the only form of this product that Hopper has for 8-bit floats
        const cudaDataType in = flavour == Flavour::fp8 ? CUDA_R_8F_E4M3 : CUDA_R_16BF;
        m_a = layout(in, k_k, k_m);
        m_b = layout(in, k_k, k_n);
        m_c = layout(CUDA_R_16BF, k_m, k_n);
        m_d = layout(in, k_m, k_n);
        if (flavour == Flavour::bias) set(CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_BIAS);
    }
    void enqueue(Recorder& r)
    {
        // The descriptor contains addresses, so it gets those of this run.
        if (m_flavour == Flavour::bias) set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, r["bias"].pointer());
        if (m_flavour == Flavour::fp8) {
            set(CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, r["scale_a"].pointer());
            set(CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, r["scale_b"].pointer());
            set(CUBLASLT_MATMUL_DESC_D_SCALE_POINTER, r["scale_d"].pointer());
        }
        if (!m_is_chosen) choose();
        const float one = 1, zero = 0;
        // beta is zero, so c is not read. An 8-bit result cannot also be c, so fp8 passes a bf16 matrix.
        void* const c = m_flavour == Flavour::fp8 ? r["c"].pointer() : r["d"].pointer();
        WG_LIBRARY_CALL(cublaslt(), cublasLtMatmul, m_handle, m_operation, &one, r["a"].pointer(), m_a,
                        r["b"].pointer(), m_b, &zero, c, m_c, r["d"].pointer(), m_d, &m_algorithm,
                        scratch(r, "workspace", k_workspace), k_workspace, stream_of(r));
    }

private:
    template <class T>
    void set(cublasLtMatmulDescAttributes_t attribute, const T& value)
    {
        WG_LIBRARY_CALL(cublaslt(), cublasLtMatmulDescSetAttribute, m_operation, attribute, &value, sizeof value);
    }
    static cublasLtMatrixLayout_t layout(cudaDataType type, std::uint64_t rows, std::uint64_t columns)
    {
        cublasLtMatrixLayout_t made = nullptr;
        WG_LIBRARY_CALL(cublaslt(), cublasLtMatrixLayoutCreate, &made, type, rows, columns,
                        static_cast<std::int64_t>(rows));
        return made;
    }
    void choose()
    {
        cublasLtMatmulPreference_t preference = nullptr;
        WG_LIBRARY_CALL(cublaslt(), cublasLtMatmulPreferenceCreate, &preference);
        WG_LIBRARY_CALL(cublaslt(), cublasLtMatmulPreferenceSetAttribute, preference,
                        CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &k_workspace, sizeof k_workspace);
        cublasLtMatmulHeuristicResult_t result{};
        int found = 0;
        const auto ask = WG_FIND(cublaslt(), cublasLtMatmulAlgoGetHeuristic);
        const cublasStatus_t status = ask(m_handle, m_operation, m_a, m_b, m_c, m_d, preference, 1, &result, &found);
        if (status == CUBLAS_STATUS_NOT_SUPPORTED || (status == CUBLAS_STATUS_SUCCESS && found == 0))
            throw Lacking("cuBLASLt has no algorithm for these types on this device");
        expect_ok(status, "cublasLtMatmulAlgoGetHeuristic");
        m_algorithm = result.algo;
        m_is_chosen = true;
    }

    Flavour m_flavour;
    cublasLtHandle_t m_handle = nullptr;
    cublasLtMatmulDesc_t m_operation = nullptr;
    cublasLtMatrixLayout_t m_a = nullptr, m_b = nullptr, m_c = nullptr, m_d = nullptr;
    cublasLtMatmulAlgo_t m_algorithm{};
    bool m_is_chosen = false;
};

std::int64_t count(std::uint64_t rows, std::uint64_t columns) { return static_cast<std::int64_t>(rows * columns); }

Case bf16_product(Flavour flavour)
{
    Case described{.regions = {{"a", Kind::weights, bf16, count(k_k, k_m)},
                               {"b", Kind::input, bf16, count(k_k, k_n)},
                               {"d", Kind::output, bf16, count(k_m, k_n)}}};
    if (flavour == Flavour::bias) described.regions.push_back({"bias", Kind::weights, bf16, k_m});
    return with_work<Product>(std::move(described), flavour);
}

/// The scales are powers of two. Products then stay below 448, the largest number of e4m3.
Case fp8_product()
{
    const auto bytes = Reading::e4m3;
    Case described{.regions = {{"a", Kind::weights, u8, count(k_k, k_m), {}, bytes},
                               {"b", Kind::input, u8, count(k_k, k_n), {}, bytes},
                               {"c", Kind::input, bf16, count(k_m, k_n)},
                               {"scale_a", Kind::weights, f32, 1, values<float>({0.5F})},
                               {"scale_b", Kind::input, f32, 1, values<float>({0.25F})},
                               {"scale_d", Kind::input, f32, 1, values<float>({8.0F})},
                               {"d", Kind::output, u8, count(k_m, k_n), {}, bytes}},
                   .no_addresses = {"a", "b", "d"}};
    return with_work<Product>(std::move(described), Flavour::fp8);
}

} // namespace

void add_cublaslt_cases(Cases& all)
{
    all.add("cublaslt_bf16", [](const Device&) { return bf16_product(Flavour::plain); });
    all.add("cublaslt_bf16_bias", [](const Device&) { return bf16_product(Flavour::bias); });
    all.add("cublaslt_fp8_scales", [](const Device&) { return fp8_product(); });
}

} // namespace warmgraph::test::libraries

#else

namespace warmgraph::test::libraries {
void add_cublaslt_cases(Cases& all) { all.leave_out("cuBLASLt", "cublasLt.h was not found at configure time"); }
} // namespace warmgraph::test::libraries

#endif
