#include "model.hpp"

#include <utility>
#include <vector>

namespace llm {
namespace {

namespace wg = warmgraph;

std::unique_ptr<Kernels> make_kernels(const Config& config, const wg::Device& device)
{
    return device.id().starts_with("cuda") ? make_cuda_kernels(config, device) : make_opencl_kernels(config, device);
}

} // namespace

Model::Model(const wg::Device& device, const samples::Safetensors& weights)
    : m_config(Config::from_metadata(weights.metadata())),
      m_kernels(make_kernels(m_config, device)),
      m_kv(device.allocate(m_config.n_layers * m_config.kv_layer_bytes()))
{
    const std::int64_t dim = m_config.dim;
    const std::int64_t hidden = m_config.hidden_dim;
    load(device, weights, "tok_embeddings.weight", m_config.vocab_size, dim);
    for (std::uint32_t i = 0; i < m_config.n_layers; ++i) {
        const std::string prefix = "layers." + std::to_string(i) + ".";
        load(device, weights, prefix + "attention_norm.weight", 0, dim);
        load(device, weights, prefix + "attention.wq.weight", dim, dim);
        load(device, weights, prefix + "attention.wk.weight", m_config.kv_dim(), dim);
        load(device, weights, prefix + "attention.wv.weight", m_config.kv_dim(), dim);
        load(device, weights, prefix + "attention.wo.weight", dim, dim);
        load(device, weights, prefix + "ffn_norm.weight", 0, dim);
        load(device, weights, prefix + "feed_forward.w1.weight", hidden, dim);
        load(device, weights, prefix + "feed_forward.w2.weight", dim, hidden);
        load(device, weights, prefix + "feed_forward.w3.weight", hidden, dim);
    }
    load(device, weights, "norm.weight", 0, dim);
    // New device memory holds arbitrary values. Padding never reaches the logits, but a NaN could reach the scratch
    // memory.
    m_kv.write(std::vector<float>(m_kv.size() / sizeof(float), 0.0f));
}

/// Loads a tensor. `rows` 0 means a vector.
void Model::load(const wg::Device& device, const samples::Safetensors& file, const std::string& name, std::int64_t rows,
                 std::int64_t columns)
{
    const samples::TensorView& tensor =
        file.f32(name, rows == 0 ? std::vector<std::int64_t>{columns} : std::vector<std::int64_t>{rows, columns});
    m_weights.emplace(name, device.upload(tensor.bytes));
}

wg::Spec Model::spec(wg::TensorDecl tokens, wg::ScalarDecl scalar) const
{
    wg::Spec spec;
    spec.inputs = {std::move(tokens)};
    spec.outputs = {wg::output("logits", wg::f32, {m_config.vocab_size})};
    spec.states = {wg::state("kv", m_kv)};
    for (const auto& [name, buffer] : m_weights) spec.states.push_back(wg::weights(name, buffer));
    spec.scalars = {std::move(scalar)};
    return spec;
}

wg::Spec Model::prompt_spec() const
{
    wg::Spec declared =
        spec(wg::input("tokens", wg::i32, {k_buckets.front()}), wg::scalar("length", wg::i32, 1, k_buckets.back()));
    m_kernels->declare_prompt(declared);
    return declared;
}

wg::Spec Model::decode_spec() const
{
    wg::Spec declared =
        spec(wg::input("token", wg::i32, {1}), wg::scalar("position", wg::i32, 0, m_config.max_seq_len - 1));
    m_kernels->declare_decode(declared);
    return declared;
}

void Model::prompt(wg::Recorder& recorder) const
{
    const auto rows = static_cast<std::uint32_t>(recorder.sizes("tokens").at(0));
    m_kernels->prompt_pass(recorder, {rows, 0, recorder.scalar<std::int32_t>("length")})->run("tokens");
}

void Model::decode(wg::Recorder& recorder) const
{
    m_kernels->decode_pass(recorder, {1, recorder.scalar<std::int32_t>("position"), 1})->run("token");
}

} // namespace llm
