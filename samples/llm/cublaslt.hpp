// Loads cuBLASLt at run time, so that one binary runs with and without it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

namespace llm {

enum class Onto : std::uint8_t { nothing, result }; ///< y = x w^T, or y += x w^T

/// The product y[rows][out] = x[rows][in] w[out][in]^T: f32, row-major, device pointers.
struct Product {
    const float* w = nullptr;
    const float* x = nullptr;
    float* y = nullptr;
    std::uint32_t rows = 0;
    std::uint32_t in = 0;
    std::uint32_t out = 0;
    Onto onto = Onto::nothing;
};

/// Owns the library's handle. Use it from one thread at a time, with the device's context current.
class CublasLt {
public:
    static constexpr std::size_t k_workspace_bytes = std::size_t{4} << 20;

    /// Loads $WARMGRAPH_CUBLASLT, else libcublasLt.so.13, .12. Throws std::runtime_error with the cure when the library
    /// is missing, or when this program was built without its header.
    [[nodiscard]] static std::unique_ptr<CublasLt> load();
    CublasLt(const CublasLt&) = delete;
    CublasLt& operator=(const CublasLt&) = delete;
    ~CublasLt();

    /// Enqueues in `stream` (CUstream). Full f32 precision (no TF32) and no split sums, so equal inputs give equal
    /// bits. The algorithm depends only on the shape: a capture at other addresses gives the same kernels.
    void enqueue(const Product& product, void* workspace, void* stream);

private:
    struct Impl;
    explicit CublasLt(std::unique_ptr<Impl> impl) noexcept;
    std::unique_ptr<Impl> m_impl;
};

} // namespace llm
