// The products of matrices through cuBLASLt, everything else as kernels that NVRTC compiles (kernels.cu). A process in which
// everything is replayed reaches none of this, so it loads neither library.
#include "cublaslt.hpp"
#include "kernels.hpp"
#include "pass.hpp"

namespace llm {
namespace {

namespace wg = warmgraph;

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
    CudaPass(const Config& config, const wg::Program& program, LazyCublasLt& products, wg::Recorder& recorder,
             const Rows& rows)
        : Pass(config, program, recorder, rows),
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

/// One program for both functions: a stored image is cut down to the kernels that its graph launches.
class CudaKernels final : public Kernels {
public:
    CudaKernels(const Config& config, const wg::Device& device)
        : m_config(config), m_program(device.program("llm", std::string(k_cuda_source), config.definitions()))
    {
    }
    [[nodiscard]] const wg::Program& prompt_program() const noexcept override { return m_program; }
    [[nodiscard]] const wg::Program& decode_program() const noexcept override { return m_program; }
    [[nodiscard]] std::unique_ptr<Pass> prompt_pass(wg::Recorder& recorder, const Rows& rows) override
    {
        return std::make_unique<CudaPass>(m_config, m_program, m_products, recorder, rows);
    }
    [[nodiscard]] std::unique_ptr<Pass> decode_pass(wg::Recorder& recorder, const Rows& rows) override
    {
        return std::make_unique<CudaPass>(m_config, m_program, m_products, recorder, rows);
    }

private:
    const Config& m_config;
    wg::Program m_program;
    LazyCublasLt m_products;
};

} // namespace

std::unique_ptr<Kernels> make_cuda_kernels(const Config& config, const wg::Device& device)
{
    return std::make_unique<CudaKernels>(config, device);
}

} // namespace llm
