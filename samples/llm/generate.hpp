// Greedy generation with the two cached functions, and the times of their calls.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model.hpp"
#include <warmgraph/warmgraph.hpp>

namespace llm {

/// Times of one function's calls, from the upload of its token to its logits on the host.
struct CallTimes {
    double first_ms = 0;
    std::vector<double> later_us;

    void add(double milliseconds);
    [[nodiscard]] std::optional<double> median_us() const;
    [[nodiscard]] std::uint64_t calls() const noexcept { return m_calls; }

private:
    std::uint64_t m_calls = 0;
};

/// One sequence. The model and the cache must outlive it.
class Session {
public:
    Session(const warmgraph::Device& device, const Model& model, warmgraph::Cache& cache);

    /// Returns the logits after a prompt; starts a new sequence. Throws std::invalid_argument when no bucket fits.
    [[nodiscard]] std::vector<float> prompt(const std::vector<std::int32_t>& tokens);
    /// Returns the logits after one more token at `position`.
    [[nodiscard]] std::vector<float> decode(std::int32_t token, std::int32_t position);

    [[nodiscard]] warmgraph::Report prompt_report() const { return m_prompt.report(); }
    [[nodiscard]] warmgraph::Report decode_report() const { return m_decode.report(); }
    [[nodiscard]] const CallTimes& prompt_times() const noexcept { return m_prompt_times; }
    [[nodiscard]] const CallTimes& decode_times() const noexcept { return m_decode_times; }
    [[nodiscard]] std::uint32_t max_tokens() const noexcept { return m_max_tokens; }

private:
    [[nodiscard]] std::vector<float> read_logits() const;

    warmgraph::Device m_device;
    warmgraph::Buffer m_tokens; ///< i32[longest bucket]
    warmgraph::Buffer m_token;  ///< i32[1]
    warmgraph::Buffer m_logits; ///< f32[vocab]
    warmgraph::Function m_prompt;
    warmgraph::Function m_decode;
    CallTimes m_prompt_times;
    CallTimes m_decode_times;
    std::uint32_t m_max_tokens;
};

/// Returns the most likely token; of equally likely tokens, the first.
[[nodiscard]] std::int32_t argmax(const std::vector<float>& logits);

/// Generates tokens after a sequence of `length` tokens, whose last logits are `logits`. Generates at most `count`
/// tokens, and ends before the token `stop` or at the model's longest sequence.
[[nodiscard]] std::vector<std::int32_t> generate(Session& session, std::vector<float> logits, std::size_t length,
                                                 std::uint32_t count, std::optional<std::int32_t> stop);

} // namespace llm
