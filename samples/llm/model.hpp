// A Llama-style model on a device: weights, KV cache, and the two functions that a service calls.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "config.hpp"
#include "pass.hpp"
#include "safetensors.hpp"
#include <warmgraph/warmgraph.hpp>

namespace llm {

/// Owns device memory; one sequence at a time. Must outlive every function that wraps its members.
class Model {
public:
    /// Uploads the weights and clears the KV cache. Throws SafetensorsError, std::invalid_argument, warmgraph::Exception.
    Model(const warmgraph::Device& device, const samples::Safetensors& weights);
    Model(const Model&) = delete;
    Model& operator=(const Model&) = delete;
    ~Model() = default;

    [[nodiscard]] const Config& config() const noexcept { return m_config; }

    /// Compiles the kernels with the fastest geometries for this device: times them, or reads an earlier start's
    /// result. Destroy functions that wrapped the model before. When a call rejects a stored geometry
    /// (verification_failed), the next tune() returns the default.
    std::vector<warmgraph::TuningReport> tune(warmgraph::Tuner& tuner) { return m_kernels->tune(tuner); }

    /// tokens i32[bucket], length i32 -> logits f32[vocab] of token length - 1. Fills positions 0 .. length - 1 of the
    /// KV cache.
    [[nodiscard]] warmgraph::Spec prompt_spec() const;
    void prompt(warmgraph::Recorder& recorder) const;

    /// token i32[1], position i32 -> logits f32[vocab]. Fills this position of the KV cache and reads the earlier ones.
    [[nodiscard]] warmgraph::Spec decode_spec() const;
    void decode(warmgraph::Recorder& recorder) const;

private:
    void load(const warmgraph::Device& device, const samples::Safetensors& file, const std::string& name,
              std::int64_t rows, std::int64_t columns);
    [[nodiscard]] warmgraph::Spec spec(warmgraph::TensorDecl tokens, warmgraph::ScalarDecl scalar) const;

    Config m_config;
    std::unique_ptr<Kernels> m_kernels;                 ///< refers to m_config
    std::map<std::string, warmgraph::Buffer> m_weights; ///< the weights by tensor name
    warmgraph::Buffer m_kv;                             ///< [n_layers][keys, values][n_kv_heads][max_seq_len][head_dim]
};

} // namespace llm
