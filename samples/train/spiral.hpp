// The task: find the arm of a three-armed spiral that a point belongs to. Every process gets the same points.
#pragma once

#include <cstdint>
#include <vector>

namespace train {

constexpr std::int32_t k_inputs = 2, k_hidden = 32, k_classes = 3;
/// Number of parameters, in the order that kernels.hpp describes.
constexpr std::int32_t k_parameters = k_inputs * k_hidden + k_hidden + k_hidden * k_classes + k_classes;

struct Batch {
    std::vector<float> x;            ///< [rows][k_inputs]
    std::vector<std::int32_t> label; ///< [rows]
};

/// Numbers between -1 and 1 from a seed. The standard library's distributions differ by implementation.
class Noise {
public:
    explicit Noise(std::uint32_t seed) : m_state(seed) {}
    [[nodiscard]] float next();

private:
    std::uint32_t m_state;
};

[[nodiscard]] Batch spiral(std::int32_t rows, std::uint32_t seed);
/// Returns small weights and zero biases.
[[nodiscard]] std::vector<float> first_parameters(std::uint32_t seed);

} // namespace train
