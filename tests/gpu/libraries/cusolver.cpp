// Cases with cuSOLVER: factorisations and eigenvalues of dense matrices, in place.
#include "library_case.hpp"

#ifdef WARMGRAPH_HAVE_CUSOLVER

#include <optional>
#include <random>

#include <cusolverDn.h>

namespace warmgraph::test::libraries {

namespace {

constexpr int k_side = 96, k_right_sides = 4;
constexpr std::int64_t k_matrix = std::int64_t{k_side} * k_side;

const Library& cusolver()
{
    static const Library library{"libcusolver.so.12", "libcusolver.so.11", "libcusolver.so"};
    return library;
}

/// A random symmetric matrix, with `diagonal` added to its diagonal. It is positive definite if `diagonal` is at least
/// 2 * k_side.
Contents symmetric(float diagonal)
{
    std::mt19937 random{7};
    std::vector<float> matrix(static_cast<std::size_t>(k_matrix));
    for (std::size_t row = 0; row < k_side; ++row)
        for (std::size_t column = 0; column <= row; ++column) {
            const float value = static_cast<float>(random() % 2001U) / 1000.0F - 1.0F;
            matrix[row * k_side + column] = matrix[column * k_side + row] = value + (row == column ? diagonal : 0.0F);
        }
    return values(matrix);
}

class Solver {
public:
    Solver() { WG_LIBRARY_CALL(cusolver(), cusolverDnCreate, &m_handle); }

protected:
    [[nodiscard]] cusolverDnHandle_t on(Recorder& r) const
    {
        WG_LIBRARY_CALL(cusolver(), cusolverDnSetStream, m_handle, stream_of(r));
        return m_handle;
    }

private:
    cusolverDnHandle_t m_handle = nullptr;
};

/// Solves a system of equations through the older interface: a = lower * upper with pivots, then b = inverse a * b.
class Linear : public Solver {
public:
    static Case described()
    {
        return {.regions = {{"a", Kind::state, f32, k_matrix, symmetric(8.0F)},
                            {"b", Kind::state, f32, std::int64_t{k_side} * k_right_sides},
                            {"pivots", Kind::output, i32, k_side},
                            {"info", Kind::output, i32, 2}}};
    }
    void enqueue(Recorder& r)
    {
        const cusolverDnHandle_t handle = on(r);
        auto* const a = r["a"].pointer<float>();
        auto* const pivots = r["pivots"].pointer<int>();
        auto* const info = r["info"].pointer<int>();
        if (!m_work_numbers) {
            int numbers = 0;
            WG_LIBRARY_CALL(cusolver(), cusolverDnSgetrf_bufferSize, handle, k_side, k_side, a, k_side, &numbers);
            m_work_numbers = numbers;
        }
        auto* const work =
            static_cast<float*>(scratch(r, "work", static_cast<std::size_t>(*m_work_numbers) * sizeof(float)));
        WG_LIBRARY_CALL(cusolver(), cusolverDnSgetrf, handle, k_side, k_side, a, k_side, work, pivots, info);
        WG_LIBRARY_CALL(cusolver(), cusolverDnSgetrs, handle, CUBLAS_OP_N, k_side, k_right_sides, a, k_side, pivots,
                        r["b"].pointer<float>(), k_side, info + 1);
    }

private:
    std::optional<int> m_work_numbers;
};

/// Workspaces for the 64-bit interface: one in device memory, and one in host memory, whose address does not change.
class Workspaces {
public:
    template <class Ask>
    void size(Ask ask)
    {
        if (m_is_known) return;
        std::size_t host = 0;
        ask(&m_device_bytes, &host);
        m_host.resize(host);
        m_is_known = true;
    }
    [[nodiscard]] void* on_device(Recorder& r) const { return scratch(r, "work", m_device_bytes); }
    [[nodiscard]] std::size_t device_bytes() const { return m_device_bytes; }
    [[nodiscard]] void* on_host() { return m_host.data(); }
    [[nodiscard]] std::size_t host_bytes() const { return m_host.size(); }

private:
    bool m_is_known = false;
    std::size_t m_device_bytes = 0;
    std::vector<std::byte> m_host;
};

class Solver64 : public Solver {
public:
    Solver64() { WG_LIBRARY_CALL(cusolver(), cusolverDnCreateParams, &m_params); }

protected:
    cusolverDnParams_t m_params = nullptr;
    Workspaces m_work;
};

/// The factorisation a = lower * transposed lower.
struct Cholesky : Solver64 {
    static Case described()
    {
        return {
            .regions = {{"a", Kind::state, f32, k_matrix, symmetric(2.0F * k_side)}, {"info", Kind::output, i32, 1}}};
    }
    void enqueue(Recorder& r)
    {
        const cusolverDnHandle_t handle = on(r);
        void* const a = r["a"].pointer();
        m_work.size([&](std::size_t* device, std::size_t* host) {
            WG_LIBRARY_CALL(cusolver(), cusolverDnXpotrf_bufferSize, handle, m_params, CUBLAS_FILL_MODE_LOWER, k_side,
                            CUDA_R_32F, a, k_side, CUDA_R_32F, device, host);
        });
        WG_LIBRARY_CALL(cusolver(), cusolverDnXpotrf, handle, m_params, CUBLAS_FILL_MODE_LOWER, k_side, CUDA_R_32F, a,
                        k_side, CUDA_R_32F, m_work.on_device(r), m_work.device_bytes(), m_work.on_host(),
                        m_work.host_bytes(), r["info"].pointer<int>());
    }
};

/// Writes the eigenvalues into w, and the eigenvectors in place. The library may wait on the host for a result; then it
/// is right to refuse the call.
struct Eigen : Solver64 {
    static Case described()
    {
        return {.regions = {{"a", Kind::state, f32, k_matrix, symmetric(0.0F)},
                            {"w", Kind::output, f32, k_side},
                            {"info", Kind::output, i32, 1}}};
    }
    void enqueue(Recorder& r)
    {
        const cusolverDnHandle_t handle = on(r);
        void *const a = r["a"].pointer(), *const w = r["w"].pointer();
        m_work.size([&](std::size_t* device, std::size_t* host) {
            WG_LIBRARY_CALL(cusolver(), cusolverDnXsyevd_bufferSize, handle, m_params, CUSOLVER_EIG_MODE_VECTOR,
                            CUBLAS_FILL_MODE_LOWER, k_side, CUDA_R_32F, a, k_side, CUDA_R_32F, w, CUDA_R_32F, device,
                            host);
        });
        WG_LIBRARY_CALL(cusolver(), cusolverDnXsyevd, handle, m_params, CUSOLVER_EIG_MODE_VECTOR,
                        CUBLAS_FILL_MODE_LOWER, k_side, CUDA_R_32F, a, k_side, CUDA_R_32F, w, CUDA_R_32F,
                        m_work.on_device(r), m_work.device_bytes(), m_work.on_host(), m_work.host_bytes(),
                        r["info"].pointer<int>());
    }
};

template <class T>
MakeCase plain_case()
{
    return [](const Device&) { return with_work<T>(T::described()); };
}

} // namespace

void add_cusolver_cases(Cases& all)
{
    all.add("cusolver_getrf_getrs", plain_case<Linear>());
    all.add("cusolver_xpotrf", plain_case<Cholesky>());
    all.add("cusolver_xsyevd", plain_case<Eigen>());
}

} // namespace warmgraph::test::libraries

#else

namespace warmgraph::test::libraries {
void add_cusolver_cases(Cases& all) { all.leave_out("cuSOLVER", "cusolverDn.h was not found at configure time"); }
} // namespace warmgraph::test::libraries

#endif
