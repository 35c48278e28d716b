// The Workbench on a device: builds a kernel's configurations, runs and times them, and compares their results.
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "warmgraph/autotune/search.hpp"
#include "warmgraph/device/device_impl.hpp"
#include "warmgraph/tuning.hpp"

namespace warmgraph {

/// Describes the first difference between the default's results (`expected`) and the results `actual`; nullopt: they
/// agree. REQUIRES: both have type `dtype` and equal sizes.
[[nodiscard]] std::optional<std::string> first_difference(DType dtype, ByteView expected, ByteView actual,
                                                          double relative, double absolute);

class TuningBench final : public autotune::Workbench {
public:
    /// Calls the kernel's function that makes its work; exceptions of that function pass through. `kernel` and `clock`
    /// must outlive this object. Compiled programs are not stored until keep(), because only one candidate wins.
    TuningBench(const Device& device, const TunableKernel& kernel, double batch_ms, const Clock& clock,
                const ProgramUse& programs);

    /// Stores this configuration's compiled program. REQUIRES: the configuration was prepared.
    void keep(const TunedConfig& config) noexcept;

    /// Returns the key and the compile time of the configuration's program; nullopt if the program was not compiled
    /// here.
    [[nodiscard]] std::optional<std::pair<Digest, double>> compiled(const TunedConfig& config) const;

    [[nodiscard]] Result<void> prepare(const TunedConfig& config) override;
    [[nodiscard]] Result<std::optional<std::string>> difference(const TunedConfig& config) override;
    [[nodiscard]] Result<double> time(const TunedConfig& config) override;

private:
    struct BuiltProgram {
        Program program;
        std::uint32_t repeats = 1; ///< number of runs in one measurement
        std::optional<std::pair<Digest, double>> compiled{};
    };
    using Contents = std::vector<std::vector<std::byte>>; ///< the contents of each output

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
    std::map<TunedConfig, BuiltProgram> m_built;
};

} // namespace warmgraph
