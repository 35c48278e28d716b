// Private parts of Tuner and Tuned.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "warmgraph/autotune/judge.hpp"
#include "warmgraph/autotune/library.hpp"
#include "warmgraph/autotune/search.hpp"
#include "warmgraph/base/clock.hpp"
#include "warmgraph/device/device_impl.hpp"
#include "warmgraph/device/programs.hpp"
#include "warmgraph/store/touched.hpp"
#include "warmgraph/tuning.hpp"

namespace warmgraph {

/// What the Tuned of one kernel share, also when their Tuner is gone.
struct TunedKernel {
    TunableKernel kernel;
    autotune::Wanted wanted;
    autotune::Facts device;
    std::string why_not_kept{};                 ///< empty; else which header may change unseen
    std::mutex mutex;                           ///< one validation at a time; guards what follows
    std::set<TunedConfig> proven{};             ///< held to the default's results in this process
    std::set<TunedConfig> rejected{};           ///< by that
    std::optional<TuningReport> current{};      ///< what tune() gives; guarded by the tuner's mutex
    std::optional<autotune::BestConfig> best{}; ///< where that was found or stored; the same
};

struct Tuned::Impl {
    TuningReport report;
    std::shared_ptr<TunedKernel> shared;
    std::shared_ptr<Tuner::Impl> tuner;
};

/// Adds up the counts of one cache's tuners: of those that exist, and of those that are gone. Thread-safe.
class Tunings {
public:
    void add(const Tuner::Impl& tuner);
    /// Before its end.
    void remove(const Tuner::Impl& tuner);
    [[nodiscard]] TuningStatistics total() const;

private:
    mutable std::mutex m_mutex; // taken before a tuner's own
    std::set<const Tuner::Impl*> m_tuners;
    TuningStatistics m_gone;
};

/// The parts of a cache that its tuners use.
struct TunerSources {
    std::shared_ptr<void> cache;              ///< keeps what the references are to
    std::shared_ptr<store::LocalStore> store; ///< null where caching is off
    std::string why_off;                      ///< then
    bool uses_stored = true;                  ///< false: tuned configurations are switched off
    Policy policy = Policy::read_write;
    std::shared_ptr<Programs> programs;
    store::Touched& touched;
    Tunings& tunings;
};

struct Tuner::Impl : std::enable_shared_from_this<Tuner::Impl> {
    Impl(TunerSources of_cache, Device on, const TuningOptions& how, Clock& time = system_clock());
    Impl(const Impl&) = delete;
    Impl& operator=(const Impl&) = delete;
    ~Impl();

    using Ahead = std::map<Digest, autotune::BestConfig>; ///< loaded with a module

    [[nodiscard]] Tuned tune(const TunableKernel& kernel, const Ahead& ahead = {});
    [[nodiscard]] autotune::ModuleConfigs load_module(const std::string& name, std::string_view code);
    /// Of these kernels, what there is now; with what was loaded.
    void end_module(const autotune::ModuleConfigs& loaded, const std::vector<std::shared_ptr<TunedKernel>>& asked);
    [[nodiscard]] std::vector<std::string> reload();
    [[nodiscard]] TuningStatistics statistics() const;
    /// Throws verification_failed for a winner that does not do what the default does, and takes it out of the folder.
    void validate(TunedKernel& shared, const TunedConfig& config);
    /// The same outside of tune(): what it takes is taken off what the stored winner saves.
    void validate_late(TunedKernel& shared, const TuningReport& report);

private:
    /// Off what is saved: what using a stored winner took. `saved_before`: what programs had saved until then.
    void take_off(double ms, double saved_before);
    /// What the folder has for a kernel.
    struct Found {
        std::optional<autotune::BestConfig> best{};
        autotune::Judgement judgement{};
        std::string_view word = "other_candidates"; ///< of a miss, for statistics
    };
    [[nodiscard]] std::shared_ptr<TunedKernel> describe(const TunableKernel& kernel) const;
    [[nodiscard]] Found look_up(const TunedKernel& shared, const Ahead& ahead);
    [[nodiscard]] Found look_up_file(const TunedKernel& shared);
    [[nodiscard]] TuningReport decide(TunedKernel& shared, const Ahead& ahead);
    [[nodiscard]] TuningReport use_stored(TunedKernel& shared, const autotune::BestConfig& stored, std::string reason);
    /// Empty: it may be tuned here; else why not.
    [[nodiscard]] std::string why_not_tuned(const TunedKernel& shared) const;
    [[nodiscard]] autotune::BestConfig search(TunedKernel& shared, const Found& found);
    void keep(const autotune::BestConfig& best);
    /// `of`: "the tuned configuration of 'matmul'"
    void fault(std::string_view doing, std::string_view of, const Error& error);
    void miss(const TunedKernel& shared, const std::string& reason, std::string_view word);
    [[nodiscard]] bool is_proven(TunedKernel& shared, const TunedConfig& config);
    [[nodiscard]] static bool has_rejected(TunedKernel& shared);
    /// Empty: the folder may be written; else why not.
    [[nodiscard]] std::string why_not_written() const;
    /// Takes a winner out of the folder, unless there is another by now.
    void discard(const TunedKernel& shared, const TunedConfig& config);

    TunerSources cache;
    Device device;
    TuningOptions options;
    Clock& clock;
    std::optional<autotune::Library> library; ///< none: there is no folder, or tuned ones are off
    mutable std::mutex mutex;                 ///< one tuning at a time; guards kernels
    std::map<std::pair<Digest, Digest>, std::shared_ptr<TunedKernel>> kernels; ///< by key and candidates
    mutable std::mutex counting;                                               ///< guards counts
    TuningStatistics counts;
};

/// For Cache, and for tests: a tuner that goes by another clock.
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

/// For Function: what a Spec names.
struct TunedAccess {
    /// Where it was read, and not validated in this process yet.
    static void validate(const Tuned& tuned);
    static const std::shared_ptr<TunedKernel>& shared(const Tuned& tuned) noexcept { return tuned.m_impl->shared; }
};

} // namespace warmgraph
