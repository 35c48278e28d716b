// The OpenCL pass: the sample's own kernels compute the products of matrices. There are two programs, so that each
// function loads only its own kernels (kernels.cl says why).
#include <optional>

#include "kernels.hpp"
#include "pass.hpp"
#include "tuning.hpp"

namespace llm {
namespace {

namespace wg = warmgraph;

wg::Launch matvec_launch(const Geometry& geometry, std::uint32_t out)
{
    return {{1, out / geometry.rows, 1}, {geometry.lanes, geometry.rows, 1}};
}

wg::Launch matmul_launch(const Geometry& geometry, std::uint32_t rows, std::uint32_t out)
{
    return {{out / geometry.rows, rows / geometry.lanes, 1}, {geometry.lanes, geometry.rows, 1}};
}

class OpenclPass : public Pass {
public:
    using Pass::Pass;

protected:
    /// Returns matvec's geometry for `out` rows of a matrix.
    [[nodiscard]] wg::Launch rows_of(std::uint32_t out) const { return matvec_launch(m_compiled.geometry, out); }

    void matvec(const char* kernel, const std::string& name, Address x, Address y, std::uint32_t in, std::uint32_t out)
    {
        launch(kernel, rows_of(out), weight(name), x, y, static_cast<std::int32_t>(in));
    }

    void head(Address normed) override
    {
        matvec("matvec", "tok_embeddings.weight", normed, m_recorder["logits"], m_config.dim, m_config.vocab_size);
    }
};

/// Multiplies matrices by tiles of rows.
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
        launch("matmul", matmul_launch(m_compiled.geometry, m_rows.count, out), weight(name), x, y,
               static_cast<std::int32_t>(in), static_cast<std::int32_t>(out));
    }
};

/// Multiplies matrices by one vector, with fused additions and activation.
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

Geometry geometry_of(const wg::TunedConfig& config)
{
    Geometry geometry;
    geometry.lanes = static_cast<std::uint32_t>(config.at("LANES"));
    geometry.rows = static_cast<std::uint32_t>(config.at("ROWS"));
    return geometry;
}

/// The candidates, the default first.
std::vector<wg::TunedConfig> candidates(const Config& config)
{
    const Geometry standard;
    std::vector<wg::TunedConfig> found{{{"LANES", standard.lanes}, {"ROWS", standard.rows}}};
    for (const std::int64_t lanes : {1, 2, 4, 8})
        for (const std::int64_t rows : {4, 8, 16, 32}) {
            const wg::TunedConfig candidate{{"LANES", lanes}, {"ROWS", rows}};
            if (candidate != found.front() && config.admits(geometry_of(candidate))) found.push_back(candidate);
        }
    return found;
}

/// The products of one layer, enqueued as in prompt and decode.
wg::TuningWork prompt_products(const Config& config, const wg::Device& device)
{
    WorkMemory memory{device, k_tuned_rows, config};
    const auto launch = [memory, config](wg::Stream& stream, const wg::Program& program, const wg::TunedConfig& tuned) {
        const Geometry geometry = geometry_of(tuned);
        const auto matmul = [&](const wg::Buffer& x, const wg::Buffer& y, std::uint32_t in, std::uint32_t out) {
            stream.launch(program, "matmul", matmul_launch(geometry, k_tuned_rows, out), memory.weights(), x, y,
                          static_cast<std::int32_t>(in), static_cast<std::int32_t>(out));
        };
        matmul(memory.wide(), memory.q(), config.dim, config.dim);
        matmul(memory.wide(), memory.k(), config.dim, config.kv_dim());
        matmul(memory.wide(), memory.v(), config.dim, config.kv_dim());
        matmul(memory.wide(), memory.x(), config.dim, config.dim);
        matmul(memory.wide(), memory.gate(), config.dim, config.hidden_dim);
        matmul(memory.wide(), memory.up(), config.dim, config.hidden_dim);
        matmul(memory.wide(), memory.down(), config.hidden_dim, config.dim);
    };
    return {launch, memory.outputs()};
}

