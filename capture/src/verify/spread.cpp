#include "verify/spread.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

namespace warmgraph {

namespace {

bool is_float(DType type) noexcept
{
    return type == DType::f16 || type == DType::bf16 || type == DType::f32 || type == DType::f64;
}

/// IEEE 754 binary16 and bfloat16 by their bits: C++23's own types for them are missing from the compilers we support.
double half_value(std::uint16_t bits) noexcept
{
    const int exponent = bits >> 10 & 31;
    const double fraction = bits & 1023, sign = (bits & 0x8000) != 0 ? -1 : 1;
    if (exponent == 31) return fraction != 0 ? NAN : sign * INFINITY;
    return sign * (exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(fraction + 1024, exponent - 25));
}

double element(DType type, const Bytes& bytes, std::size_t index) noexcept
{
    switch (type) {
    case DType::f64: return load<double>(bytes, index * 8);
    case DType::f32: return load<float>(bytes, index * 4);
    case DType::bf16:
        return std::bit_cast<float>(static_cast<std::uint32_t>(load<std::uint16_t>(bytes, index * 2)) << 16);
    default: return half_value(load<std::uint16_t>(bytes, index * 2));
    }
}

} // namespace

std::size_t Spread::add(Outcomes outcomes)
{
    ++m_runs;
    const auto known = std::ranges::find(m_distinct, outcomes);
    const auto index = static_cast<std::size_t>(known - m_distinct.begin());
    if (known == m_distinct.end()) m_distinct.push_back(std::move(outcomes));
    return index;
}

Result<void> Spread::measure()
{
    m_tolerance.assign(m_types.size(), 0.0);
    for (std::size_t r = 0; r < m_types.size(); ++r) {
        for (const Outcomes& run : m_distinct) {
            if (run[r] == m_distinct.front()[r]) continue;
            const auto& name = m_interface.regions[r].name;
            if (!is_float(m_types[r]))
                return fail(ErrorCode::not_recordable,
                            "it gives different contents of '{}' ({}) for the same inputs: it reads memory it did not "
                            "write, or is nondeterministic in "
                            "data that has no tolerance",
                            name, to_string(m_types[r]));
            for (std::size_t i = 0; i < run[r].size() / size_of(m_types[r]); ++i) {
                const double a = element(m_types[r], run[r], i), b = element(m_types[r], m_distinct.front()[r], i);
                if (std::isnan(a) && std::isnan(b)) continue;
                if (a == b) continue;
                const double difference = std::abs(a - b);
                if (!std::isfinite(difference))
                    return fail(
                        ErrorCode::not_recordable,
                        "it gives '{}'[{}] = {} and then {} for the same inputs: it reads memory it did not write",
                        name, i, b, a);
                // Against the first run only: any two runs are then at most twice this apart, and accept() measures from each run.
                m_tolerance[r] = std::max(m_tolerance[r], difference);
            }
        }
    }
    return {};
}

Result<void> Spread::accept(const Outcomes& replay) const
{
    for (std::size_t r = 0; r < m_types.size(); ++r) {
        if (std::ranges::any_of(m_distinct, [&](const Outcomes& run) { return run[r] == replay[r]; })) continue;
        const auto& name = m_interface.regions[r].name;
        if (!is_float(m_types[r])) {
            const auto at = std::ranges::mismatch(replay[r], m_distinct.front()[r]).in1 - replay[r].begin();
            return fail(ErrorCode::verification_failed,
                        "the restored graph leaves '{}' different from the function's own at byte {}", name, at);
        }
        for (std::size_t i = 0; i < replay[r].size() / size_of(m_types[r]); ++i) {
            const double value = element(m_types[r], replay[r], i);
            const bool within = std::ranges::any_of(m_distinct, [&](const Outcomes& run) {
                const double own = element(m_types[r], run[r], i);
                return value == own || (std::isnan(value) && std::isnan(own)) ||
                       std::abs(value - own) <= m_tolerance[r];
            });
            if (!within)
                return fail(
                    ErrorCode::verification_failed,
                    "the restored graph gives '{}'[{}] = {}, the function itself {} (spread {:.3g} over {} runs)", name,
                    i, value, element(m_types[r], m_distinct.front()[r], i), m_tolerance[r], m_runs);
        }
    }
    return {};
}

std::string Spread::text() const
{
    const double worst = m_tolerance.empty() ? 0 : *std::ranges::max_element(m_tolerance);
    if (is_bitwise()) return fmt::format("bitwise ({} runs)", m_runs);
    return fmt::format("within spread {:.2g} ({} runs)", worst, m_runs);
}

} // namespace warmgraph
