#include "tuning.hpp"

#include <random>
#include <span>

namespace llm {
namespace {

namespace wg = warmgraph;

/// Returns memory with the same numbers at every call.
wg::Buffer numbers(const wg::Device& device, std::size_t count)
{
    std::minstd_rand random(1);
    std::uniform_real_distribution<float> distribution(-0.1f, 0.1f);
    std::vector<float> values(count);
    for (float& value : values) value = distribution(random);
    return device.upload<float>(values);
}

} // namespace

WorkMemory::WorkMemory(const wg::Device& device, std::uint32_t rows, const Config& config)
    : m_memory(std::make_shared<const Memory>(Memory{
          numbers(device, std::size_t{config.dim} * config.hidden_dim),
          numbers(device, std::size_t{rows} * config.hidden_dim), numbers(device, std::size_t{rows} * config.dim),
          numbers(device, std::size_t{rows} * config.kv_dim()), numbers(device, std::size_t{rows} * config.kv_dim()),
          numbers(device, std::size_t{rows} * config.dim), numbers(device, std::size_t{rows} * config.hidden_dim),
          numbers(device, std::size_t{rows} * config.hidden_dim), numbers(device, std::size_t{rows} * config.dim)}))
{
}

std::vector<wg::TuningOutput> WorkMemory::outputs() const
{
    std::vector<wg::TuningOutput> outputs;
    for (const wg::Buffer* buffer : {&q(), &k(), &v(), &x(), &gate(), &up(), &down()})
        outputs.push_back({*buffer, wg::f32});
    return outputs;
}

} // namespace llm