wg::TuningWork decode_products(const Config& config, const wg::Device& device)
{
    WorkMemory memory{device, 1, config};
    const auto launch = [memory, config](wg::Stream& stream, const wg::Program& program, const wg::TunedConfig& tuned) {
        const Geometry geometry = geometry_of(tuned);
        const auto matvec = [&](const char* kernel, const wg::Buffer& y, std::uint32_t in, std::uint32_t out) {
            stream.launch(program, kernel, matvec_launch(geometry, out), memory.weights(), memory.wide(), y,
                          static_cast<std::int32_t>(in));
        };
        matvec("matvec", memory.q(), config.dim, config.dim);
        matvec("matvec", memory.k(), config.dim, config.kv_dim());
        matvec("matvec", memory.v(), config.dim, config.kv_dim());
        matvec("matvec_add", memory.x(), config.dim, config.dim);
        stream.launch(program, "matvec_swiglu", matvec_launch(geometry, config.hidden_dim), memory.weights(),
                      memory.weights(), memory.wide(), memory.gate());
        matvec("matvec_add", memory.down(), config.hidden_dim, config.dim);
    };
    return {launch, memory.outputs()};
}

class OpenclKernels final : public Kernels {
public:
    OpenclKernels(const Config& config, const wg::Device& device)
        : m_config(config),
          m_device(device),
          m_prompt(compiled("llm-prompt", k_prompt_option, candidates(config).front())),
          m_decode(compiled("llm-decode", k_decode_option, candidates(config).front()))
    {
    }
    void declare_prompt(wg::Spec& spec) const override { declare(spec, m_prompt, m_tuned_prompt); }
    void declare_decode(wg::Spec& spec) const override { declare(spec, m_decode, m_tuned_decode); }
    [[nodiscard]] std::unique_ptr<Pass> prompt_pass(wg::Recorder& recorder, const Rows& rows) override
    {
        return std::make_unique<PromptPass>(m_config, m_prompt, recorder, rows);
    }
    [[nodiscard]] std::unique_ptr<Pass> decode_pass(wg::Recorder& recorder, const Rows& rows) override
    {
        return std::make_unique<DecodePass>(m_config, m_decode, recorder, rows);
    }
    std::vector<wg::TuningReport> tune(wg::Tuner& tuner) override
    {
        wg::TuningModule module = tuner.begin_module("llm", k_opencl_source);
        m_tuned_prompt = module.tune(tunable("llm-prompt", k_prompt_option, k_tuned_rows, prompt_products));
        m_tuned_decode = module.tune(tunable("llm-decode", k_decode_option, 1, decode_products));
        module.end();
        m_prompt = compiled("llm-prompt", k_prompt_option, m_tuned_prompt->config());
        m_decode = compiled("llm-decode", k_decode_option, m_tuned_decode->config());
        return {m_tuned_prompt->report(), m_tuned_decode->report()};
    }

private:
    using MakeWork = wg::TuningWork (*)(const Config&, const wg::Device&);
    static constexpr const char* k_prompt_option = " -D PROMPT";
    static constexpr const char* k_decode_option = " -D DECODE";

    static void declare(wg::Spec& spec, const Compiled& compiled, const std::optional<wg::Tuned>& tuned)
    {
        spec.code = {compiled.program};
        if (tuned) spec.tuned = {*tuned};
    }
    [[nodiscard]] std::string options(const char* part) const
    {
        return "-cl-std=CL1.2 " + m_config.definitions() + " -D NORM_ITEMS=" + std::to_string(Geometry{}.norm_items) +
               part;
    }
    [[nodiscard]] Compiled compiled(const char* name, const char* part, const wg::TunedConfig& config) const
    {
        return {m_device.program(name, std::string(k_opencl_source), options(part) + " " + wg::definitions_of(config)),
                geometry_of(config)};
    }
    [[nodiscard]] wg::TunableKernel tunable(const char* name, const char* part, std::uint32_t rows, MakeWork work) const
    {
        wg::TunableKernel kernel;
        kernel.name = name;
        kernel.source = k_opencl_source;
        kernel.options = options(part);
        kernel.problem = {{"rows", rows}, {"dim", m_config.dim}, {"hidden", m_config.hidden_dim}};
        kernel.candidates = candidates(m_config);
        kernel.ranges = {wg::powers_of_two("LANES", 1, 8), wg::powers_of_two("ROWS", 1, 32)};
        kernel.admits = [config = m_config](const wg::TunedConfig& tuned) { return config.admits(geometry_of(tuned)); };
        kernel.work = [config = m_config, device = m_device, work] { return work(config, device); };
        return kernel;
    }

    const Config& m_config;
    wg::Device m_device;
    Compiled m_prompt;
    Compiled m_decode;
    std::optional<wg::Tuned> m_tuned_prompt, m_tuned_decode;
};

} // namespace

std::unique_ptr<Kernels> make_opencl_kernels(const Config& config, const wg::Device& device)
{
    return std::make_unique<OpenclKernels>(config, device);
}

} // namespace llm
