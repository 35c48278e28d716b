// A fixture that the tests of the facade share: a new folder, a device, and a program with small kernels.
#pragma once

#include <algorithm>
#include <fstream>
#include <iterator>
#include <numeric>
#include <string>
#include <vector>

#include "cache_options.hpp"
#include "matchers.hpp"
#include "pocl_cache.hpp"
#include "temp_dir.hpp"
#include "thrown.hpp"
#include "warmgraph/warmgraph.hpp"

namespace warmgraph::test {

inline constexpr const char* k_small_kernels = R"(
__kernel void add_one(__global const float* x, __global float* y) { size_t i = get_global_id(0); y[i] = x[i] + 1.0f; }
__kernel void scale(__global const float* x, __global float* y, float factor) { size_t i = get_global_id(0); y[i] = x[i] * factor; }
__kernel void add_int(__global const float* x, __global float* y, int n) { size_t i = get_global_id(0); y[i] = x[i] + (float)n; }
__kernel void accumulate(__global float* state, __global const float* x) { size_t i = get_global_id(0); state[i] += x[i]; }
__kernel void add(__global const float* a, __global const float* b, __global float* y) { size_t i = get_global_id(0); y[i] = a[i] + b[i]; }
__kernel void put(__global float* y, int index, float value) { if (get_global_id(0) == 0) y[index] = value; }
)";

class FacadeTest : public testing::Test {
protected:
    FacadeTest() : device{(use_pocl_cache(), "opencl")} {}

    static constexpr std::int64_t k_count = 64;
    static constexpr Launch k_launch{.grid = {4, 1, 1}, .block = {16, 1, 1}};

    [[nodiscard]] CacheOptions options(Policy policy = Policy::read_write) const
    {
        return cache_options("toy", dir.path() / "cache", policy);
    }
    [[nodiscard]] Buffer floats(float first, std::int64_t count = k_count) const
    {
        std::vector<float> values(static_cast<std::size_t>(count));
        std::iota(values.begin(), values.end(), first);
        return device.upload<float>(values);
    }
    [[nodiscard]] std::vector<float> read(const Buffer& buffer) const
    {
        device.synchronize();
        return buffer.read<float>();
    }
    [[nodiscard]] Spec vector_spec() const { return x_to_y(f32, k_count, {program}); }
    /// y = x + 1
    [[nodiscard]] Function add_one(Cache& cache, const std::string& name = "add_one") const
    {
        return cache.wrap(name, device, vector_spec(),
                          [this](Recorder& r) { r.stream().launch(program, "add_one", k_launch, r["x"], r["y"]); });
    }
    /// The files in the cache whose names have this extension.
    [[nodiscard]] std::vector<std::filesystem::path> files(const std::string& extension) const
    {
        std::vector<std::filesystem::path> result;
        if (!std::filesystem::exists(dir.path() / "cache")) return result;
        for (const auto& item : std::filesystem::recursive_directory_iterator(dir.path() / "cache"))
            if (item.is_regular_file() && item.path().extension() == extension) result.push_back(item.path());
        std::ranges::sort(result);
        return result;
    }
    [[nodiscard]] std::vector<std::filesystem::path> entries() const { return files(".wg"); }

    TempDir dir;
    Device device;
    Program program = device.program("small", k_small_kernels);
    /// The arguments of a call: x is 0, 1, 2, ..., and y has the same size.
    const Buffer m_x = floats(0), m_y = device.allocate(k_count * 4);
};

inline std::vector<char> file_bytes(const std::filesystem::path& path)
{
    std::ifstream file{path, std::ios::binary};
    return {std::istreambuf_iterator<char>{file}, {}};
}

inline void write_file(const std::filesystem::path& path, const std::vector<char>& bytes)
{
    std::ofstream{path, std::ios::binary | std::ios::trunc}.write(bytes.data(),
                                                                  static_cast<std::streamsize>(bytes.size()));
}

} // namespace warmgraph::test
