// The Workbench on a device: builds a kernel's configurations, runs and times them, and compares their results.
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "warmgraph/autotune/search.hpp"
#include "warmgraph/device/device_impl.hpp"
#include "warmgraph/tuning.hpp"

namespace warmgraph {

/// The first difference from the default's results; nullopt: none. REQUIRES: both have type `dtype` and equal sizes.
[[nodiscard]] std::optional<std::string> first_difference(DType dtype, ByteView expected, ByteView actual,
                                                          double relative, double absolute);

class TuningBench final : public autotune::Workbench {
public:
    /// Makes the kernel's work; its exceptions pass through. `kernel` and `clock` must outlive this object. Compiled
    /// programs are not stored until keep(), because only one candidate wins.
    TuningBench(const Device& device, const TunableKernel& kernel, double batch_ms, const Clock& clock,
                const ProgramUse& programs);

    /// Stores this configuration's compiled program. REQUIRES: it was prepared.
    void keep(const TunedConfig& config) noexcept;

    /// The program's key and compile time; nullopt when it was not compiled here.
    [[nodiscard]] std::optional<std::pair<Digest, double>> compiled(const TunedConfig& config) const;

    [[nodiscard]] Result<void> prepare(const TunedConfig& config) override;
    [[nodiscard]] Result<std::optional<std::string>> difference(const TunedConfig& config) override;
    [[nodiscard]] Result<double> time(const TunedConfig& config) override;

private:
    struct Built {
        Program program;
        std::uint32_t repeats = 1; ///< runs in one measurement
        std::optional<std::pair<Digest, double>> compiled{};
    };
    using Contents = std::vector<std::vector<std::byte>>; ///< by output

    [[nodiscard]] Program program_of(const TunedConfig& config) const;
    /// Turns exceptions of the program and the launch into errors.
    [[nodiscard]] Result<double> run(const Program& program, const TunedConfig& config, std::uint32_t times);
    [[nodiscard]] Result<Contents> results_of(const Program& program, const TunedConfig& config);
    [[nodiscard]] Contents read_outputs() const;
    void put_back(const Contents& contents);

    Device m_device;
    const TunableKernel& m_kernel;
    double m_batch_ms;
    const Clock& m_clock;
    ProgramUse m_programs;
    TuningWork m_work;
    Stream m_stream;
    Contents m_before;
    std::optional<Contents> m_expected; ///< the default's results
    std::map<TunedConfig, Built> m_built;
};

} // namespace warmgraph
