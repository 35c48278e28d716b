// Tuned kernels: the fastest of a kernel's configurations (tile sizes, unrolling) on this device is found once and kept
// beside the entries (docs/tuning.md).
//
// A Tuner times the candidates, may search on from the best candidate within declared ranges, and stores the winner.
// Later processes read the winner and time nothing. A stored winner is used only for the same code (comments and
// include paths do not count), candidates, sizes, device and driver. Each process that runs the winner's code (not a
// replayed graph) checks that the results agree with those of the default configuration. If a check fails, the kernel
// is a miss, or runs with the default.
//
// Threads: several threads may use a Tuner and a Tuned; kernels are tuned one at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "warmgraph/base/dtype.hpp"
#include "warmgraph/stream.hpp"

namespace warmgraph {

/// The values of the parameters that a kernel is built with: {{"LANES", 4}, {"ROWS", 16}}. Each becomes a macro of the
/// kernel's program.
using TunedConfig = std::map<std::string, std::int64_t>;

/// Returns the macros of a configuration, to be added to a Program's options: "-D LANES=4 -D ROWS=16".
[[nodiscard]] WARMGRAPH_API std::string definitions_of(const TunedConfig& config);

/// The values that coordinate descent may give to a parameter, ascending.
struct TuningRange {
    std::string name;
    std::vector<std::int64_t> values;
};
/// Returns the values low, 2 low, 4 low ... up to high. invalid_argument: low is below 1, or high is below low.
[[nodiscard]] WARMGRAPH_API TuningRange powers_of_two(std::string name, std::int64_t low, std::int64_t high);

/// Memory that the kernel writes. The contents that it has when the work is made are restored before each run whose
/// results are compared.
struct TuningOutput {
    MemoryRef memory;
    DType dtype = f32; ///< integer results must be equal; floating-point ones may differ within the tolerance
};

/// The work that configurations are timed on.
struct TuningWork {
    /// Enqueues the kernel, once or as often as a model does, with the geometry of the configuration. It is called
    /// thousands of times in a row. An exception means that this configuration cannot be used.
    std::function<void(Stream&, const Program&, const TunedConfig&)> launch;
    std::vector<TuningOutput> outputs;
};

/// A kernel that has configurations.
struct TunableKernel {
    std::string name;                                 ///< letters, digits, '.', '_', '-'
    std::string source;                               ///< the program's source
    std::string options{};                            ///< the program's options without the configuration
    std::map<std::string, std::int64_t> problem{};    ///< sizes that the best configuration depends on
    std::vector<TunedConfig> candidates{};            ///< the first is the default; its results count as right
    std::vector<TuningRange> ranges{};                ///< the ranges of parameters for coordinate descent
    std::function<bool(const TunedConfig&)> admits{}; ///< whether descent may try a combination; empty: any
    /// Makes the memory and inputs. It is called before something is timed or validated, and not where a stored
    /// winner's graph is replayed. Its result is dropped afterwards.
    std::function<TuningWork()> work{};
    /// Floating-point results may differ from the default's by this share of their magnitude, or of the output's root
    /// mean square where that is more, plus absolute_tolerance.
    double relative_tolerance = 1e-4;
    double absolute_tolerance = 1e-6;
};

enum class TuningSearch : std::uint8_t {
    enumerate,          ///< times all candidates
    coordinate_descent, ///< times all candidates, then changes the best one step by step while it gets faster
};

/// When a stored winner is checked against the default's results. `at_first_run`: only before the program first runs as
/// code (not in a replayed graph); list the Tuned in Spec::tuned. Then a process that replays neither builds nor runs
/// the kernel for the check.
enum class TuningValidation : std::uint8_t { at_once, at_first_run };

/// Whether a winner that was found under another driver or runtime version is used.
enum class TuningDriver : std::uint8_t { same, any };

struct TuningOptions {
    TuningSearch search = TuningSearch::enumerate;
    TuningValidation validation = TuningValidation::at_once;
    TuningDriver driver = TuningDriver::same;
    std::uint32_t rounds = 7; ///< measurements of each configuration; its time is their median
    double min_gain = 0.03;   ///< a configuration must save this share of the time to be chosen over the default
    double batch_ms = 2;      ///< one measurement repeats runs for about this long, at most 1000 times
};

enum class TuningOutcome : std::uint8_t {
    tuned,   ///< configurations were timed here
    stored,  ///< the stored winner was read; nothing was timed
    untuned, ///< the default is used: the policy, a missing folder or a rejected winner; the reason says which
};
[[nodiscard]] WARMGRAPH_API std::string_view to_string(TuningOutcome outcome) noexcept;

struct TuningTiming {
    TunedConfig config;
    double ms = 0;            ///< time of one run, the median
    std::uint64_t rounds = 0; ///< number of measurements; 0: not timed
    std::string failed{};     ///< why the configuration cannot be used; else empty
};

struct TuningReport {
    std::string kernel;
    TuningOutcome outcome = TuningOutcome::untuned;
    std::string reason{};                ///< why no stored winner was used; empty for a plain hit
    TunedConfig config{};                ///< the configuration to use
    std::string found_by{};              ///< "enumeration" or "coordinate_descent"; empty: untuned
    double took_ms = 0;                  ///< time that tune() took in this process
    double search_ms = 0;                ///< time that the tuning took, in the process that did it
    double default_ms = 0, best_ms = 0;  ///< time of one run at the tuning; 0: untuned
    std::vector<TuningTiming> timings{}; ///< timings of all configurations that were tried, the default first
};

/// The configuration that Tuner::tune gave for a kernel. Cheap to copy; may outlive its Tuner.
class WARMGRAPH_API Tuned {
public:
    [[nodiscard]] const TunedConfig& config() const noexcept;
    [[nodiscard]] std::string definitions() const { return definitions_of(config()); }
    [[nodiscard]] const TuningReport& report() const noexcept;
    /// Builds and runs a stored winner and the default, and compares their results, once in a process.
    /// verification_failed: the winner does not run here or gives other results. It is removed from the folder, and
    /// Tuner::tune gives the default from then on; make the programs anew and wrap again. invalid_argument: a call
    /// within a wrapped function.
    void validate() const;

