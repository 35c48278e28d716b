// The programs of a cache: loads their modules from stored compilations, or compiles them.
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
    double compile_ms = 0;                   ///< spent on compiling
    double saved_ms = 0;                     ///< compile time of loaded programs, minus their load time
    std::vector<std::string> miss_reasons{}; ///< "add: no compiled program", at most 64
};

/// The programs of one cache. Thread-safe; programs may outlive the cache.
class Programs {
public:
    /// `store`: null if nothing is stored; `why_off` gives the reason.
    Programs(std::shared_ptr<store::LocalStore> store, const cachefmt::Trust& trust, std::string why_off);

    /// Loads the program, or compiles it and stores it if the policy allows. miss_forbidden: policy no_compile.
    [[nodiscard]] Result<std::shared_ptr<backends::Module>> module(const Program::Impl& program, Policy policy);
    /// Stores programs that can be stored now: PoCL's images are available when a recording is done. Best effort.
    void keep_ready() noexcept;
    /// Also stores a program that was compiled without being stored. Best effort; nothing if the folder is read-only.
    /// On PoCL it waits for the device, which makes an image (0.1 to 0.5 s).
    void keep(const Program::Impl& program) noexcept;

    // --- savings, each counted once. A program may be compiled within another stored artifact (a first call, a
    // search). If both are used from the cache, only the larger saving counts.
    using Time = std::chrono::steady_clock::time_point;
    /// Returns the launched programs' compile times in a call that began at `began`. `spent_ms`: the call's time minus
    /// its work's time on a warm device. The rest of it, after the compiler's own times, is compiling at launches
    /// (PoCL); it is divided among the programs that were not launched in this way before.
    std::vector<cachefmt::CompiledWithin> share_out(const std::vector<std::shared_ptr<backends::Module>>& launched,
                                                    Time began, double spent_ms);
    /// `programs` were compiled within an artifact that is used now. Returns their time that is already counted.
    [[nodiscard]] double count_within(const std::vector<cachefmt::CompiledWithin>& programs);
    [[nodiscard]] ProgramCounts counts() const;
    /// The store's names of the loaded or stored programs.
    [[nodiscard]] std::vector<store::ArtifactName> touched() const;

private:
    struct Known {
        std::weak_ptr<Device::Impl> device;
        std::weak_ptr<backends::Module> module;
        std::unique_ptr<precompile::Origin> origin;
        bool is_kept = false;             ///< keep_ready() stores it
        std::optional<Time> compiled{};   ///< begin of its compilation; nullopt: it was loaded
        std::vector<std::string> ready{}; ///< targets that were ready at the last share
    };
    [[nodiscard]] static bool compiles_at_launch(Known& known);
    void count(const std::string& program, const precompile::MadeProgram& made);
    void save(double ms, store::FunctionUsage usage);
    /// Counts `ms` of compiling here. Returns the part that an artifact used from the cache had already counted as
    /// saved.
    double pay(const Digest& program, double ms);
    void store_locked(Known& known);
    void fault_locked(const Error& error);

    std::shared_ptr<store::LocalStore> m_store;
    std::string m_why_off;
    bool m_may_keep;
    std::optional<precompile::ProgramCache> m_cache; ///< nullopt if nothing is stored
    mutable std::mutex m_mutex;                      ///< guards the following members
    std::vector<Known> m_known;
    std::set<store::ArtifactName> m_touched;
    /// How much of a program's compile time counts as saved, in ms; by the program's key.
    struct Account {
        bool is_loaded = false; ///< whether all of it counts as saved
        double begun = 0;       ///< longest part from its start that a used artifact contains
        double saved = 0;       ///< saved by used artifacts
        double paid = 0;        ///< compiled in this process and not in a used artifact
    };
    std::map<Digest, Account> m_accounts;
    ProgramCounts m_counts;
};

/// While it lives, programs that this thread makes belong to this use's cache: a wrapped callable's to its own cache.
class ProgramScope {
public:
    explicit ProgramScope(const ProgramUse* use) noexcept;
    ProgramScope(const ProgramScope&) = delete;
    ProgramScope& operator=(const ProgramScope&) = delete;
    ~ProgramScope();

private:
    const ProgramUse* m_outer;
};

/// The use of this thread's innermost scope; null outside all scopes.
[[nodiscard]] const ProgramUse* current_programs() noexcept;

} // namespace warmgraph
