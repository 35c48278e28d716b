// The programs of a cache: their modules come from what was compiled before, where it is stored.
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
    double load_ms = 0;                      ///< spent on loading
    double saved_ms = 0;                     ///< what compiling the loaded ones took, less loading them
    std::vector<std::string> miss_reasons{}; ///< "add: no compiled program", at most 64
};

/// Those of one cache. Thread-safe; programs may outlive the cache.
class Programs {
public:
    /// `store`: null where nothing is kept, for this reason.
    Programs(std::shared_ptr<store::LocalStore> store, const cachefmt::Trust& trust, std::string why_off);

    /// Loaded, or compiled and kept as the policy says. miss_forbidden under no_compile.
    [[nodiscard]] Result<std::shared_ptr<backends::Module>> module(const Program::Impl& program, Policy policy);
    /// Stores what can be by now: PoCL's images are taken when a recording is done. Best effort.
    void keep_ready() noexcept;
    /// Stores this program as well, which was compiled without being kept. Best effort; nothing where the folder is only
    /// read. Waits for the device on PoCL, which makes an image (0.1 to 0.5 s).
    void keep(const Program::Impl& program) noexcept;

    // --- what was saved, each part once. A program that is compiled within something else that is stored (a first call, a
    // search) is a part of that: what is found of both is counted as the larger one alone.
    using Time = std::chrono::steady_clock::time_point;
    /// What a call that began then compiled, of what it launched. `spent_ms`: what the call took, less what the work takes once
    /// all is there. What is left of that when the compiler was done is what it went on compiling at the launches (PoCL): it is
    /// shared out among those that had not been launched so before.
    std::vector<cachefmt::CompiledWithin> share_out(const std::vector<std::shared_ptr<backends::Module>>& launched,
                                                    Time began, double spent_ms);
    /// Something is used from the cache in which these were compiled: what of that was counted, or was compiled all the same.
    [[nodiscard]] double count_within(const std::vector<cachefmt::CompiledWithin>& programs);
    [[nodiscard]] ProgramCounts counts() const;
    /// Those that were loaded or stored: their names in the store.
    [[nodiscard]] std::vector<store::ArtifactName> touched() const;

private:
    struct Known {
        std::weak_ptr<Device::Impl> device;
        std::weak_ptr<backends::Module> module;
        std::unique_ptr<precompile::Origin> origin;
        bool is_kept = false;             ///< by keep_ready()
        std::optional<Time> compiled{};   ///< when that began; none: it was loaded
        std::vector<std::string> ready{}; ///< for what it was when a share was taken
    };
    [[nodiscard]] static bool compiles_at_launch(Known& known);
    void count(const std::string& program, const precompile::MadeProgram& made);
    void save(double ms, store::FunctionUsage usage);
    /// It was compiled here, in so much time: what of that is contained in something that was used from the cache all the
    /// same.
    double pay(const Digest& program, double ms);
    void store_locked(Known& known);
    void fault_locked(const Error& error);

    std::shared_ptr<store::LocalStore> m_store;
    std::string m_why_off;
    bool m_may_keep;
    std::optional<precompile::ProgramCache> m_cache; ///< none where nothing is kept
    mutable std::mutex m_mutex;                      ///< guards what follows
    std::vector<Known> m_known;
    std::set<store::ArtifactName> m_touched;
    /// What of a program's compilation is counted as saved, in ms, by its key.
    struct Account {
        bool is_loaded = false; ///< then all of it is
        double begun = 0;       ///< the longest part from its beginning that something contains which was used
        double saved = 0;       ///< by what was used
        double paid = 0;        ///< in this process, and by nothing else that was used
    };
    std::map<Digest, Account> m_accounts;
    ProgramCounts m_counts;
};

/// Whose programs a thread makes now, for as long as this lives: a wrapped callable's are its cache's.
class ProgramScope {
public:
    explicit ProgramScope(const ProgramUse* use) noexcept;
    ProgramScope(const ProgramScope&) = delete;
    ProgramScope& operator=(const ProgramScope&) = delete;
    ~ProgramScope();

private:
    const ProgramUse* m_outer;
};

/// Of the innermost scope of this thread; null outside of all.
[[nodiscard]] const ProgramUse* current_programs() noexcept;

} // namespace warmgraph
