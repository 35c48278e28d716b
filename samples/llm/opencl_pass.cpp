// The products of matrices as kernels of our own, and two programs: each function loads a binary of its own kernels only
// (kernels.cl says why).
#include "kernels.hpp"
#include "pass.hpp"

namespace llm {
namespace {

namespace wg = warmgraph;

class OpenclPass : public Pass {
public:
    using Pass::Pass;

protected:
    /// matvec's geometry for `out` rows of a matrix.
    [[nodiscard]] static wg::Launch rows_of(std::uint32_t out) { return {{1, out / k_rows, 1}, {k_lanes, k_rows, 1}}; }

    void matvec(const char* kernel, const std::string& name, Address x, Address y, std::uint32_t in, std::uint32_t out)
    {
        launch(kernel, rows_of(out), weight(name), x, y, static_cast<std::int32_t>(in));
    }

    void head(Address normed) override
    {
        matvec("matvec", "tok_embeddings.weight", normed, m_recorder["logits"], m_config.dim, m_config.vocab_size);
    }
};

/// Matrices times tiles of rows.
class PromptPass final : public OpenclPass {
public:
    using OpenclPass::OpenclPass;

private:
    void layer(const std::string& prefix, std::uint32_t index) override
    {
        const Address projected = scratch("projected", m_config.dim);
        const Address up = scratch("up", m_config.hidden_dim);
        rmsnorm(m_x, prefix + "attention_norm.weight", m_rows.count);
        matmul(prefix + "attention.wq.weight", m_normed, m_q, m_config.dim, m_config.dim);
        matmul(prefix + "attention.wk.weight", m_normed, m_k, m_config.dim, m_config.kv_dim());
        matmul(prefix + "attention.wv.weight", m_normed, m_v, m_config.dim, m_config.kv_dim());
        attention(index);
        matmul(prefix + "attention.wo.weight", m_mixed, projected, m_config.dim, m_config.dim);
        launch("add", each_of(m_config.dim), m_x, projected);
        rmsnorm(m_x, prefix + "ffn_norm.weight", m_rows.count);
        matmul(prefix + "feed_forward.w1.weight", m_normed, m_gate, m_config.dim, m_config.hidden_dim);
        matmul(prefix + "feed_forward.w3.weight", m_normed, up, m_config.dim, m_config.hidden_dim);
        launch("swiglu", each_of(m_config.hidden_dim), m_gate, up);
        matmul(prefix + "feed_forward.w2.weight", m_gate, projected, m_config.hidden_dim, m_config.dim);
        launch("add", each_of(m_config.dim), m_x, projected);
    }

    void matmul(const std::string& name, Address x, Address y, std::uint32_t in, std::uint32_t out)
    {
        launch("matmul", {{out / k_rows, m_rows.count / k_lanes, 1}, {k_lanes, k_rows, 1}}, weight(name), x, y,
               static_cast<std::int32_t>(in), static_cast<std::int32_t>(out));
    }
};

/// Matrices times one vector, with the additions and the activation fused in.
class DecodePass final : public OpenclPass {
public:
    using OpenclPass::OpenclPass;

private:
    void layer(const std::string& prefix, std::uint32_t index) override
    {
        rmsnorm(m_x, prefix + "attention_norm.weight", 1);
        matvec("matvec", prefix + "attention.wq.weight", m_normed, m_q, m_config.dim, m_config.dim);
        matvec("matvec", prefix + "attention.wk.weight", m_normed, m_k, m_config.dim, m_config.kv_dim());
        matvec("matvec", prefix + "attention.wv.weight", m_normed, m_v, m_config.dim, m_config.kv_dim());
        attention(index);
        matvec("matvec_add", prefix + "attention.wo.weight", m_mixed, m_x, m_config.dim, m_config.dim);
        rmsnorm(m_x, prefix + "ffn_norm.weight", 1);
        launch("matvec_swiglu", rows_of(m_config.hidden_dim), weight(prefix + "feed_forward.w1.weight"),
               weight(prefix + "feed_forward.w3.weight"), m_normed, m_gate);
        matvec("matvec_add", prefix + "feed_forward.w2.weight", m_gate, m_x, m_config.hidden_dim, m_config.dim);
    }
};

class OpenclKernels final : public Kernels {
public:
    OpenclKernels(const Config& config, const wg::Device& device)
        : m_config(config),
          m_prompt(device.program("llm-prompt", std::string(k_opencl_source), options(config) + " -D PROMPT")),
          m_decode(device.program("llm-decode", std::string(k_opencl_source), options(config) + " -D DECODE"))
    {
    }
    [[nodiscard]] const wg::Program& prompt_program() const noexcept override { return m_prompt; }
    [[nodiscard]] const wg::Program& decode_program() const noexcept override { return m_decode; }
    [[nodiscard]] std::unique_ptr<Pass> prompt_pass(wg::Recorder& recorder, const Rows& rows) override
    {
        return std::make_unique<PromptPass>(m_config, m_prompt, recorder, rows);
    }
    [[nodiscard]] std::unique_ptr<Pass> decode_pass(wg::Recorder& recorder, const Rows& rows) override
    {
        return std::make_unique<DecodePass>(m_config, m_decode, recorder, rows);
    }

private:
    [[nodiscard]] static std::string options(const Config& config) { return "-cl-std=CL1.2 " + config.definitions(); }

    const Config& m_config;
    wg::Program m_prompt;
    wg::Program m_decode;
};

} // namespace

std::unique_ptr<Kernels> make_opencl_kernels(const Config& config, const wg::Device& device)
{
    return std::make_unique<OpenclKernels>(config, device);
}

} // namespace llm
