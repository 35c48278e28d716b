// Promises for cublasGemmBatchedEx, which finds its matrices through tables of pointers.
#include <stdexcept>

#include <cublas_v2.h>
#include <dlfcn.h>

#include "lacking.hpp"
#include "promise_fixture.hpp"

namespace warmgraph::test::blas_test {
namespace {

constexpr std::int64_t k_side = 16, k_matrix = k_side * k_side, k_batch = 2;

class Blas {
public:
    Blas()
    {
        for (const char* name : {"libcublas.so.13", "libcublas.so.12", "libcublas.so"})
            if (m_library == nullptr) m_library = ::dlopen(name, RTLD_NOW | RTLD_GLOBAL);
        if (m_library != nullptr) check(find<decltype(&cublasCreate_v2)>("cublasCreate_v2")(&m_handle));
    }
    [[nodiscard]] bool is_there() const noexcept { return m_library != nullptr; }
    /// Enqueues c = a * b + beta * c for each matrix of a batch.
    void multiply(CUstream stream, std::uint64_t a, std::uint64_t b, std::uint64_t c, float beta) const
    {
        check(find<decltype(&cublasSetStream_v2)>("cublasSetStream_v2")(m_handle,
                                                                        reinterpret_cast<cudaStream_t>(stream)));
        using Multiply = cublasStatus_t (*)(cublasHandle_t, cublasOperation_t, cublasOperation_t, int, int, int,
                                            const void*, const void* const*, cudaDataType, int, const void* const*,
                                            cudaDataType, int, const void*, void* const*, cudaDataType, int, int,
                                            cublasComputeType_t, cublasGemmAlgo_t);
        const float one = 1;
        constexpr int k = k_side;
        check(find<Multiply>("cublasGemmBatchedEx")(
            m_handle, CUBLAS_OP_N, CUBLAS_OP_N, k, k, k, &one, reinterpret_cast<const void* const*>(a), CUDA_R_32F, k,
            reinterpret_cast<const void* const*>(b), CUDA_R_32F, k, &beta, reinterpret_cast<void* const*>(c),
            CUDA_R_32F, k, k_batch, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT));
    }

private:
    template <class F>
    [[nodiscard]] F find(const char* name) const
    {
        void* const found = ::dlsym(m_library, name);
        if (found == nullptr) throw std::runtime_error(std::string{"cuBLAS has no "} + name);
        return reinterpret_cast<F>(found);
    }
    static void check(cublasStatus_t status)
    {
        if (status != CUBLAS_STATUS_SUCCESS)
            throw std::runtime_error("cuBLAS failed with status " + std::to_string(status));
    }

    void* m_library = nullptr;
    cublasHandle_t m_handle = nullptr;
};

class PromisedBlas : public GpuPromise {
protected:
    void SetUp() override
    {
        if (!blas().is_there()) WARMGRAPH_SKIP_LACKING("cuBLAS");
    }
    [[nodiscard]] static const Blas& blas()
    {
        static const Blas one;
        return one;
    }
    [[nodiscard]] Buffer matrices(float value) const
    {
        return device.upload<float>(std::vector<float>(k_batch * k_matrix, value));
    }
    [[nodiscard]] Buffer table_of(const Buffer& matrices) const
    {
        std::vector<std::uint64_t> table;
        for (std::int64_t i = 0; i < k_batch; ++i)
            table.push_back(matrices.memory().address.flat() + static_cast<std::uint64_t>(i * k_matrix) * 4);
        return device.upload<std::uint64_t>(table);
    }
    enum class Declared : std::uint8_t { as_states, as_inputs, not_at_all };
    [[nodiscard]] Scene product(Declared declared_as);
};

Scene PromisedBlas::product(Declared declared_as)
{
    return [this, declared_as](Cache& cache, CallResults& seen) {
        const Buffer a = matrices(0.5F), b = matrices(0.25F), c = matrices(1);
        const Buffer a_table = table_of(a), b_table = table_of(b), c_table = table_of(c);
        Spec declared;
        declared.version = "1";
        std::vector<Arg> args;
        if (declared_as == Declared::as_states)
            declared.states = {weights("a", a_table), weights("b", b_table), weights("c", c_table)};
        if (declared_as == Declared::as_inputs) {
            declared.inputs = {input("a", u64, {k_batch}), input("b", u64, {k_batch}), input("c", u64, {k_batch})};
            args = {{"a", a_table}, {"b", b_table}, {"c", c_table}};
        }
        Function f =
            cache.wrap("product_" + std::to_string(static_cast<int>(declared_as)), device, declared, [&](Recorder& r) {
                const auto at = [&](const char* name, const Buffer& table) {
                    return declared_as == Declared::not_at_all ? table.memory().address.flat() : r[name].flat();
                };
                blas().multiply(stream_of(r), at("a", a_table), at("b", b_table), at("c", c_table), 1);
            });
        for (int i = 0; i < 4; ++i) call(seen, f, args, {&c});
    };
}

TEST_F(PromisedBlas, ABatchedProductThatAddsThroughDeclaredTablesAddsOncePerCall)
{
    for (const Declared declared : {Declared::as_states, Declared::as_inputs})
        expect_refused(product(declared), HasSubstr("' holds at byte 0 the address"));
}

TEST_F(PromisedBlas, ABatchedProductThatAddsThroughUndeclaredTablesAddsOncePerCall)
{
    expect_refused(product(Declared::not_at_all), Not(IsEmpty()));
}

} // namespace
} // namespace warmgraph::test::blas_test
