#include "trainer.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>

#include "kernels.hpp"

namespace train {

namespace wg = warmgraph;

namespace {

constexpr float k_momentum = 0.9F;
constexpr std::uint32_t k_block = 64;

std::string source_for(const std::string& backend)
{
    return std::string(backend == "cuda" ? k_cuda_prefix : k_opencl_prefix) + k_body;
}

std::string options()
{
    return "-DINPUTS=" + std::to_string(k_inputs) + " -DHIDDEN=" + std::to_string(k_hidden) +
           " -DCLASSES=" + std::to_string(k_classes);
}

/// A launch with one item for each of `count` elements, rounded up to whole groups; the other items do nothing.
wg::Launch items(std::int32_t count)
{
    return {{(static_cast<std::uint32_t>(count) + k_block - 1) / k_block, 1, 1}, {k_block, 1, 1}};
}

template <class T>
wg::Buffer filled(const wg::Device& device, std::int32_t count, T value)
{
    const std::vector<T> values(static_cast<std::size_t>(count), value);
    return device.upload(std::span{values});
}

wg::Buffer first_theta(const wg::Device& device)
{
    const auto values = first_parameters(7);
    return device.upload(std::span{values});
}

} // namespace

Trainer::Trainer(wg::Cache& cache, const std::string& backend, std::int32_t rows)
    : m_device(backend),
      m_rows(rows),
      m_program(m_device.program("train", source_for(backend), options())),
      m_theta(first_theta(m_device)),
      m_velocity(filled(m_device, k_parameters, 0.0F)),
      m_gradient(filled(m_device, k_parameters, 0.0F)),
      m_x(filled(m_device, rows * k_inputs, 0.0F)),
      m_label(filled(m_device, rows, std::int32_t{0})),
      m_loss(filled(m_device, rows, 0.0F)),
      m_dloss(filled(m_device, rows, 1.0F / static_cast<float>(rows))), // gradient of the mean
      m_pair(wrap_pair(cache)),
      m_update(wrap_update(cache))
{
}

wg::Pair Trainer::wrap_pair(wg::Cache& cache) const
{
    wg::PairSpec spec;
    spec.forward.inputs = {wg::input("x", wg::f32, {m_rows, k_inputs}), wg::input("label", wg::i32, {m_rows})};
    spec.forward.outputs = {wg::output("loss", wg::f32, {m_rows})};
    spec.forward.states = {wg::weights("theta", m_theta, wg::f32)};
    spec.forward.code = {m_program};
    spec.backward.inputs = {wg::input("x", wg::f32, {m_rows, k_inputs}), wg::input("label", wg::i32, {m_rows}),
                            wg::input("dloss", wg::f32, {m_rows})};
    spec.backward.outputs = {wg::output("dtheta", wg::f32, {k_parameters})};
    spec.backward.states = spec.forward.states;
    spec.saved = {{"h", wg::f32, {m_rows, k_hidden}}, {"p", wg::f32, {m_rows, k_classes}}};
    spec.gradients = {{"dloss", "loss"}, {"dtheta", "theta"}};
    return cache.wrap_pair(
        "step", m_device, spec, [this](wg::Recorder& r) { enqueue_forward(r); },
        [this](wg::Recorder& r) { enqueue_backward(r); });
}

void Trainer::enqueue_forward(wg::Recorder& r) const
{
    r.stream().launch(m_program, "hidden_layer", items(m_rows * k_hidden), r["x"], r["theta"], r["h"], m_rows);
    r.stream().launch(m_program, "output_layer", items(m_rows), r["h"], r["theta"], r["label"], r["p"], r["loss"],
                      m_rows);
}

void Trainer::enqueue_backward(wg::Recorder& r) const
{
    constexpr std::int32_t k_second = k_inputs * k_hidden + k_hidden; // first parameter of the second layer
    const wg::Address dz2 = r.alloc("dz2", sizeof(float) * static_cast<std::uint64_t>(m_rows * k_classes));
    const wg::Address dz1 = r.alloc("dz1", sizeof(float) * static_cast<std::uint64_t>(m_rows * k_hidden));
    wg::Stream& stream = r.stream();
    stream.launch(m_program, "logit_gradient", items(m_rows * k_classes), r["p"], r["label"], r["dloss"], dz2, m_rows);
    stream.launch(m_program, "hidden_gradient", items(m_rows * k_hidden), r["h"], dz2, r["theta"], dz1, m_rows);
    stream.launch(m_program, "layer_gradient", items((k_hidden + 1) * k_classes), r["h"], dz2, r["dtheta"], k_second,
                  k_hidden, k_classes, m_rows);
    stream.launch(m_program, "layer_gradient", items((k_inputs + 1) * k_hidden), r["x"], dz1, r["dtheta"],
                  std::int32_t{0}, k_inputs, k_hidden, m_rows);
}

wg::Function Trainer::wrap_update(wg::Cache& cache) const
{
    wg::Spec spec;
    spec.inputs = {wg::input("dtheta", wg::f32, {k_parameters})};
    spec.states = {wg::state("theta", m_theta, wg::f32), wg::state("velocity", m_velocity, wg::f32)};
    spec.scalars = {wg::scalar("rate", wg::f32, 0, 10)};
    spec.code = {m_program};
    return cache.wrap("update", m_device, spec, [this](wg::Recorder& r) {
        r.stream().launch(m_program, "momentum", items(k_parameters), r["theta"], r["velocity"], r["dtheta"],
                          r.scalar<float>("rate"), k_momentum, k_parameters);
    });
}

void Trainer::upload(const Batch& batch)
{
    m_device.synchronize(); // the previous step reads the buffers
    m_x.write(batch.x);
    m_label.write(batch.label);
}

wg::ForwardCall Trainer::forward() { return m_pair.forward({{"x", m_x}, {"label", m_label}, {"loss", m_loss}}); }

wg::Outcome Trainer::backward(const wg::ForwardCall& of)
{
    return m_pair.backward(of, {{"x", m_x}, {"label", m_label}, {"dloss", m_dloss}, {"dtheta", m_gradient}});
}

float Trainer::mean_loss()
{
    m_device.synchronize();
    const auto losses = m_loss.read<float>();
    return static_cast<float>(std::accumulate(losses.begin(), losses.end(), 0.0) / static_cast<double>(m_rows));
}

Step Trainer::step(const Batch& batch, float rate)
{
    upload(batch);
    const wg::ForwardCall call = forward();
    Step result;
    result.forward = call.outcome;
    result.backward = backward(call);
    result.update = m_update({{"dtheta", m_gradient}, {"rate", rate}});
    result.loss = mean_loss();
    return result;
}

float Trainer::gradient_error(const Batch& batch)
{
    constexpr float k_distance = 1e-2F;
    upload(batch);
    static_cast<void>(backward(forward()));
    m_device.synchronize();
    const auto gradient = m_gradient.read<float>(), theta = m_theta.read<float>();
    const auto loss_at = [&](std::size_t index, float value) {
        auto moved = theta;
        moved[index] = value;
        m_theta.write(moved);
        static_cast<void>(forward());
        return mean_loss();
    };
    float error = 0, largest = 0;
    for (std::size_t i = 0; i < theta.size(); ++i) {
        const float slope = (loss_at(i, theta[i] + k_distance) - loss_at(i, theta[i] - k_distance)) / (2 * k_distance);
        error = std::max(error, std::abs(slope - gradient[i]));
        largest = std::max(largest, std::abs(gradient[i]));
    }
    m_theta.write(theta);
    return error / largest;
}

} // namespace train
