// Cases with kernels of NVIDIA's libraries, which load their modules themselves.
#include <array>
#include <stdexcept>

#include <cublasLt.h>
#include <cudnn.h>
#include <dlfcn.h>

#include "../case.hpp"

namespace warmgraph::test {

namespace {

/// Finds a library's functions by name at run time. Without the library, the test binary still starts and reports a
/// clear error.
class Library {
public:
    explicit Library(std::initializer_list<const char*> names)
    {
        for (const char* name : names)
            if (m_handle == nullptr) m_handle = ::dlopen(name, RTLD_NOW | RTLD_GLOBAL);
        if (m_handle == nullptr)
            throw std::runtime_error(std::string("cannot load ") + *names.begin() + ": " + ::dlerror());
    }
    template <class F>
    [[nodiscard]] F find(const char* name) const
    {
        void* const found = ::dlsym(m_handle, name);
        if (found == nullptr) throw std::runtime_error(std::string("the library has no ") + name);
        return reinterpret_cast<F>(found);
    }

private:
    void* m_handle = nullptr;
};

#define WG_FIND(library, name) (library).find<decltype(&::name)>(#name)

void expect_ok(int status, const char* call)
{
    if (status != 0) throw std::runtime_error(std::string(call) + " failed with status " + std::to_string(status));
}

struct Gemm {
    std::uint64_t m, n, k;
    int split; ///< 1: the algorithm that the heuristics choose; more: the number of parts of k that are summed
};
constexpr std::array<Gemm, 10> k_gemms{{{64, 64, 64, 1},
                                        {128, 1, 256, 1},
                                        {512, 16, 512, 1},
                                        {1024, 1024, 1024, 1},
                                        {4096, 1, 4096, 1},
                                        {2048, 128, 512, 1},
                                        {96, 40, 200, 1},
                                        {256, 256, 8192, 4},
                                        {64, 64, 16384, 8},
                                        {1280, 8, 2560, 2}}};
constexpr std::uint64_t k_workspace = 32ULL << 20;

/// One product y = a * b in bf16 with f32 accumulation, made through the interface that frameworks use.
class Product {
public:
    Product(const Gemm& gemm, const Library& lt) : m_lt(lt), m_gemm(gemm)
    {
        expect_ok(WG_FIND(m_lt, cublasLtMatmulDescCreate)(&m_operation, CUBLAS_COMPUTE_32F, CUDA_R_32F),
                  "MatmulDescCreate");
        const cublasOperation_t transpose = CUBLAS_OP_T;
        const auto set = WG_FIND(m_lt, cublasLtMatmulDescSetAttribute);
        expect_ok(set(m_operation, CUBLASLT_MATMUL_DESC_TRANSA, &transpose, sizeof transpose), "TRANSA");
        const auto layout = WG_FIND(m_lt, cublasLtMatrixLayoutCreate);
        expect_ok(layout(&m_a, CUDA_R_16BF, gemm.k, gemm.m, static_cast<std::int64_t>(gemm.k)), "layout a");
        expect_ok(layout(&m_b, CUDA_R_16BF, gemm.k, gemm.n, static_cast<std::int64_t>(gemm.k)), "layout b");
        expect_ok(layout(&m_y, CUDA_R_16BF, gemm.m, gemm.n, static_cast<std::int64_t>(gemm.m)), "layout y");
        choose();
    }
    void enqueue(cublasLtHandle_t handle, const void* a, const void* b, void* y, void* workspace, CUstream stream) const
    {
        const float one = 1, zero = 0;
        expect_ok(WG_FIND(m_lt, cublasLtMatmul)(handle, m_operation, &one, a, m_a, b, m_b, &zero, y, m_y, y, m_y,
                                                &m_algo, workspace, k_workspace,
                                                reinterpret_cast<cudaStream_t>(stream)),
                  "cublasLtMatmul");
    }
    static cublasLtHandle_t handle(const Library& lt)
    {
        static const cublasLtHandle_t made = [&lt] {
            cublasLtHandle_t handle = nullptr;
            expect_ok(WG_FIND(lt, cublasLtCreate)(&handle), "cublasLtCreate");
            return handle;
        }();
        return made;
    }

private:
    void choose()
    {
        cublasLtMatmulPreference_t preference = nullptr;
        expect_ok(WG_FIND(m_lt, cublasLtMatmulPreferenceCreate)(&preference), "PreferenceCreate");
        const auto set = WG_FIND(m_lt, cublasLtMatmulPreferenceSetAttribute);
        expect_ok(set(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &k_workspace, sizeof k_workspace),
                  "workspace");
        std::array<cublasLtMatmulHeuristicResult_t, 8> results{};
        int found = 0;
        expect_ok(WG_FIND(m_lt, cublasLtMatmulAlgoGetHeuristic)(handle(m_lt), m_operation, m_a, m_b, m_y, m_y,
                                                                preference, static_cast<int>(results.size()),
                                                                results.data(), &found),
                  "AlgoGetHeuristic");
        if (found == 0) throw std::runtime_error("cuBLASLt has no algorithm for this product");
        m_algo = results[0].algo;
        if (m_gemm.split == 1) return;
        for (int i = 0; i < found; ++i)
            if (takes_split(results[static_cast<std::size_t>(i)].algo)) return;
        if (!find_split())
            throw std::runtime_error("cuBLASLt has no algorithm that splits k for this product: choose another shape");
    }

