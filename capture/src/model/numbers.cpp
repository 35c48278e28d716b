#include "warmgraph/capture/numbers.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <unordered_set>
#include <utility>

#include "warmgraph/guards/number_bits.hpp"

namespace warmgraph {

namespace {

// Ranges up to this size are probed completely, larger ranges at this many values.
constexpr std::size_t k_exhaustive = 4096;
constexpr std::size_t k_coarse_random = 6; // random values among the values that are always probed
constexpr std::uint64_t k_middle = 256, k_ends = 130, k_multiples = 8;
constexpr int k_exponents = 24, k_wholes = 32;
constexpr std::size_t k_float_random = 256;

/// Collects values of a range without duplicates, in the order in which they were added.
template <class T>
class Probes {
public:
    Probes(T low, T high) : m_low(low), m_high(high) {}
    void add(T value)
    {
        if (value >= m_low && value <= m_high && m_known.insert(to_bits(value)).second)
            m_values.push_back(to_bits(value));
    }
    [[nodiscard]] std::size_t size() const noexcept { return m_values.size(); }
    [[nodiscard]] std::vector<std::uint64_t> take() { return std::move(m_values); }

private:
    T m_low, m_high;
    std::unordered_set<std::uint64_t> m_known;
    std::vector<std::uint64_t> m_values;
};

/// Returns low + distance; signed whole numbers wrap like unsigned ones.
template <class T>
T behind(T low, std::uint64_t distance) noexcept
{
    return static_cast<T>(static_cast<std::uint64_t>(low) + distance);
}

template <class T>
void add_coarse(Probes<T>& probes, T low, T high, std::uint64_t span)
{
    for (const T value : {low, high, behind(low, 1), behind(high, ~0ULL), behind(low, span / 2)}) probes.add(value);
    std::mt19937_64 random{span}; // seeded by the range: every recording of one interface probes the same values
    for (std::size_t i = 0; i < k_coarse_random && span != 0; ++i) probes.add(behind(low, random() % span));
}

template <class T>
void add_structured(Probes<T>& probes, T low, T high, std::uint64_t span)
{
    for (std::uint64_t i = 0; i < std::min(k_middle, span); ++i) {
        const std::uint64_t from = span / 2 - std::min(span / 2, k_middle / 2);
        probes.add(behind(low, from + i));
    }
    for (std::uint64_t i = 0; i < std::min(k_ends, span); ++i) {
        probes.add(behind(low, i));
        probes.add(behind(high, ~i + 1));
    }
    for (unsigned bit = 0; bit < std::numeric_limits<T>::digits; ++bit)
        for (const std::uint64_t near : {~0ULL, 0ULL, 1ULL}) probes.add(behind(static_cast<T>(T{1} << bit), near));
    for (const int value : {0, 1, -1})
        if (std::in_range<T>(value)) probes.add(static_cast<T>(value));
    for (const std::uint64_t step : {16ULL, 64ULL, 128ULL, 256ULL}) {
        const std::uint64_t first = (step - static_cast<std::uint64_t>(low) % step) % step;
        for (std::uint64_t i = 0; i < k_multiples && first + i * step <= span; ++i)
            probes.add(behind(low, first + i * step));
    }
}

template <class T>
    requires std::is_integral_v<T>
void add_probes(Probes<T>& probes, T low, T high, std::size_t& least)
{
    const auto span = static_cast<std::uint64_t>(high) - static_cast<std::uint64_t>(low);
    add_coarse(probes, low, high, span);
    least = probes.size();
    add_structured(probes, low, high, span);
    if (span < k_exhaustive) {
        for (std::uint64_t i = 0; i <= span; ++i) probes.add(behind(low, i));
        return;
    }
    std::mt19937_64 random{~span};
    while (probes.size() < k_exhaustive) probes.add(behind(low, random() % span));
}

template <class T>
    requires std::is_floating_point_v<T>
void add_probes(Probes<T>& probes, T low, T high, std::size_t& least)
{
    std::mt19937_64 random{1};
    const auto add_random = [&](std::size_t count) {
        for (std::size_t i = 0; i < count; ++i) {
            const T t = std::uniform_real_distribution<T>{0, 1}(random);
            // Low + t * (high - low) would overflow if the range is the whole type.
            probes.add(low * (1 - t) + high * t);
        }
    };
    // BLAS does not read C if beta is 0, and does not multiply if alpha is 1, so these values are tried first.
    for (const T value : {low, high, std::midpoint(low, high), T{0}, T{1}, T{-1}}) probes.add(value);
    add_random(k_coarse_random);
    least = probes.size();
    for (const T value : {T{0}, T{1}, T{-1}, low, high}) {
        probes.add(std::nextafter(value, std::numeric_limits<T>::infinity()));
        probes.add(std::nextafter(value, -std::numeric_limits<T>::infinity()));
    }
    for (int exponent = -k_exponents; exponent <= k_exponents; ++exponent) {
        probes.add(std::ldexp(T{1}, exponent));
        probes.add(-std::ldexp(T{1}, exponent));
    }
    for (int whole = 2; whole <= k_wholes; ++whole) {
        probes.add(static_cast<T>(whole));
        probes.add(static_cast<T>(-whole));
    }
    if (low < high) add_random(k_float_random);
}

/// "1,000,001"
std::string grouped(std::uint64_t number)
{
    std::string text = std::to_string(number);
    for (std::size_t at = text.size(); at > 3; at -= 3) text.insert(at - 3, 1, ',');
    return text;
}

} // namespace

ProbePlan plan_probes(DType type, const ScalarRange& range, std::uint64_t current)
{
    ProbePlan plan;
    plan.values = visit_number(type, 0, [&]<class T>(T) {
        const T low = from_bits<T>(range.low), high = from_bits<T>(range.high);
        if constexpr (std::is_integral_v<T>)
            plan.total = static_cast<std::uint64_t>(high) - static_cast<std::uint64_t>(low) + 1;
        Probes<T> probes{low, high};
        add_probes(probes, low, high, plan.least);
        return probes.take();
    });
    const auto own = std::ranges::find(plan.values, current);
    if (own == plan.values.end()) return plan;
    if (static_cast<std::size_t>(own - plan.values.begin()) < plan.least) --plan.least;
    plan.values.erase(own);
    return plan;
}

std::string proof_text(const ProbePlan& plan, std::size_t probed)
{
    if (plan.is_exhaustive() && probed == plan.values.size())
        return fmt::format("proven at all {} values", grouped(plan.total));
    if (plan.total == 0) return fmt::format("sampled at {} values", grouped(probed + 1));
    return fmt::format("sampled at {} of {} values", grouped(probed + 1), grouped(plan.total));
}

} // namespace warmgraph
