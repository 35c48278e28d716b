#include "cublaslt.hpp"

#include <stdexcept>

#ifdef LLM_HAVE_CUBLASLT

#include <array>
#include <cstdlib>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include <fmt/format.h>

#include <cublasLt.h>
#include <dlfcn.h>

namespace llm {
namespace {

// The functions in use. Versions 12 and 13 have the same signatures.
#define LLM_CUBLASLT_FUNCTIONS(X)                                                                                      \
    X(cublasLtCreate)                                                                                                  \
    X(cublasLtDestroy)                                                                                                 \
    X(cublasLtGetStatusString)                                                                                         \
    X(cublasLtMatmul)                                                                                                  \
    X(cublasLtMatmulAlgoGetHeuristic)                                                                                  \
    X(cublasLtMatmulDescCreate)                                                                                        \
    X(cublasLtMatmulDescDestroy)                                                                                       \
    X(cublasLtMatmulDescSetAttribute)                                                                                  \
    X(cublasLtMatmulPreferenceCreate)                                                                                  \
    X(cublasLtMatmulPreferenceDestroy)                                                                                 \
    X(cublasLtMatmulPreferenceSetAttribute)                                                                            \
    X(cublasLtMatrixLayoutCreate)                                                                                      \
    X(cublasLtMatrixLayoutDestroy)

struct Functions {
#define LLM_CUBLASLT_MEMBER(name) decltype(&::name) name = nullptr;
    LLM_CUBLASLT_FUNCTIONS(LLM_CUBLASLT_MEMBER)
#undef LLM_CUBLASLT_MEMBER
};

std::vector<std::string> candidates()
{
    if (const char* given = std::getenv("WARMGRAPH_CUBLASLT"); given != nullptr && *given != '\0') return {given};
    return {"libcublasLt.so.13", "libcublasLt.so.12", "/usr/local/cuda/lib64/libcublasLt.so.13",
            "/usr/local/cuda/lib64/libcublasLt.so.12"};
}

/// Opens the library and never closes it: its kernels stay loaded in the driver, and graphs launch them.
void* open_library()
{
    std::string tried;
    for (const std::string& name : candidates()) {
        if (void* library = ::dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL)) return library;
        tried += fmt::format("\n  {}", ::dlerror());
    }
    throw std::runtime_error(
        fmt::format("cuBLASLt cannot be loaded: install it, or name its file in WARMGRAPH_CUBLASLT{}", tried));
}

template <class Function>
Function function_of(void* library, const char* name)
{
    auto* const function = reinterpret_cast<Function>(::dlsym(library, name));
    if (function == nullptr)
        throw std::runtime_error(fmt::format("cuBLASLt lacks {}, expected version 12 or 13", name));
    return function;
}

template <class Handle>
using Owned = std::unique_ptr<std::remove_pointer_t<Handle>, cublasStatus_t (*)(Handle)>;

} // namespace

struct CublasLt::Impl {
    /// The parts that all products of one shape share.
    struct Plan {
        Owned<cublasLtMatmulDesc_t> operation;
        Owned<cublasLtMatrixLayout_t> w, x, y;
        cublasLtMatmulAlgo_t algorithm{};
    };
    using Shape = std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>; // rows, in, out

    Functions functions;
    cublasLtHandle_t handle = nullptr;
    std::map<Shape, Plan> plans;

    Impl()
    {
        void* const library = open_library();
#define LLM_CUBLASLT_LOAD(name) functions.name = function_of<decltype(&::name)>(library, #name);
        LLM_CUBLASLT_FUNCTIONS(LLM_CUBLASLT_LOAD)
#undef LLM_CUBLASLT_LOAD
        check(functions.cublasLtCreate(&handle), "cublasLtCreate");
    }
    Impl(const Impl&) = delete;
    Impl& operator=(const Impl&) = delete;
    ~Impl()
    {
        plans.clear();
        static_cast<void>(functions.cublasLtDestroy(handle)); // a destructor cannot report the error
    }

    void check(cublasStatus_t status, const char* call) const
    {
        if (status == CUBLAS_STATUS_SUCCESS) return;
        throw std::runtime_error(fmt::format("{} failed: {}", call, functions.cublasLtGetStatusString(status)));
    }

    /// Describes a row-major [rows][columns] matrix to cuBLAS, which is column-major: there it has `columns` rows.
    [[nodiscard]] Owned<cublasLtMatrixLayout_t> layout(std::uint32_t rows, std::uint32_t columns) const
    {
        cublasLtMatrixLayout_t made = nullptr;
        check(functions.cublasLtMatrixLayoutCreate(&made, CUDA_R_32F, columns, rows, columns),
              "cublasLtMatrixLayoutCreate");
        return {made, functions.cublasLtMatrixLayoutDestroy};
    }
    [[nodiscard]] Owned<cublasLtMatmulDesc_t> operation() const;
    [[nodiscard]] Owned<cublasLtMatmulPreference_t> preference() const;
    [[nodiscard]] const Plan& plan(const Shape& shape);
};

