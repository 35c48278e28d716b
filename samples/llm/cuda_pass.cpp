// The CUDA pass: cuBLASLt computes the products of matrices, NVRTC compiles everything else (kernels.cu). For decode,
// kernels.cu also computes the products if tuning found that faster. A process that replays everything loads neither
// library.
#include <memory>
#include <vector>

#include "cublaslt.hpp"
#include "kernels.hpp"
#include "pass.hpp"
#include "tuning.hpp"

namespace llm {
namespace {

namespace wg = warmgraph;

constexpr std::uint32_t k_most_threads = 1024; ///< the most threads in one block

/// Loads cuBLASLt at the first product and keeps it.
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

const char* matvec_kernel(Onto onto) { return onto == Onto::result ? "matvec_add" : "matvec"; }

wg::Launch cuda_matvec_launch(const Geometry& geometry, std::uint32_t out)
{
    return {{out / geometry.rows, 1, 1}, {geometry.lanes, geometry.rows, 1}};
}

/// Serves prompt and decode: decode is a pass with one row.
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
        enqueue(1, weight("tok_embeddings.weight"), normed, m_recorder["logits"], m_config.dim, m_config.vocab_size,
                Onto::nothing);
    }

    void multiply(const std::string& name, Address x, Address y, std::uint32_t in, std::uint32_t out)
    {
        enqueue(m_rows.count, weight(name), x, y, in, out, Onto::nothing);
    }

    /// Adds a projection to the residual stream.
    void multiply_add(const std::string& name, Address x, Address y, std::uint32_t in, std::uint32_t out)
    {
        enqueue(m_rows.count, weight(name), x, y, in, out, Onto::result);
    }

    void enqueue(std::uint32_t rows, Address w, Address x, Address y, std::uint32_t in, std::uint32_t out, Onto onto)
    {
        // Only decode's products: a prompt's last product has one row too, but uses cuBLASLt like the prompt's other
        // products.
        if (m_rows.count == 1 && m_compiled.geometry.lanes != 0) {
            launch(matvec_kernel(onto), cuda_matvec_launch(m_compiled.geometry, out), w, x, y,
                   static_cast<std::int32_t>(in));
            return;
        }
        const Product product{
            w.pointer<const float>(), x.pointer<const float>(), y.pointer<float>(), rows, in, out, onto};
        m_products.get().enqueue(product, m_workspace.pointer<>(), m_recorder.stream().native());
    }

    LazyCublasLt& m_products;
    Address m_workspace;
};

Geometry geometry_of(const wg::TunedConfig& rows, const wg::TunedConfig& products)
{
    Geometry geometry;
    geometry.norm_items = static_cast<std::uint32_t>(rows.at("NORM_ITEMS"));
    geometry.items = static_cast<std::uint32_t>(rows.at("ITEMS"));
    geometry.lanes = static_cast<std::uint32_t>(products.at("LANES"));
    geometry.rows = static_cast<std::uint32_t>(products.at("ROWS"));
    return geometry;
}

/// The candidates, the default first. ITEMS must divide only the hidden dimension, because only swiglu works element by
/// element here.
std::vector<wg::TunedConfig> row_candidates(const Config& config)
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

/// True if the blocks are whole warps and the sizes divide evenly.
bool admits_products(const Config& config, const wg::TunedConfig& candidate)
{
    const std::int64_t lanes = candidate.at("LANES"), rows = candidate.at("ROWS");
    if (lanes == 0 || rows == 0) return lanes == rows;
    for (const std::uint32_t out : {config.dim, config.kv_dim(), config.hidden_dim, config.vocab_size})
        if (out % rows != 0) return false;
    return lanes * rows % 32 == 0 && lanes * rows <= k_most_threads;
}

/// The candidates, the default (cuBLASLt) first.
std::vector<wg::TunedConfig> product_candidates(const Config& config)
{
    std::vector<wg::TunedConfig> found{{{"LANES", 0}, {"ROWS", 0}}};
    for (const std::int64_t lanes : {4, 8, 16, 32})
        for (const std::int64_t rows : {4, 8, 16, 32}) {
            const wg::TunedConfig candidate{{"LANES", lanes}, {"ROWS", rows}};
            if (admits_products(config, candidate)) found.push_back(candidate);
        }
    return found;
}

/// The work of one layer without the products, for a prompt's rows.
wg::TuningWork rows_work(const Config& config, const wg::Device& device)
{
    WorkMemory memory{device, k_tuned_rows, config};
    const auto launch = [memory, config](wg::Stream& stream, const wg::Program& program, const wg::TunedConfig& tuned) {
        const Geometry geometry = geometry_of(tuned, product_candidates(config).front());
        const wg::Launch norm{{k_tuned_rows, 1, 1}, {geometry.norm_items, 1, 1}};
        stream.launch(program, "rmsnorm", norm, memory.wide(), memory.weights(), memory.q());
        stream.launch(program, "rmsnorm", norm, memory.wide(), memory.weights(), memory.x());
        const std::uint32_t blocks = k_tuned_rows * config.hidden_dim / geometry.items;
        stream.launch(program, "swiglu", wg::Launch{{blocks, 1, 1}, {geometry.items, 1, 1}}, memory.gate(),
                      memory.wide());
    };
    return {launch, memory.outputs()};
}

