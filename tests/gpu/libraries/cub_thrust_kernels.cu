#include <new>

#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_reduce.cuh>
#include <cub/device/device_scan.cuh>
#include <thrust/execution_policy.h>
#include <thrust/fill.h>
#include <thrust/functional.h>
#include <thrust/sort.h>
#include <thrust/system/cuda/execution_policy.h>
#include <thrust/transform.h>
#include <thrust/transform_reduce.h>

#include "cub_thrust_kernels.hpp"

namespace warmgraph::test::libraries {

namespace {

struct Doubled {
    __host__ __device__ float operator()(float x) const { return x + x; }
};

struct Squared {
    __host__ __device__ float operator()(float x) const { return x * x; }
};

/// Hands out pieces of declared scratch, one after the other. Within a call, no piece is handed out twice.
class Pieces {
public:
    using value_type = char;
    explicit Pieces(const Temporary& from) : m_from(from) {}
    char* allocate(std::ptrdiff_t bytes)
    {
        constexpr std::size_t k_alignment = 256;
        const std::size_t wanted = (static_cast<std::size_t>(bytes) + k_alignment - 1) / k_alignment * k_alignment;
        if (m_given + wanted > m_from.bytes) throw std::bad_alloc{};
        char* const piece = static_cast<char*>(m_from.memory) + m_given;
        m_given += wanted;
        return piece;
    }
    void deallocate(char*, std::size_t) {}

private:
    Temporary m_from;
    std::size_t m_given = 0;
};

} // namespace

int cub_sum(Temporary& temporary, const float* in, float* out, int count, CUstream_st* stream)
{
    return cub::DeviceReduce::Sum(temporary.memory, temporary.bytes, in, out, count, stream);
}

int cub_running_sum(Temporary& temporary, const std::int32_t* in, std::int32_t* out, int count, CUstream_st* stream)
{
    return cub::DeviceScan::ExclusiveSum(temporary.memory, temporary.bytes, in, out, count, stream);
}

int cub_sort(Temporary& temporary, const Pairs& in, const Pairs& out, int count, CUstream_st* stream)
{
    constexpr int k_key_bits = 32;
    return cub::DeviceRadixSort::SortPairs(temporary.memory, temporary.bytes, in.keys, out.keys, in.values, out.values,
                                           count, 0, k_key_bits, stream);
}

int thrust_sort(const Temporary& temporary, const float* in, float* out, int count, CUstream_st* stream)
{
    Pieces pieces{temporary};
    const auto policy = thrust::cuda::par_nosync(pieces).on(stream);
    thrust::transform(policy, in, in + count, out, Doubled{});
    thrust::sort(policy, out, out + count);
    return cudaGetLastError();
}

int thrust_sum_of_squares(const Temporary& temporary, const float* in, float* out, int count, CUstream_st* stream)
{
    Pieces pieces{temporary};
    const auto policy = thrust::cuda::par_nosync(pieces).on(stream);
    const float sum = thrust::transform_reduce(policy, in, in + count, Squared{}, 0.0F, thrust::plus<float>{});
    thrust::fill_n(policy, out, 1, sum);
    return cudaGetLastError();
}

} // namespace warmgraph::test::libraries
