// The products of matrices through cuBLASLt, everything else as kernels that NVRTC compiles (kernels.cu). A process in which
// everything is replayed reaches none of this, so it loads neither library.
#include <optional>

#include "cublaslt.hpp"
#include "kernels.hpp"
#include "pass.hpp"
#include "tuning.hpp"

namespace llm {
namespace {

namespace wg = warmgraph;

constexpr std::uint32_t k_most_threads = 1024; ///< of a block

/// Loaded by the first product, and kept.
class LazyCublasLt {
public:
    [[nodiscard]] CublasLt& get()
    {
        if (!m_library) m_library = CublasLt::load();
        return *m_library;
    }

private:
    std::unique_ptr<CublasLt> m_library;
};

/// Prompt and decode alike: a row count of 1 is only another shape.
class CudaPass final : public Pass {
public:
    CudaPass(const Config& config, const Compiled& compiled, LazyCublasLt& products, wg::Recorder& recorder,
             const Rows& rows)
        : Pass(config, compiled, recorder, rows),
          m_products(products),
          m_workspace(recorder.alloc("workspace", CublasLt::k_workspace_bytes))
    {
    }

private:
    void layer(const std::string& prefix, std::uint32_t index) override
    {
        const Address up = scratch("up", m_config.hidden_dim);
        rmsnorm(m_x, prefix + "attention_norm.weight", m_rows.count);
        multiply(prefix + "attention.wq.weight", m_normed, m_q, m_config.dim, m_config.dim);
        multiply(prefix + "attention.wk.weight", m_normed, m_k, m_config.dim, m_config.kv_dim());
        multiply(prefix + "attention.wv.weight", m_normed, m_v, m_config.dim, m_config.kv_dim());
        attention(index);
        multiply_add(prefix + "attention.wo.weight", m_mixed, m_x, m_config.dim, m_config.dim);
        rmsnorm(m_x, prefix + "ffn_norm.weight", m_rows.count);
        multiply(prefix + "feed_forward.w1.weight", m_normed, m_gate, m_config.dim, m_config.hidden_dim);
        multiply(prefix + "feed_forward.w3.weight", m_normed, up, m_config.dim, m_config.hidden_dim);
        launch("swiglu", each_of(m_config.hidden_dim), m_gate, up);
        multiply_add(prefix + "feed_forward.w2.weight", m_gate, m_x, m_config.hidden_dim, m_config.dim);
    }

    void head(Address normed) override
    {
        enqueue({weight("tok_embeddings.weight").pointer<const float>(), normed.pointer<const float>(),
                 m_recorder["logits"].pointer<float>(), 1, m_config.dim, m_config.vocab_size, Onto::nothing});
    }

    void multiply(const std::string& name, Address x, Address y, std::uint32_t in, std::uint32_t out)
    {
        enqueue({weight(name).pointer<const float>(), x.pointer<const float>(), y.pointer<float>(), m_rows.count, in,
                 out, Onto::nothing});
    }

    /// A projection back into the residual stream.
    void multiply_add(const std::string& name, Address x, Address y, std::uint32_t in, std::uint32_t out)
    {
        enqueue({weight(name).pointer<const float>(), x.pointer<const float>(), y.pointer<float>(), m_rows.count, in,
                 out, Onto::result});
    }

    void enqueue(const Product& product)
    {
        m_products.get().enqueue(product, m_workspace.pointer<>(), m_recorder.stream().native());
    }