/// The products of one layer for one row, by cuBLASLt or by the sample's kernels.
wg::TuningWork decode_products(const Config& config, const wg::Device& device,
                               const std::shared_ptr<LazyCublasLt>& library)
{
    WorkMemory memory{device, 1, config};
    const auto workspace = std::make_shared<const wg::Buffer>(device.allocate(CublasLt::k_workspace_bytes));
    const auto launch = [=](wg::Stream& stream, const wg::Program& program, const wg::TunedConfig& tuned) {
        const Geometry geometry = geometry_of(row_candidates(config).front(), tuned);
        const auto at = [](const wg::Buffer& buffer) { return buffer.memory().address; };
        const auto multiply = [&](const wg::Buffer& y, std::uint32_t in, std::uint32_t out, Onto onto) {
            if (geometry.lanes != 0) {
                stream.launch(program, matvec_kernel(onto), cuda_matvec_launch(geometry, out), memory.weights(),
                              memory.wide(), y, static_cast<std::int32_t>(in));
                return;
            }
            const Product product{at(memory.weights()).pointer<const float>(),
                                  at(memory.wide()).pointer<const float>(),
                                  at(y).pointer<float>(),
                                  1,
                                  in,
                                  out,
                                  onto};
            library->get().enqueue(product, at(*workspace).pointer<>(), stream.native());
        };
        multiply(memory.q(), config.dim, config.dim, Onto::nothing);
        multiply(memory.k(), config.dim, config.kv_dim(), Onto::nothing);
        multiply(memory.v(), config.dim, config.kv_dim(), Onto::nothing);
        multiply(memory.x(), config.dim, config.dim, Onto::result);
        multiply(memory.gate(), config.dim, config.hidden_dim, Onto::nothing);
        multiply(memory.up(), config.dim, config.hidden_dim, Onto::nothing);
        multiply(memory.down(), config.hidden_dim, config.dim, Onto::result);
    };
    return {launch, memory.outputs()};
}

/// One program for both functions: a stored image keeps only the kernels that its graph launches.
class CudaKernels final : public Kernels {
public:
    CudaKernels(const Config& config, const wg::Device& device)
        : m_config(config),
          m_device(device),
          m_compiled(compiled(row_candidates(config).front(), product_candidates(config).front()))
    {
    }
    void declare_prompt(wg::Spec& spec) const override
    {
        spec.code = {m_compiled.program};
        spec.tuned = m_tuned;
    }
    void declare_decode(wg::Spec& spec) const override { declare_prompt(spec); }
    [[nodiscard]] std::unique_ptr<Pass> prompt_pass(wg::Recorder& recorder, const Rows& rows) override
    {
        return std::make_unique<CudaPass>(m_config, m_compiled, *m_products, recorder, rows);
    }
    [[nodiscard]] std::unique_ptr<Pass> decode_pass(wg::Recorder& recorder, const Rows& rows) override
    {
        return std::make_unique<CudaPass>(m_config, m_compiled, *m_products, recorder, rows);
    }
    std::vector<wg::TuningReport> tune(wg::Tuner& tuner) override
    {
        wg::TuningModule module = tuner.begin_module("llm", k_cuda_source);
        m_tuned = {module.tune(rows_kernel()), module.tune(products_kernel())};
        module.end();
        m_compiled = compiled(m_tuned[0].config(), m_tuned[1].config());
        return {m_tuned[0].report(), m_tuned[1].report()};
    }

private:
    [[nodiscard]] wg::TunableKernel rows_kernel() const
    {
        wg::TunableKernel kernel = named("llm-rows", k_tuned_rows);
        kernel.candidates = row_candidates(m_config);
        kernel.ranges = {wg::powers_of_two("NORM_ITEMS", 32, 256)};
        kernel.work = [config = m_config, device = m_device] { return rows_work(config, device); };
        return kernel;
    }
    [[nodiscard]] wg::TunableKernel products_kernel() const
    {
        wg::TunableKernel kernel = named("llm-decode", 1);
        // Other kernels in the program need these definitions.
        kernel.options += " " + wg::definitions_of(row_candidates(m_config).front());
        kernel.candidates = product_candidates(m_config);
        kernel.ranges = {wg::powers_of_two("LANES", 4, 32), wg::powers_of_two("ROWS", 1, 32)};
        kernel.admits = [config = m_config](const wg::TunedConfig& tuned) { return admits_products(config, tuned); };
        kernel.work = [config = m_config, device = m_device, products = m_products] {
            return decode_products(config, device, products);
        };
        return kernel;
    }
    [[nodiscard]] wg::TunableKernel named(const char* name, std::uint32_t rows) const
    {
        wg::TunableKernel kernel;
        kernel.name = name;
        kernel.source = k_cuda_source;
        kernel.options = m_config.definitions();
        kernel.problem = {{"rows", rows}, {"dim", m_config.dim}, {"hidden", m_config.hidden_dim}};
        return kernel;
    }
    [[nodiscard]] Compiled compiled(const wg::TunedConfig& rows, const wg::TunedConfig& products) const
    {
        const std::string options =
            m_config.definitions() + " " + wg::definitions_of(rows) + " " + wg::definitions_of(products);
        return {m_device.program("llm", std::string(k_cuda_source), options), geometry_of(rows, products)};
    }

    const Config& m_config;
    wg::Device m_device;
    Compiled m_compiled;
    std::vector<wg::Tuned> m_tuned;
    std::shared_ptr<LazyCublasLt> m_products = std::make_shared<LazyCublasLt>();
};

} // namespace

std::unique_ptr<Kernels> make_cuda_kernels(const Config& config, const wg::Device& device)
{
    return std::make_unique<CudaKernels>(config, device);
}

} // namespace llm