    /// If the algorithm can sum `split` parts of k and supports this product, uses it and returns true.
    bool takes_split(cublasLtMatmulAlgo_t algo)
    {
        const auto configure = WG_FIND(m_lt, cublasLtMatmulAlgoConfigSetAttribute);
        const std::int32_t split = m_gemm.split;
        const std::uint32_t scheme = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
        cublasLtMatmulHeuristicResult_t checked{};
        if (configure(&algo, CUBLASLT_ALGO_CONFIG_SPLITK_NUM, &split, sizeof split) != CUBLAS_STATUS_SUCCESS ||
            configure(&algo, CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME, &scheme, sizeof scheme) != CUBLAS_STATUS_SUCCESS ||
            WG_FIND(m_lt, cublasLtMatmulAlgoCheck)(handle(m_lt), m_operation, m_a, m_b, m_y, m_y, &algo, &checked) !=
                CUBLAS_STATUS_SUCCESS)
            return false;
        // The parts are stored in the workspace until they are summed. So an algorithm without a workspace does not
        // split the sum.
        if (checked.workspaceSize == 0 || checked.workspaceSize > k_workspace) return false;
        m_algo = algo;
        return true;
    }

    /// Tries every algorithm for these types, with each of its tile and stage settings.
    bool find_split()
    {
        constexpr auto bf = CUDA_R_16BF;
        constexpr auto single = CUDA_R_32F;
        std::array<int, 200> ids{};
        int count = 0;
        expect_ok(WG_FIND(m_lt, cublasLtMatmulAlgoGetIds)(handle(m_lt), CUBLAS_COMPUTE_32F, single, bf, bf, bf, bf,
                                                          static_cast<int>(ids.size()), ids.data(), &count),
                  "AlgoGetIds");
        const auto configure = WG_FIND(m_lt, cublasLtMatmulAlgoConfigSetAttribute);
        for (int i = 0; i < count; ++i) {
            cublasLtMatmulAlgo_t algo{};
            if (WG_FIND(m_lt, cublasLtMatmulAlgoInit)(handle(m_lt), CUBLAS_COMPUTE_32F, single, bf, bf, bf, bf,
                                                      ids[static_cast<std::size_t>(i)], &algo) != CUBLAS_STATUS_SUCCESS)
                continue;
            for (const std::uint32_t tile : choices(algo, CUBLASLT_ALGO_CAP_TILE_IDS))
                for (const std::uint32_t stages : choices(algo, CUBLASLT_ALGO_CAP_STAGES_IDS)) {
                    static_cast<void>(configure(&algo, CUBLASLT_ALGO_CONFIG_TILE_ID, &tile, sizeof tile));
                    static_cast<void>(configure(&algo, CUBLASLT_ALGO_CONFIG_STAGES_ID, &stages, sizeof stages));
                    if (takes_split(algo)) return true;
                }
        }
        return false;
    }
    [[nodiscard]] std::vector<std::uint32_t> choices(const cublasLtMatmulAlgo_t& algo,
                                                     cublasLtMatmulAlgoCapAttributes_t which) const
    {
        std::array<std::uint32_t, 1000> values{};
        std::size_t written = 0;
        if (WG_FIND(m_lt, cublasLtMatmulAlgoCapGetAttribute)(&algo, which, values.data(), sizeof values, &written) !=
                CUBLAS_STATUS_SUCCESS ||
            written == 0)
            return {0}; // 0 means undefined: the algorithm then uses its default
        return {values.begin(), values.begin() + static_cast<std::ptrdiff_t>(written / sizeof values[0])};
    }

