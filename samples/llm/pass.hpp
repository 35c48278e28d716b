// One forward pass while it is enqueued. All backends share everything but the products of matrices: kernels with equal
// names, arguments and geometries (kernels.cl, kernels.cu).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "config.hpp"
#include <warmgraph/warmgraph.hpp>

namespace llm {

/// The rows of a pass: the first is at position `first`, the rows from `length` on are padding.
struct Rows {
    std::uint32_t count = 1;
    std::int32_t first = 0;
    std::int32_t length = 1;
};

/// A program and the geometry of its kernels.
struct Compiled {
    warmgraph::Program program;
    Geometry geometry{};
};

class Pass {
public:
    Pass(const Config& config, const Compiled& compiled, warmgraph::Recorder& recorder, const Rows& rows);
    Pass(const Pass&) = delete;
    Pass& operator=(const Pass&) = delete;
    virtual ~Pass() = default;

    /// Enqueues the whole pass, from the ids in the input `tokens` to the logits of the last real row.
    void run(const char* tokens);

protected:
    using Address = warmgraph::Address;

    virtual void layer(const std::string& prefix, std::uint32_t index) = 0;
    /// Computes the logits of one normed row; the head is tied to the embedding.
    virtual void head(Address normed) = 0;

    /// Scratch memory [rows][columns]. Each number of rows gets its own memory, because a name has only one size.
    [[nodiscard]] Address scratch(const std::string& name, std::uint32_t columns);
    [[nodiscard]] Address weight(const std::string& name) const { return m_recorder[name]; }
    /// A launch with one item for each element of [rows][columns].
    [[nodiscard]] warmgraph::Launch each_of(std::uint32_t columns) const;

    template <class... Args>
    void launch(const char* kernel, const warmgraph::Launch& geometry, const Args&... args)
    {
        m_recorder.stream().launch(m_compiled.program, kernel, geometry, args...);
    }

    /// Writes to m_normed.
    void rmsnorm(Address x, const std::string& name, std::uint32_t rows);
    /// Writes m_k and m_v to the layer's cache, and the attention of m_q to m_mixed.
    void attention(std::uint32_t index);

    const Config& m_config;
    const Compiled& m_compiled;
    warmgraph::Recorder& m_recorder;
    Rows m_rows;
    Address m_x, m_normed, m_q, m_k, m_v, m_mixed, m_gate;

private:
    [[nodiscard]] Address last_row();
};

/// The parts of a backend: its programs, compiled when a kernel is first launched, and its passes.
class Kernels {
public:
    Kernels() = default;
    Kernels(const Kernels&) = delete;
    Kernels& operator=(const Kernels&) = delete;
    virtual ~Kernels() = default;

    /// Declares the programs and their tuned geometries.
    virtual void declare_prompt(warmgraph::Spec& spec) const = 0;
    virtual void declare_decode(warmgraph::Spec& spec) const = 0;
    /// The pass refers to the recorder and to this object.
    [[nodiscard]] virtual std::unique_ptr<Pass> prompt_pass(warmgraph::Recorder& recorder, const Rows& rows) = 0;
    [[nodiscard]] virtual std::unique_ptr<Pass> decode_pass(warmgraph::Recorder& recorder, const Rows& rows) = 0;

    /// Gets the best geometries from the tuner, and makes the programs again. REQUIRES: no pass or function uses this
    /// object.
    virtual std::vector<warmgraph::TuningReport> tune(warmgraph::Tuner& tuner) = 0;
};

/// `config` must outlive the kernels.
[[nodiscard]] std::unique_ptr<Kernels> make_opencl_kernels(const Config& config, const warmgraph::Device& device);
[[nodiscard]] std::unique_ptr<Kernels> make_cuda_kernels(const Config& config, const warmgraph::Device& device);

} // namespace llm
