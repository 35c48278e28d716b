// Functions that nvcc compiles (cub_thrust_kernels.cu) for cub_thrust.cpp. Each enqueues in `stream` and returns 0 or
// the runtime's status. Without temporary storage, the first three only return the size that they need.
#pragma once

#include <cstddef>
#include <cstdint>

struct CUstream_st;

namespace warmgraph::test::libraries {

struct Temporary {
    void* memory = nullptr;
    std::size_t bytes = 0;
};

int cub_sum(Temporary& temporary, const float* in, float* out, int count, CUstream_st* stream);
int cub_running_sum(Temporary& temporary, const std::int32_t* in, std::int32_t* out, int count, CUstream_st* stream);

struct Pairs {
    std::int32_t* keys = nullptr;
    std::int32_t* values = nullptr;
};
int cub_sort(Temporary& temporary, const Pairs& in, const Pairs& out, int count, CUstream_st* stream);

/// Writes the values of `in`, doubled and sorted, to `out`. Thrust takes its temporary storage from `temporary`.
int thrust_sort(const Temporary& temporary, const float* in, float* out, int count, CUstream_st* stream);
/// Writes the sum of squares to *out. Thrust returns the sum to the host, so the call waits for the stream.
int thrust_sum_of_squares(const Temporary& temporary, const float* in, float* out, int count, CUstream_st* stream);

} // namespace warmgraph::test::libraries
