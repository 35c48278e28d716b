// Makes the programs of a cache: loads their modules from stored compilations, or compiles them.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "warmgraph/device/device_impl.hpp"
#include "warmgraph/precompile/program_cache.hpp"
#include "warmgraph/spec.hpp"
#include "warmgraph/store/local_store.hpp"

namespace warmgraph {

struct ProgramCounts {
    std::uint64_t compiled = 0, loaded = 0, refused = 0, faults = 0;
    double compile_ms = 0;                   ///< time spent on compiling
    double load_ms = 0;                      ///< time spent on loading
    double saved_ms = 0;                     ///< compile time of loaded programs, minus their load time
    std::vector<std::string> miss_reasons{}; ///< at most 64 texts such as "add: no compiled program"
};

/// The programs of one cache. Thread-safe; programs may outlive the cache.
class Programs {
public:
    /// `store`: null if nothing is stored; `why_off` gives the reason.
    Programs(std::shared_ptr<store::LocalStore> store, const cachefmt::Trust& trust, std::string why_off,
             std::string tag = {});

    /// Loads the program, or compiles it and stores it if the policy allows. miss_forbidden: the policy is no_compile,
    /// and no usable program is stored.
    [[nodiscard]] Result<std::shared_ptr<backends::Module>> module(const Program::Impl& program, Policy policy);
    /// Stores the programs that can be stored now. PoCL's images are available only when a recording is done. Best
    /// effort.
    void keep_ready() noexcept;
    /// Stores a program that was compiled without being stored. Best effort; does nothing if the folder is read-only.
    /// On PoCL this waits until the device has made an image (0.1 to 0.5 s).
    void keep(const Program::Impl& program) noexcept;

    // --- Savings. Each saving counts only once. A program may be compiled within another stored artifact (a first
    // call, a search). If both are used from the cache, only the larger saving counts.
    using Time = std::chrono::steady_clock::time_point;
    /// Returns the launched programs' compile times in a call that began at `began`. `spent_ms`: the call's time minus
    /// its work's time on a warm device. The part of `spent_ms` that the compiler's own times do not explain was spent
    /// on compiling at launches (PoCL). That part is divided among the programs that compiled at a launch for the first
    /// time.
    std::vector<cachefmt::CompiledWithin> share_out(const std::vector<std::shared_ptr<backends::Module>>& launched,
                                                    Time began, double spent_ms);
    /// Notes that `programs` were compiled within an artifact that is used now. Returns the part of their compile time
    /// that already counts as saved.
    [[nodiscard]] double count_within(const std::vector<cachefmt::CompiledWithin>& programs);
    [[nodiscard]] ProgramCounts counts() const;
    /// Returns the store's names of the programs that were loaded or stored.
    [[nodiscard]] std::vector<store::ArtifactName> touched() const;

private:
    struct TrackedProgram {
        std::weak_ptr<Device::Impl> device;
        std::weak_ptr<backends::Module> module;
        std::unique_ptr<precompile::Origin> origin;
        bool is_kept = false;             ///< whether keep_ready() stores it
        std::optional<Time> compiled{};   ///< start of the program's compilation; nullopt: the program was loaded
        std::vector<std::string> ready{}; ///< targets that were ready at the last share_out()
    };
    [[nodiscard]] static bool compiles_at_launch(TrackedProgram& known);
    void count(const std::string& program, const precompile::ProgramResult& made);
    void save(double ms, store::FunctionUsage usage);
    /// Counts `ms` of compiling in this process. Returns the part that already counted as saved by an artifact from the
    /// cache.
    double pay(const Digest& program, double ms);
    void store_locked(TrackedProgram& known);
    void fault_locked(const Error& error);

    std::shared_ptr<store::LocalStore> m_store;
    std::string m_why_off;
    std::string m_tag; ///< of all programs
    bool m_may_keep;
    std::optional<precompile::ProgramCache> m_cache; ///< nullopt if nothing is stored
    mutable std::mutex m_mutex;                      ///< guards the following members
    std::vector<TrackedProgram> m_known;
    std::set<store::ArtifactName> m_touched;
    /// How much of a program's compile time counts as saved, in ms.
    struct Account {
        bool is_loaded = false; ///< whether all of the compile time counts as saved
        double begun = 0;       ///< the longest part, from the start of the compilation, that a used artifact contains
        double saved = 0;       ///< time saved by used artifacts
        double paid = 0;        ///< time of compiling in this process that no used artifact contains
    };
    std::map<Digest, Account> m_accounts;
    ProgramCounts m_counts;
};

/// While this object lives, programs that this thread makes belong to the cache of `use`. A wrapped callable's programs
/// so belong to the callable's cache.
class ProgramScope {
public:
    explicit ProgramScope(const ProgramUse* use) noexcept;
    ProgramScope(const ProgramScope&) = delete;
    ProgramScope& operator=(const ProgramScope&) = delete;
    ~ProgramScope();

private:
    const ProgramUse* m_outer;
};

/// Returns the ProgramUse of this thread's innermost scope; null outside all scopes.
[[nodiscard]] const ProgramUse* current_programs() noexcept;

} // namespace warmgraph
