// Tuned kernels: which of a kernel's configurations (tile sizes, unrolling) is the fastest on this device, found once and
// kept beside the entries (docs/tuning.md).
//
// A Tuner times the candidates, or walks from the best of them through declared ranges, and stores the winner. Later
// processes read it and time nothing. A stored winner is used only for the same code (comments and include paths do not
// count), the same candidates, sizes, device and driver; and only where its results are those of the default
// configuration, which it is held to in each process that runs it as code. Anything else is a miss, or the default.
//
// Threads: a Tuner and a Tuned may be used from several threads; kernels are tuned one at a time.
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

/// Values of the parameters that a kernel is built with: {{"LANES", 4}, {"ROWS", 16}}. Each becomes a macro of its
/// program: "-D LANES=4 -D ROWS=16".
using TunedConfig = std::map<std::string, std::int64_t>;

/// "-D LANES=4 -D ROWS=16": to be added to a Program's options.
[[nodiscard]] WARMGRAPH_API std::string definitions_of(const TunedConfig& config);

/// Values that coordinate descent may give a parameter, ascending.
struct TuningRange {
    std::string name;
    std::vector<std::int64_t> values;
};
/// low, 2 low, 4 low ... up to high. invalid_argument: low below 1, high below low.
[[nodiscard]] WARMGRAPH_API TuningRange powers_of_two(std::string name, std::int64_t low, std::int64_t high);

/// Memory that the kernel writes. What it holds when the work is made is put back before each run whose results count.
struct TuningOutput {
    MemoryRef memory;
    DType dtype = f32; ///< integers are compared to the bit
};

/// What configurations are timed on.
struct TuningWork {
    /// Enqueues the kernel, once or as often as a model does, with the geometry that belongs to the configuration. Run
    /// thousands of times in a row. What it throws means that this configuration cannot be used.
    std::function<void(Stream&, const Program&, const TunedConfig&)> launch;
    std::vector<TuningOutput> outputs;
};

/// A kernel that has configurations.
struct TunableKernel {
    std::string name;                                 ///< letters, digits, '.', '_', '-'
    std::string source;                               ///< of its program
    std::string options{};                            ///< without the configuration
    std::map<std::string, std::int64_t> problem{};    ///< sizes that the best configuration depends on
    std::vector<TunedConfig> candidates{};            ///< the first is the default, which is taken for right
    std::vector<TuningRange> ranges{};                ///< for coordinate descent
    std::function<bool(const TunedConfig&)> admits{}; ///< combinations that descent may try; empty: all
    /// Makes memory and inputs. Called when something is to be timed or validated, and not where a stored winner's graph
    /// is replayed; dropped afterwards.
    std::function<TuningWork()> work{};
    /// Floating-point results may differ from the default's by this share of their magnitude, or of the output's root mean
    /// square where that is more...
    double relative_tolerance = 1e-4;
    double absolute_tolerance = 1e-6; ///< ... and by this besides
};

enum class TuningSearch : std::uint8_t {
    enumerate,          ///< time all candidates
    coordinate_descent, ///< then change one parameter at a time within its range, as long as it becomes faster
};

/// When a stored winner is held to the default's results. `at_first_run`: only where the program is to run as code:
/// name the Tuned in Spec::tuned. A process that replays neither builds nor runs it then.
enum class TuningValidation : std::uint8_t { at_once, at_first_run };

/// Whether a winner of another driver or runtime version is used.
enum class TuningDriver : std::uint8_t { same, any };

struct TuningOptions {
    TuningSearch search = TuningSearch::enumerate;
    TuningValidation validation = TuningValidation::at_once;
    TuningDriver driver = TuningDriver::same;
    std::uint32_t rounds = 7; ///< measurements of each configuration; its time is their median
    double min_gain = 0.03;   ///< share of the time that a configuration must save to be chosen over the default
    double batch_ms = 2;      ///< runs are repeated for about so long in one measurement, at most 1000 times
};

enum class TuningOutcome : std::uint8_t {
    tuned,   ///< timed here
    stored,  ///< read; nothing was timed
    untuned, ///< the default: policy, no folder to keep it in, or a winner that was rejected. The reason says it
};
[[nodiscard]] WARMGRAPH_API std::string_view to_string(TuningOutcome outcome) noexcept;

struct TuningTiming {
    TunedConfig config;
    double ms = 0;            ///< median of one run
    std::uint64_t rounds = 0; ///< 0: not timed
    std::string failed{};     ///< why it cannot be used; else empty
};

