// Private parts of Tuner and Tuned.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "warmgraph/autotune/config_library.hpp"
#include "warmgraph/autotune/judge.hpp"
#include "warmgraph/autotune/search.hpp"
#include "warmgraph/base/clock.hpp"
#include "warmgraph/device/device_impl.hpp"
#include "warmgraph/device/programs.hpp"
#include "warmgraph/store/touched_names.hpp"
#include "warmgraph/tuning.hpp"

namespace warmgraph {

/// The state that all Tuned objects of one kernel share. The state may outlive the Tuner.
struct TunedKernel {
    TunableKernel kernel;
    autotune::ConfigRequest wanted;
    autotune::Facts device;
    /// Why results are not stored: names a header whose changes cannot be seen; empty: they are stored.
    std::string why_not_kept{};
    std::mutex mutex;                      ///< one validation at a time; guards the members below
    std::set<TunedConfig> proven{};        ///< configurations that gave the default's results in this process
    std::set<TunedConfig> rejected{};      ///< configurations that gave other results in this process
    std::optional<TuningReport> current{}; ///< the result of tune(); guarded by the tuner's mutex
    /// The configuration behind `current`, if any; guarded by the tuner's mutex.
    std::optional<autotune::BestConfig> best{};
};

struct Tuned::Impl {
    TuningReport report;
    std::shared_ptr<TunedKernel> shared;
    std::shared_ptr<Tuner::Impl> tuner;
};

/// Adds up the counts of one cache's tuners, including destroyed tuners. Thread-safe.
class Tunings {
public:
    void add(const Tuner::Impl& tuner);
    /// Call this before the tuner is destroyed.
    void remove(const Tuner::Impl& tuner);
    [[nodiscard]] TuningStatistics total() const;

private:
    mutable std::mutex m_mutex; // taken before a tuner's own mutex
    std::set<const Tuner::Impl*> m_tuners;
    TuningStatistics m_gone;
};

/// The parts of a cache that its tuners use.
struct TunerSources {
    std::shared_ptr<void> cache;              ///< kept so that the references stay valid
    std::shared_ptr<store::LocalStore> store; ///< null when caching is off
    std::string why_off;                      ///< why caching is off
    bool uses_stored = true;                  ///< false: tuned configurations are switched off
    Policy policy = Policy::read_write;
    std::shared_ptr<Programs> programs;
    store::TouchedNames& touched;
    Tunings& tunings;
    std::string tag{}; ///< part of all keys; empty: no tag
};

struct Tuner::Impl : std::enable_shared_from_this<Tuner::Impl> {
    Impl(TunerSources of_cache, Device on, const TuningOptions& how, Clock& time = system_clock());
    Impl(const Impl&) = delete;
    Impl& operator=(const Impl&) = delete;
    ~Impl();

    using LoadedConfigs = std::map<Digest, autotune::BestConfig>; ///< configurations that were loaded with a module

    [[nodiscard]] Tuned tune(const TunableKernel& kernel, const LoadedConfigs& loaded_configs = {});
    [[nodiscard]] autotune::ModuleConfigs load_module(const std::string& name, std::string_view code);
    /// Stores the current configurations of these kernels, together with the loaded configurations.
    void end_module(const autotune::ModuleConfigs& loaded, const std::vector<std::shared_ptr<TunedKernel>>& asked);
    [[nodiscard]] std::vector<std::string> reload();
    [[nodiscard]] TuningStatistics statistics() const;
    /// Compares the results of the winner `config` with the default's results. If they differ, removes the winner from
    /// the folder and throws verification_failed.
    void validate(TunedKernel& shared, const TunedConfig& config);
    /// As validate(), outside of tune(). The time of the validation is subtracted from the stored winner's saving.
    void validate_late(TunedKernel& shared, const TuningReport& report);

private:
    /// Subtracts the time of using a stored winner from the saving. `saved_before`: the saving of programs before the
    /// winner was used.
    void take_off(double ms, double saved_before);
    /// The stored configuration of a kernel and the judgement on it.
    struct ConfigLookup {
        std::optional<autotune::BestConfig> best{};
        autotune::WinnerVerdict judgement{};
        std::string_view word = "other_candidates"; ///< for a miss: the reason's word in the statistics
    };
    [[nodiscard]] std::shared_ptr<TunedKernel> describe(const TunableKernel& kernel) const;
    [[nodiscard]] ConfigLookup look_up(const TunedKernel& shared, const LoadedConfigs& loaded_configs);
    [[nodiscard]] ConfigLookup look_up_file(const TunedKernel& shared);
    [[nodiscard]] TuningReport decide(TunedKernel& shared, const LoadedConfigs& loaded_configs);
    [[nodiscard]] TuningReport use_stored(TunedKernel& shared, const autotune::BestConfig& stored, std::string reason);
    /// Returns why the kernel may not be tuned here; empty if it may be tuned.
    [[nodiscard]] std::string why_not_tuned(const TunedKernel& shared) const;
    [[nodiscard]] autotune::BestConfig search(TunedKernel& shared, const ConfigLookup& found);
    void keep(const autotune::BestConfig& best);
    /// Counts and logs a failure of the folder. `of` names the file: "the tuned configuration of 'matmul'".
    void fault(std::string_view doing, std::string_view of, const Error& error);
    void miss(const TunedKernel& shared, const std::string& reason, std::string_view word);
    [[nodiscard]] bool is_proven(TunedKernel& shared, const TunedConfig& config);
    [[nodiscard]] static bool has_rejected(TunedKernel& shared);
    /// Returns why the folder may not be written; empty if it may be written.
    [[nodiscard]] std::string why_not_written() const;
    /// Removes a winner from the folder, unless another winner has replaced it.
    void discard(const TunedKernel& shared, const TunedConfig& config);

    TunerSources cache;
    Device device;
    TuningOptions options;
    Clock& clock;
    std::optional<autotune::ConfigLibrary> library; ///< nullopt: there is no folder, or tuned configurations are off
    mutable std::mutex mutex;                       ///< one tuning at a time; guards `kernels`
    /// Keyed by the key and the hash of the candidates.
    std::map<std::pair<Digest, Digest>, std::shared_ptr<TunedKernel>> kernels;
    mutable std::mutex counting; ///< guards `counts`
    TuningStatistics counts;
};

/// Access for Cache, and for tests, which use another clock.
struct TunerAccess {
    static Tuner make(TunerSources cache, const Device& device, const TuningOptions& options,
                      Clock& clock = system_clock())
    {
        return Tuner{std::make_shared<Tuner::Impl>(std::move(cache), device, options, clock)};
    }
};

struct TuningModule::Impl {
    std::shared_ptr<Tuner::Impl> tuner;
    autotune::ModuleConfigs loaded;
    std::vector<std::shared_ptr<TunedKernel>> asked{};
    bool has_ended = false;
};

/// Access for Function, which validates the Tuned objects in its Spec.
struct TunedAccess {
    /// Validates a winner that was loaded and not validated in this process yet.
    static void validate(const Tuned& tuned);
    static const std::shared_ptr<TunedKernel>& shared(const Tuned& tuned) noexcept { return tuned.m_impl->shared; }
};

} // namespace warmgraph
