#include "generate.hpp"

#include <algorithm>
#include <chrono>
#include <stdexcept>

#include <fmt/format.h>

namespace llm {
namespace {

namespace wg = warmgraph;
using Clock = std::chrono::steady_clock;

double milliseconds_since(Clock::time_point begin)
{
    return std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
}

} // namespace

void CallTimes::add(double milliseconds)
{
    if (m_calls++ == 0) {
        first_ms = milliseconds;
    } else {
        later_us.push_back(1000.0 * milliseconds);
    }
}

std::optional<double> CallTimes::median_us() const
{
    if (later_us.empty()) return std::nullopt;
    std::vector<double> sorted = later_us;
    const auto middle = sorted.begin() + static_cast<std::ptrdiff_t>(sorted.size() / 2);
    std::nth_element(sorted.begin(), middle, sorted.end());
    return *middle;
}

Session::Session(const wg::Device& device, const Model& model, wg::Cache& cache)
    : m_device(device),
      m_tokens(device.allocate(k_buckets.back() * sizeof(std::int32_t))),
      m_token(device.allocate(sizeof(std::int32_t))),
      m_logits(device.allocate(model.config().vocab_size * sizeof(float))),
      m_prompt(cache.wrap("prompt", device, model.prompt_spec(), [&model](wg::Recorder& r) { model.prompt(r); })),
      m_decode(cache.wrap("decode", device, model.decode_spec(), [&model](wg::Recorder& r) { model.decode(r); })),
      m_max_tokens(model.config().max_seq_len)
{
}

std::vector<float> Session::read_logits() const
{
    m_device.synchronize(); // a read does not wait for calls
    return m_logits.read<float>();
}

std::vector<float> Session::prompt(const std::vector<std::int32_t>& tokens)
{
    const auto begin = Clock::now();
    const std::uint32_t bucket = bucket_for(tokens.size());
    std::vector<std::int32_t> padded = tokens;
    padded.resize(bucket, 0);
    m_tokens.write(padded);
    m_prompt({{"tokens", wg::Tensor{m_tokens, wg::i32, {bucket}, {}}},
              {"logits", m_logits},
              {"length", static_cast<std::int32_t>(tokens.size())}});
    std::vector<float> logits = read_logits();
    m_prompt_times.add(milliseconds_since(begin));
    return logits;
}

std::vector<float> Session::decode(std::int32_t token, std::int32_t position)
{
    if (position < 0 || static_cast<std::uint32_t>(position) >= m_max_tokens) {
        throw std::invalid_argument(fmt::format("position {} is outside 0 to {}", position, m_max_tokens - 1));
    }
    const auto begin = Clock::now();
    m_token.write(std::vector<std::int32_t>{token});
    m_decode({{"token", m_token}, {"logits", m_logits}, {"position", position}});
    std::vector<float> logits = read_logits();
    m_decode_times.add(milliseconds_since(begin));
    return logits;
}

std::int32_t argmax(const std::vector<float>& logits)
{
    return static_cast<std::int32_t>(std::max_element(logits.begin(), logits.end()) - logits.begin());
}

std::vector<std::int32_t> generate(Session& session, std::vector<float> logits, std::size_t length, std::uint32_t count,
                                   std::optional<std::int32_t> stop)
{
    std::vector<std::int32_t> tokens;
    for (; tokens.size() < count; ++length) {
        const std::int32_t token = argmax(logits);
        if (token == stop) break;
        tokens.push_back(token);
        if (tokens.size() == count || length == session.max_tokens()) break;
        logits = session.decode(token, static_cast<std::int32_t>(length));
    }
    return tokens;
}

} // namespace llm