    const Library& m_lt;
    Gemm m_gemm;
    cublasLtMatmulDesc_t m_operation = nullptr;
    cublasLtMatrixLayout_t m_a = nullptr, m_b = nullptr, m_y = nullptr;
    cublasLtMatmulAlgo_t m_algo{};
};

const Library& cublaslt()
{
    static const Library library{"libcublasLt.so.13", "libcublasLt.so.12", "libcublasLt.so"};
    return library;
}

Case gemm(std::size_t index)
{
    const Gemm& shape = k_gemms[index];
    auto product = std::make_shared<std::unique_ptr<Product>>();
    const auto count = [](std::uint64_t rows, std::uint64_t columns) {
        return static_cast<std::int64_t>(rows * columns);
    };
    return {.name = "cublaslt_gemm_" + std::to_string(index),
            .memory = {{"a", Memory::Kind::weights, bf16, count(shape.m, shape.k)},
                       {"b", Memory::Kind::input, bf16, count(shape.k, shape.n)},
                       {"y", Memory::Kind::output, bf16, count(shape.m, shape.n)}},
            .work =
                [product, shape](Recorder& r) {
                    if (!*product) *product = std::make_unique<Product>(shape, cublaslt());
                    (*product)->enqueue(Product::handle(cublaslt()), r["a"].pointer(), r["b"].pointer(),
                                        r["y"].pointer(), r.alloc("workspace", k_workspace).pointer(),
                                        native_stream(r.stream()));
                },
            .tolerance = 0.01};
}

const Library& cudnn()
{
    static const Library library{"libcudnn.so.9", "libcudnn.so"};
    return library;
}

/// A convolution in f32: 8 images of 32 x 28 x 28 through 64 filters of 3 x 3.
class Convolution {
public:
    static constexpr std::int64_t k_x = 8LL * 32 * 28 * 28, k_w = 64LL * 32 * 9, k_y = 8LL * 64 * 28 * 28;
    Convolution()
    {
        expect_ok(WG_FIND(cudnn(), cudnnCreate)(&m_handle), "cudnnCreate");
        const auto tensor = WG_FIND(cudnn(), cudnnCreateTensorDescriptor);
        const auto shape = WG_FIND(cudnn(), cudnnSetTensor4dDescriptor);
        expect_ok(tensor(&m_x), "tensor");
        expect_ok(tensor(&m_y), "tensor");
        expect_ok(shape(m_x, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, 8, 32, 28, 28), "shape");
        expect_ok(shape(m_y, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, 8, 64, 28, 28), "shape");
        expect_ok(WG_FIND(cudnn(), cudnnCreateFilterDescriptor)(&m_w), "filter");
        expect_ok(WG_FIND(cudnn(), cudnnSetFilter4dDescriptor)(m_w, CUDNN_DATA_FLOAT, CUDNN_TENSOR_NCHW, 64, 32, 3, 3),
                  "filter");
        expect_ok(WG_FIND(cudnn(), cudnnCreateConvolutionDescriptor)(&m_convolution), "convolution");
        expect_ok(WG_FIND(cudnn(), cudnnSetConvolution2dDescriptor)(m_convolution, 1, 1, 1, 1, 1, 1,
                                                                    CUDNN_CROSS_CORRELATION, CUDNN_DATA_FLOAT),
                  "convolution");
    }
    void enqueue(const void* x, const void* w, void* y, void* workspace, CUstream stream)
    {
        expect_ok(WG_FIND(cudnn(), cudnnSetStream)(m_handle, reinterpret_cast<cudaStream_t>(stream)), "cudnnSetStream");
        const float one = 1, zero = 0;
        expect_ok(WG_FIND(cudnn(), cudnnConvolutionForward)(m_handle, &one, m_x, x, m_w, w, m_convolution,
                                                            CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM, workspace,
                                                            k_workspace, &zero, m_y, y),
                  "cudnnConvolutionForward");
    }

private:
    cudnnHandle_t m_handle = nullptr;
    cudnnTensorDescriptor_t m_x = nullptr, m_y = nullptr;
    cudnnFilterDescriptor_t m_w = nullptr;
    cudnnConvolutionDescriptor_t m_convolution = nullptr;
};

Case convolution()
{
    auto layer = std::make_shared<std::unique_ptr<Convolution>>();
    return {.name = "cudnn_convolution",
            .memory = {{"w", Memory::Kind::weights, f32, Convolution::k_w},
                       {"x", Memory::Kind::input, f32, Convolution::k_x},
                       {"y", Memory::Kind::output, f32, Convolution::k_y}},
            .work =
                [layer](Recorder& r) {
                    if (!*layer) *layer = std::make_unique<Convolution>();
                    (*layer)->enqueue(r["x"].pointer(), r["w"].pointer(), r["y"].pointer(),
                                      r.alloc("workspace", k_workspace).pointer(), native_stream(r.stream()));
                },
            .tolerance = 1e-4};
}

} // namespace

void add_library_cases(std::vector<std::pair<std::string, MakeCase>>& all)
{
    for (std::size_t i = 0; i < k_gemms.size(); ++i)
        all.emplace_back("cublaslt_gemm_" + std::to_string(i), [i] { return gemm(i); });
    all.emplace_back("cudnn_convolution", convolution);
}

} // namespace warmgraph::test