struct TuningReport {
    std::string kernel;
    TuningOutcome outcome = TuningOutcome::untuned;
    std::string reason{};                ///< why nothing stored was used; empty for a plain hit
    TunedConfig config{};                ///< to be used
    std::string found_by{};              ///< "enumeration", "coordinate_descent"; empty: untuned
    double took_ms = 0;                  ///< in this process
    double search_ms = 0;                ///< the tuning itself, here or where it was done
    double default_ms = 0, best_ms = 0;  ///< one run, when it was tuned; 0: untuned
    std::vector<TuningTiming> timings{}; ///< of all that was tried, the default first
};

/// A kernel's configuration as it was when it was asked for. Cheap to copy; may outlive its Tuner.
class WARMGRAPH_API Tuned {
public:
    [[nodiscard]] const TunedConfig& config() const noexcept;
    [[nodiscard]] std::string definitions() const { return definitions_of(config()); }
    [[nodiscard]] const TuningReport& report() const noexcept;
    /// Holds a stored winner to the default's results, once in a process: builds and runs both. verification_failed: the
    /// winner does not run here or gives other results. It is removed from the folder, and Tuner::tune gives the default
    /// from then on: make the programs anew and wrap again. invalid_argument: within a wrapped function.
    void validate() const;

    struct Impl; ///< opaque

private:
    friend class Tuner;
    friend struct TunedAccess;
    explicit Tuned(std::shared_ptr<const Impl> impl) noexcept : m_impl(std::move(impl)) {}
    std::shared_ptr<const Impl> m_impl;
};

struct TuningStatistics {
    std::uint64_t hits = 0;                  ///< kernels whose stored winner was used
    std::uint64_t misses = 0;                ///< kernels without one that could be
    std::uint64_t tuned = 0;                 ///< kernels that were timed
    std::uint64_t carried = 0;               ///< hits that only their module's file had
    std::uint64_t rejected = 0;              ///< winners that failed their validation
    std::uint64_t faults = 0;                ///< files that were damaged, or could not be read or written
    double tuning_ms = 0;                    ///< spent on timing
    double load_ms = 0;                      ///< spent on reading winners and on holding them to the default
    double saved_ms = 0;                     ///< what the tunings took that hits stand for, less load_ms
    std::vector<std::string> miss_reasons{}; ///< "matmul: no stored configuration", at most 64
};

/// The kernels of one module (a model, a program with several kernels) between begin and end of its compile. What an
/// earlier start found for this module is loaded ahead in one piece, and serves where a kernel's own file cannot; where
/// both can, its own is the newer one. At the end all that was asked for is stored as the module's: what was found now and
/// what was hit. So a model that shares kernels with an older one carries them on. One thread at a time.
class WARMGRAPH_API TuningModule {
public:
    TuningModule(TuningModule&&) noexcept;
    TuningModule& operator=(TuningModule&&) noexcept;
    ~TuningModule(); ///< as end()

    /// As Tuner::tune. invalid_argument: the module has ended.
    [[nodiscard]] Tuned tune(const TunableKernel& kernel);
    /// How many configurations were loaded ahead.
    [[nodiscard]] std::size_t loaded() const noexcept;
    /// Stores them, where there is anything new and the policy lets it. A failure is counted and logged. Once.
    void end() noexcept;

    struct Impl; ///< opaque

private:
    friend class Tuner;
    explicit TuningModule(std::unique_ptr<Impl> impl) noexcept;
    std::unique_ptr<Impl> m_impl;
};

/// The tuned kernels of a cache on one device; made by Cache::tuner. Its policy is the cache's: read_only, require_hit and
/// off tune nothing (require_hit throws miss_forbidden for a miss), refresh tunes anew.
class WARMGRAPH_API Tuner {
public:
    /// The stored winner, else the one that is found now and stored. Later calls with the same kernel give what this one
    /// gave. invalid_argument: candidates or ranges that make no sense. What the default configuration fails with is
    /// thrown; other configurations that fail are out. A candidate that writes where it must not may end the process.
    [[nodiscard]] Tuned tune(const TunableKernel& kernel);

    /// `name`: letters, digits, '.', '_', '-'. `code` tells modules of one name apart: sources, a version; comments do not
    /// count. invalid_argument for a bad name.
    [[nodiscard]] TuningModule begin_module(const std::string& name, std::string_view code = "");

    /// Reads the stored winners of all kernels that this tuner was asked for, and returns the names of those that changed:
    /// tune() gives the new ones. The last valid write is what all ranks get: let each tune, wait for all (a barrier of
    /// yours), then let each reload before it makes programs.
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
