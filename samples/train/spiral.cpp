#include "spiral.hpp"

#include <cmath>

namespace train {

float Noise::next()
{
    m_state = m_state * 1664525U + 1013904223U;
    return static_cast<float>(m_state >> 8U) / static_cast<float>(1U << 23U) - 1.0F;
}

Batch spiral(std::int32_t rows, std::uint32_t seed)
{
    constexpr float k_third = 2.0943951F; // a third of a full turn
    Noise noise{seed};
    Batch batch;
    for (std::int32_t row = 0; row < rows; ++row) {
        const std::int32_t arm = row % k_classes;
        const float along = 0.15F + 0.85F * (noise.next() + 1) / 2;
        const float angle = 3 * along + static_cast<float>(arm) * k_third + 0.15F * noise.next();
        batch.x.push_back(along * std::cos(angle));
        batch.x.push_back(along * std::sin(angle));
        batch.label.push_back(arm);
    }
    return batch;
}

std::vector<float> first_parameters(std::uint32_t seed)
{
    Noise noise{seed};
    std::vector<float> theta(k_parameters, 0.0F);
    for (std::int32_t i = 0; i < k_inputs * k_hidden; ++i) theta[static_cast<std::size_t>(i)] = 1.5F * noise.next();
    constexpr std::int32_t k_second = k_inputs * k_hidden + k_hidden;
    for (std::int32_t i = 0; i < k_hidden * k_classes; ++i)
        theta[static_cast<std::size_t>(k_second + i)] = 0.3F * noise.next();
    return theta;
}

} // namespace train