    struct Impl; ///< opaque

private:
    friend class Tuner;
    friend struct TunedAccess;
    explicit Tuned(std::shared_ptr<const Impl> impl) noexcept : m_impl(std::move(impl)) {}
    std::shared_ptr<const Impl> m_impl;
};

struct TuningStatistics {
    std::uint64_t hits = 0;     ///< kernels whose stored winner was used
    std::uint64_t misses = 0;   ///< kernels without a stored winner that could be used
    std::uint64_t tuned = 0;    ///< kernels that were timed
    std::uint64_t carried = 0;  ///< hits from the file of a TuningModule; the kernel had no file of its own
    std::uint64_t rejected = 0; ///< winners that failed their validation
    std::uint64_t faults = 0;   ///< files that were damaged, or that could not be read or written
    double tuning_ms = 0;       ///< spent on timing
    double load_ms = 0;         ///< spent on reading winners and on comparing them with the default
    double saved_ms = 0;        ///< time of the tunings that hits saved, minus load_ms
    std::vector<std::string> miss_reasons{}; ///< reasons of misses ("matmul: no stored configuration"), at most 64
};

/// The kernels of one module (a model, or a program with several kernels) while it is compiled. The configurations that
/// an earlier start found for this module are loaded ahead from one file. They are used for a kernel that has no usable
/// file of its own; a kernel's own file wins, because it is newer. end() writes the configurations of all kernels that
/// were tuned or hit into the module's file. A later start, or another model with the same kernels, finds them there.
/// One thread at a time may use it.
class WARMGRAPH_API TuningModule {
public:
    TuningModule(TuningModule&&) noexcept;
    TuningModule& operator=(TuningModule&&) noexcept;
    ~TuningModule(); ///< calls end()

    /// Does the same as Tuner::tune. invalid_argument: the module has ended.
    [[nodiscard]] Tuned tune(const TunableKernel& kernel);
    /// Returns how many configurations were loaded ahead.
    [[nodiscard]] std::size_t loaded() const noexcept;
    /// Stores the module's configurations, if some are new and the policy allows it. A failure is counted and logged. A
    /// second call does nothing.
    void end() noexcept;

    struct Impl; ///< opaque

private:
    friend class Tuner;
    explicit TuningModule(std::unique_ptr<Impl> impl) noexcept;
    std::unique_ptr<Impl> m_impl;
};

/// Tunes the kernels of a cache on one device; Cache::tuner makes it. It has the cache's policy: under read_only,
/// require_hit and off it tunes nothing (under require_hit a miss throws miss_forbidden), under refresh it tunes again.
class WARMGRAPH_API Tuner {
public:
    /// Returns the stored winner; without one it tunes the kernel now and stores the winner. Later calls with the same
    /// kernel return the same. invalid_argument: candidates or ranges that make no sense. A failure of the default
    /// configuration is thrown; other configurations that fail are left out. A candidate that writes to wrong addresses
    /// may end the process.
    [[nodiscard]] Tuned tune(const TunableKernel& kernel);

    /// Begins a module. `name`: letters, digits, '.', '_', '-'. `code` (sources, a version) tells modules of one name
    /// apart; comments do not count. invalid_argument: a bad name.
    [[nodiscard]] TuningModule begin_module(const std::string& name, std::string_view code = "");

    /// Reads the stored winners of all kernels that this tuner tuned or hit, and returns the names of the kernels whose
    /// winner changed; tune() returns the new winners. With it all ranks use one winner, the last that was written: let
    /// each rank tune, wait for all ranks (with a barrier of your own), then let each rank reload before it makes
    /// programs.
    std::vector<std::string> reload();

    [[nodiscard]] TuningStatistics statistics() const;

    struct Impl; ///< opaque

private:
    friend class Cache;
    friend struct TunerAccess;
    explicit Tuner(std::shared_ptr<Impl> impl) noexcept : m_impl(std::move(impl)) {}
    std::shared_ptr<Impl> m_impl;
};

} // namespace warmgraph
