#include "pass.hpp"

namespace llm {

namespace wg = warmgraph;

Pass::Pass(const Config& config, const Compiled& compiled, wg::Recorder& recorder, const Rows& rows)
    : m_config(config),
      m_compiled(compiled),
      m_recorder(recorder),
      m_rows(rows),
      m_x(scratch("x", config.dim)),
      m_normed(scratch("normed", config.dim)),
      m_q(scratch("q", config.dim)),
      m_k(scratch("k", config.kv_dim())),
      m_v(scratch("v", config.kv_dim())),
      m_mixed(scratch("mixed", config.dim)),
      m_gate(scratch("gate", config.hidden_dim))
{
}

void Pass::run(const char* tokens)
{
    launch("embed", {{m_rows.count, 1, 1}, {m_config.dim, 1, 1}}, weight("tok_embeddings.weight"), m_recorder[tokens],
           m_x);
    for (std::uint32_t i = 0; i < m_config.n_layers; ++i) layer("layers." + std::to_string(i) + ".", i);
    rmsnorm(last_row(), "norm.weight", 1);
    head(m_normed);
}

wg::Address Pass::scratch(const std::string& name, std::uint32_t columns)
{
    return m_recorder.alloc(name + std::to_string(m_rows.count), std::uint64_t{m_rows.count} * columns * sizeof(float));
}

wg::Launch Pass::each_of(std::uint32_t columns) const
{
    const std::uint32_t items = m_compiled.geometry.items;
    return {{m_rows.count * columns / items, 1, 1}, {items, 1, 1}};
}

void Pass::rmsnorm(Address x, const std::string& name, std::uint32_t rows)
{
    launch("rmsnorm", {{rows, 1, 1}, {m_compiled.geometry.norm_items, 1, 1}}, x, weight(name), m_normed);
}

void Pass::attention(std::uint32_t index)
{
    const Address cache = m_recorder["kv"] + index * m_config.kv_layer_bytes();
    const std::uint32_t pairs = m_config.head_dim() / 2;
    launch("rope", {{m_rows.count, m_config.n_heads, 1}, {pairs, 1, 1}}, m_q, m_rows.first);
    launch("store_kv", {{m_rows.count, m_config.n_kv_heads, 1}, {pairs, 1, 1}}, m_k, m_v, cache, m_rows.first,
           m_rows.length);
    launch("attention", {{m_rows.count, m_config.n_heads, 1}, {m_config.head_dim(), 1, 1}}, m_q, cache, m_mixed,
           m_rows.first, m_rows.length);
}

wg::Address Pass::last_row()
{
    if (m_rows.count == 1) return m_x;
    const Address last = m_recorder.alloc("last", m_config.dim * sizeof(float));
    launch("take_last_row", {{1, 1, 1}, {m_config.dim, 1, 1}}, m_x, last, m_rows.length,
           static_cast<std::int32_t>(m_rows.count));
    return last;
}

} // namespace llm
