#include "warmgraph/autotune/tuning_bench.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <exception>

#include "warmgraph/base/log.hpp"
#include "warmgraph/device/programs.hpp"
#include "warmgraph/throwing.hpp"

namespace warmgraph {
namespace {

constexpr double k_most_repeats = 1000;

float half_to_float(std::uint16_t half)
{
    const std::uint32_t sign = (half & 0x8000U) << 16U;
    const int exponent = (half >> 10U) & 0x1F;
    const std::uint32_t mantissa = half & 0x3FFU;
    if (exponent == 0x1F) return std::bit_cast<float>(sign | 0x7F800000U | (mantissa << 13U));
    if (exponent == 0) return std::ldexp(static_cast<float>(mantissa), -24) * (sign != 0 ? -1.0f : 1.0f);
    return std::bit_cast<float>(sign | (static_cast<std::uint32_t>(exponent + 112) << 23U) | (mantissa << 13U));
}

/// Returns element `index`; nullopt if `dtype` is not a floating-point type.
std::optional<double> number_at(DType dtype, ByteView bytes, std::size_t index)
{
    const std::size_t at = index * size_of(dtype);
    switch (dtype) {
    case DType::f32: return load<float>(bytes, at);
    case DType::f64: return load<double>(bytes, at);
    case DType::f16: return half_to_float(load<std::uint16_t>(bytes, at));
    case DType::bf16: return std::bit_cast<float>(static_cast<std::uint32_t>(load<std::uint16_t>(bytes, at)) << 16U);
    default: return std::nullopt;
    }
}

bool is_same(double expected, double actual, double allowed)
{
    if (std::isnan(expected) || std::isnan(actual)) return std::isnan(expected) && std::isnan(actual);
    return expected == actual || std::abs(expected - actual) <= allowed; // infinities of one sign are equal
}

std::optional<std::string> first_other_byte(ByteView expected, ByteView actual, std::size_t element)
{
    const auto other = std::ranges::mismatch(expected, actual);
    if (other.in1 == expected.end()) return std::nullopt;
    return fmt::format("element {} is another", static_cast<std::size_t>(other.in1 - expected.begin()) / element);
}

} // namespace

std::optional<std::string> first_difference(DType dtype, ByteView expected, ByteView actual, double relative,
                                            double absolute)
{
    const std::size_t count = expected.size() / size_of(dtype);
    if (!number_at(dtype, Bytes(8), 0)) return first_other_byte(expected, actual, size_of(dtype));
    double squares = 0;
    for (std::size_t i = 0; i < count; ++i) {
        const double wanted = *number_at(dtype, expected, i);
        if (std::isfinite(wanted)) squares += wanted * wanted / static_cast<double>(count);
    }
    // Root mean square; an element that is near zero by cancellation is as inexact as other elements.
    const double usual = std::sqrt(squares);
    for (std::size_t i = 0; i < count; ++i) {
        const double wanted = *number_at(dtype, expected, i), is = *number_at(dtype, actual, i);
        const double scale = std::isfinite(wanted) ? std::max(usual, std::abs(wanted)) : usual;
        const double allowed = absolute + relative * scale;
        if (!is_same(wanted, is, allowed))
            return fmt::format("element {} is {}, expected {} within {:.3g}", i, is, wanted, allowed);
    }
    return std::nullopt;
}

namespace {

/// Prepares the device for recordings. The kernels are recorded later, so device code that libraries load for them must
/// be kept from now on.
Device prepared(const Device& device)
{
    try {
        device.prepare_recording();
    } catch (const Exception& error) {
        // Not an error here: a recording will report it.
        log().debug("tuning continues, but recordings may be refused: {}", error.what());
    }
    return device;
}

} // namespace

namespace {

/// Returns `programs` with a policy that stores no programs.
ProgramUse unkept(ProgramUse programs)
{
    if (programs.policy == Policy::read_write) programs.policy = Policy::read_only;
    if (programs.policy == Policy::refresh) programs.policy = Policy::off;
    return programs;
}

} // namespace

TuningBench::TuningBench(const Device& device, const TunableKernel& kernel, double batch_ms, const Clock& clock,
                         const ProgramUse& programs)
    : m_device(prepared(device)),
      m_kernel(kernel),
      m_batch_ms(batch_ms),
      m_clock(clock),
      m_programs(unkept(programs)),
      m_work(kernel.work()),
      m_stream(device.stream()),
      m_before(read_outputs())
{
    if (!m_work.launch || m_work.outputs.empty())
        raise({ErrorCode::invalid_argument, fmt::format("the work of '{}' has {}, expected both a launch and outputs: "
                                                        "without outputs a wrong configuration cannot be detected",
                                                        kernel.name, m_work.launch ? "no outputs" : "no launch")});
}

Program TuningBench::program_of(const TunedConfig& config) const
{
    const std::string space = m_kernel.options.empty() ? "" : " ";
    return m_device.program(m_kernel.name, m_kernel.source, m_kernel.options + space + definitions_of(config));
}

void TuningBench::keep(const TunedConfig& config) noexcept
{
    const auto built = m_built.find(config);
    if (built != m_built.end() && m_programs.programs)
        m_programs.programs->keep(ProgramAccess::impl(built->second.program));
}

std::optional<std::pair<Digest, double>> TuningBench::compiled(const TunedConfig& config) const
{
    const auto built = m_built.find(config);
    return built != m_built.end() ? built->second.compiled : std::nullopt;
}

TuningBench::Contents TuningBench::read_outputs() const
{
    Contents contents;
    for (const TuningOutput& output : m_work.outputs) {
        auto& bytes = contents.emplace_back(output.memory.size);
        value_or_raise(DeviceAccess::impl(m_device)->device->download(bytes, output.memory.address));
    }
    return contents;
}

void TuningBench::put_back(const Contents& contents)
{
    for (std::size_t i = 0; i < contents.size(); ++i)
        value_or_raise(DeviceAccess::impl(m_device)->device->upload(m_work.outputs[i].memory.address, contents[i]));
}

Result<double> TuningBench::run(const Program& program, const TunedConfig& config, std::uint32_t times)
try {
    // Libraries use the thread's current context, whichever stream the work is in.
    const auto current = DeviceAccess::impl(m_device)->device->enter();
    const ProgramScope scope{&m_programs};
    const auto begin = m_clock.steady();
    for (std::uint32_t i = 0; i < times; ++i) m_work.launch(m_stream, program, config);
    m_stream.synchronize();
    return Milliseconds{m_clock.steady() - begin}.count() / times;
} catch (const Exception& error) {
    return std::unexpected(Error{error.code(), error.what()});
} catch (const std::exception& error) {
    return fail(ErrorCode::invalid_argument, "the launch of its work threw: {}", error.what());
}

Result<void> TuningBench::prepare(const TunedConfig& config)
{
    if (m_built.contains(config)) return {};
    BuiltProgram built{program_of(config)};
    // The first run includes building the program. The second run's time gives the number of runs for a measurement.
    const auto began = m_clock.steady();
    const auto first = run(built.program, config, 1);
    if (!first) return std::unexpected(first.error());
    const auto second = run(built.program, config, 1);
    if (!second) return std::unexpected(second.error());
    built.repeats = static_cast<std::uint32_t>(std::clamp(m_batch_ms / std::max(*second, 1e-6), 1.0, k_most_repeats));
    if (const auto& module = ProgramAccess::impl(built.program).module; m_programs.programs && module)
        for (const auto& compiled : m_programs.programs->share_out({module}, began, *first - *second))
            built.compiled.emplace(compiled.program, compiled.ms);
    m_built.emplace(config, std::move(built));
    return {};
}

Result<TuningBench::Contents> TuningBench::results_of(const Program& program, const TunedConfig& config)
try {
    put_back(m_before);
    if (auto ran = run(program, config, 1); !ran) return std::unexpected(ran.error());
    return read_outputs();
} catch (const Exception& error) {
    return std::unexpected(Error{error.code(), error.what()});
}

Result<std::optional<std::string>> TuningBench::difference(const TunedConfig& config)
{
    const TunedConfig& standard = m_kernel.candidates.front();
    if (!m_expected) {
        auto expected = results_of(m_built.at(standard).program, standard);
        if (!expected) return std::unexpected(expected.error());
        m_expected = std::move(*expected);
    }
    const auto results = results_of(m_built.at(config).program, config);
    if (!results) return std::unexpected(results.error());
    for (std::size_t i = 0; i < results->size(); ++i) {
        const auto other = first_difference(m_work.outputs[i].dtype, (*m_expected)[i], (*results)[i],
                                            m_kernel.relative_tolerance, m_kernel.absolute_tolerance);
        if (other) return fmt::format("output {}: {}", i, *other);
    }
    return std::nullopt;
}

Result<double> TuningBench::time(const TunedConfig& config)
{
    const BuiltProgram& built = m_built.at(config);
    return run(built.program, config, built.repeats);
}

} // namespace warmgraph