    LazyCublasLt& m_products;
    Address m_workspace;
};

Geometry geometry_of(const wg::TunedConfig& config)
{
    Geometry geometry;
    geometry.norm_items = static_cast<std::uint32_t>(config.at("NORM_ITEMS"));
    geometry.items = static_cast<std::uint32_t>(config.at("ITEMS"));
    return geometry;
}

/// The default first. ITEMS are parts of the hidden dimension and of no other: swiglu alone works element by element here.
std::vector<wg::TunedConfig> candidates(const Config& config)
{
    const Geometry standard;
    std::vector<wg::TunedConfig> found{{{"ITEMS", standard.items}, {"NORM_ITEMS", standard.norm_items}}};
    for (const std::int64_t norm_items : {32, 64, 128})
        for (const std::int64_t parts : {1, 2, 4, 11}) {
            if (config.hidden_dim % parts != 0 || config.hidden_dim / parts > k_most_threads) continue;
            const wg::TunedConfig candidate{{"ITEMS", config.hidden_dim / parts}, {"NORM_ITEMS", norm_items}};
            if (candidate != found.front()) found.push_back(candidate);
        }
    return found;
}

/// What one layer enqueues besides the products, for a prompt's rows.
wg::TuningWork rows_work(const Config& config, const wg::Device& device)
{
    WorkMemory memory{device, k_tuned_rows, config};
    const auto launch = [memory, config](wg::Stream& stream, const wg::Program& program, const wg::TunedConfig& tuned) {
        const Geometry geometry = geometry_of(tuned);
        const wg::Launch norm{{k_tuned_rows, 1, 1}, {geometry.norm_items, 1, 1}};
        stream.launch(program, "rmsnorm", norm, memory.wide(), memory.weights(), memory.q());
        stream.launch(program, "rmsnorm", norm, memory.wide(), memory.weights(), memory.x());
        stream.launch(program, "swiglu",
                      wg::Launch{{k_tuned_rows * config.hidden_dim / geometry.items, 1, 1}, {geometry.items, 1, 1}},
                      memory.gate(), memory.wide());
    };
    return {launch, memory.outputs()};
}

/// One program for both functions: a stored image is cut down to the kernels that its graph launches.
class CudaKernels final : public Kernels {
public:
    CudaKernels(const Config& config, const wg::Device& device)
        : m_config(config), m_device(device), m_compiled(compiled(candidates(config).front()))
    {
    }
    void declare_prompt(wg::Spec& spec) const override
    {
        spec.code = {m_compiled.program};
        if (m_tuned) spec.tuned = {*m_tuned};
    }
    void declare_decode(wg::Spec& spec) const override { declare_prompt(spec); }
    [[nodiscard]] std::unique_ptr<Pass> prompt_pass(wg::Recorder& recorder, const Rows& rows) override
    {
        return std::make_unique<CudaPass>(m_config, m_compiled, m_products, recorder, rows);
    }
    [[nodiscard]] std::unique_ptr<Pass> decode_pass(wg::Recorder& recorder, const Rows& rows) override
    {
        return std::make_unique<CudaPass>(m_config, m_compiled, m_products, recorder, rows);
    }
    std::vector<wg::TuningReport> tune(wg::Tuner& tuner) override
    {
        wg::TunableKernel kernel;
        kernel.name = "llm";
        kernel.source = k_cuda_source;
        kernel.options = m_config.definitions();
        kernel.problem = {{"rows", k_tuned_rows}, {"dim", m_config.dim}, {"hidden", m_config.hidden_dim}};
        kernel.candidates = candidates(m_config);
        kernel.ranges = {wg::powers_of_two("NORM_ITEMS", 32, 256)};
        kernel.work = [config = m_config, device = m_device] { return rows_work(config, device); };
        m_tuned = tuner.begin_module("llm", k_cuda_source).tune(kernel);
        m_compiled = compiled(m_tuned->config());
        return {m_tuned->report()};
    }

private:
    [[nodiscard]] Compiled compiled(const wg::TunedConfig& config) const
    {
        return {m_device.program("llm", std::string(k_cuda_source),
                                 m_config.definitions() + " " + wg::definitions_of(config)),
                geometry_of(config)};
    }

    const Config& m_config;
    wg::Device m_device;
    Compiled m_compiled;
    std::optional<wg::Tuned> m_tuned;
    LazyCublasLt m_products;
};

} // namespace

std::unique_ptr<Kernels> make_cuda_kernels(const Config& config, const wg::Device& device)
{
    return std::make_unique<CudaKernels>(config, device);
}

} // namespace llm