Owned<cublasLtMatmulDesc_t> CublasLt::Impl::operation() const
{
    cublasLtMatmulDesc_t made = nullptr;
    check(functions.cublasLtMatmulDescCreate(&made, CUBLAS_COMPUTE_32F, CUDA_R_32F), "cublasLtMatmulDescCreate");
    Owned<cublasLtMatmulDesc_t> owned{made, functions.cublasLtMatmulDescDestroy};
    const std::int32_t transposed = CUBLAS_OP_T;
    check(functions.cublasLtMatmulDescSetAttribute(made, CUBLASLT_MATMUL_DESC_TRANSA, &transposed, sizeof transposed),
          "cublasLtMatmulDescSetAttribute");
    return owned;
}

Owned<cublasLtMatmulPreference_t> CublasLt::Impl::preference() const
{
    cublasLtMatmulPreference_t made = nullptr;
    check(functions.cublasLtMatmulPreferenceCreate(&made), "cublasLtMatmulPreferenceCreate");
    Owned<cublasLtMatmulPreference_t> owned{made, functions.cublasLtMatmulPreferenceDestroy};
    const auto set = [&](cublasLtMatmulPreferenceAttributes_t attribute, const auto& value) {
        check(functions.cublasLtMatmulPreferenceSetAttribute(made, attribute, &value, sizeof value),
              "cublasLtMatmulPreferenceSetAttribute");
    };
    set(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, std::uint64_t{k_workspace_bytes});
    // No split sums: blocks would add the parts in a changing order.
    set(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, std::uint32_t{CUBLASLT_REDUCTION_SCHEME_NONE});
    // The guaranteed alignment of the caller's tensors: one float4.
    for (const auto attribute :
         {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
          CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES})
        set(attribute, std::uint32_t{16});
    return owned;
}

// Row-major y[rows][out] is column-major y^T = w x^T, and w itself is stored as cuBLAS's w^T: hence the transposition of A.
const CublasLt::Impl::Plan& CublasLt::Impl::plan(const Shape& shape)
{
    const auto known = plans.find(shape);
    if (known != plans.end()) return known->second;
    const auto [rows, in, out] = shape;
    Plan made{operation(), layout(out, in), layout(rows, in), layout(rows, out)};
    const auto wanted = preference();
    cublasLtMatmulHeuristicResult_t best{};
    int found = 0;
    check(functions.cublasLtMatmulAlgoGetHeuristic(handle, made.operation.get(), made.w.get(), made.x.get(),
                                                   made.y.get(), made.y.get(), wanted.get(), 1, &best, &found),
          "cublasLtMatmulAlgoGetHeuristic");
    if (found == 0)
        throw std::runtime_error(fmt::format("cuBLASLt has no algorithm for {} x {} x {} in f32", rows, in, out));
    made.algorithm = best.algo;
    return plans.emplace(shape, std::move(made)).first->second;
}

void CublasLt::enqueue(const Product& product, void* workspace, void* stream)
{
    Impl& impl = *m_impl;
    const Impl::Plan& plan = impl.plan({product.rows, product.in, product.out});
    const float alpha = 1.0F;
    const float beta = product.onto == Onto::result ? 1.0F : 0.0F;
    impl.check(impl.functions.cublasLtMatmul(impl.handle, plan.operation.get(), &alpha, product.w, plan.w.get(),
                                             product.x, plan.x.get(), &beta, product.y, plan.y.get(), product.y,
                                             plan.y.get(), &plan.algorithm, workspace, k_workspace_bytes,
                                             static_cast<cudaStream_t>(stream)),
               "cublasLtMatmul");
}

std::unique_ptr<CublasLt> CublasLt::load() { return std::unique_ptr<CublasLt>(new CublasLt(std::make_unique<Impl>())); }

} // namespace llm

#else // LLM_HAVE_CUBLASLT

namespace llm {

struct CublasLt::Impl {};

void CublasLt::enqueue(const Product&, void*, void*) {}

std::unique_ptr<CublasLt> CublasLt::load()
{
    throw std::runtime_error(
        "this program was built without CUDA (cublasLt.h was not found): configure it anew where the "
        "CUDA toolkit is installed, or use --backend opencl");
}

} // namespace llm

#endif // LLM_HAVE_CUBLASLT

namespace llm {

CublasLt::CublasLt(std::unique_ptr<Impl> impl) noexcept : m_impl(std::move(impl)) {}
CublasLt::~CublasLt() = default;

} // namespace llm
