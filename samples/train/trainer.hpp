// A training step through warmgraph: forward and backward as a pair, the update as a function.
#pragma once

#include <string>
#include <vector>

#include "spiral.hpp"
#include <warmgraph/warmgraph.hpp>

namespace train {

struct Step {
    float loss = 0; ///< the mean over the batch
    warmgraph::Outcome forward{}, backward{}, update{};
};

class Trainer {
public:
    /// Every batch has `rows` rows.
    Trainer(warmgraph::Cache& cache, const std::string& backend, std::int32_t rows);
    Trainer(const Trainer&) = delete; // its callables hold its address
    Trainer& operator=(const Trainer&) = delete;

    /// Does forward, backward and SGD with momentum. Blocks until the loss is on the host.
    [[nodiscard]] Step step(const Batch& batch, float rate);
    /// The largest difference between backward's gradients and finite differences, relative to the largest gradient.
    [[nodiscard]] float gradient_error(const Batch& batch);

private:
    void upload(const Batch& batch);
    [[nodiscard]] warmgraph::ForwardCall forward();
    [[nodiscard]] warmgraph::Outcome backward(const warmgraph::ForwardCall& of);
    [[nodiscard]] float mean_loss();
    void enqueue_forward(warmgraph::Recorder& r) const;
    void enqueue_backward(warmgraph::Recorder& r) const;
    [[nodiscard]] warmgraph::Pair wrap_pair(warmgraph::Cache& cache) const;
    [[nodiscard]] warmgraph::Function wrap_update(warmgraph::Cache& cache) const;

    warmgraph::Device m_device;
    std::int32_t m_rows;
    warmgraph::Program m_program;
    warmgraph::Buffer m_theta, m_velocity, m_gradient; // [k_parameters]
    warmgraph::Buffer m_x, m_label, m_loss, m_dloss;   // buffers of a batch
    warmgraph::Pair m_pair;
    warmgraph::Function m_update;
};

} // namespace train
