// What a process knows of the shapes that functions are called with, and the thread that writes it into the cache folder.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include <sys/types.h>

#include "warmgraph/base/exit_hook.hpp"
#include "warmgraph/profile/library.hpp"
#include "warmgraph/store/local_store.hpp"

namespace warmgraph {

/// The part of one function's profile that this process counted. Thread-safe.
class FunctionProfile {
public:
    /// `empty`: with its key and without parts.
    explicit FunctionProfile(profile::Profile empty);

    /// `is_news`: a shape that tells more than the function's declaration does. Without any, nothing is worth a file.
    void add(const profile::Shape& shape, std::uint64_t calls, bool is_news);
    void decide(const profile::Wish& wish, std::vector<std::int64_t> buckets);
    [[nodiscard]] profile::Profile own() const;
    [[nodiscard]] profile::Calls calls() const;
    /// What is to be written since the last time; nullopt: nothing.
    [[nodiscard]] std::optional<profile::Profile> take_news();
    void put_back() noexcept; ///< it could not be written
    [[nodiscard]] bool is_worth_a_file() const;
    [[nodiscard]] const Digest& key() const noexcept { return m_own.key; }

private:
    mutable std::mutex m_mutex; // guards the rest, but for the key
    profile::Profile m_own;
    profile::Part* m_part; ///< of m_own
    bool m_is_worth_a_file = false, m_has_news = false;
};

/// Counts the calls of one function by the shapes they have, under the function's lock. Cheap for shapes that were
/// there before.
class ShapeCounter {
public:
    using Key = std::vector<std::int64_t>;
    using MakeShape = std::function<profile::Shape()>;

    /// True where the profile was told: of a new shape, and whenever the number of calls has doubled.
    bool count(const Key& key, const MakeShape& make, bool is_news, FunctionProfile& into);
    void tell(FunctionProfile& profile);

private:
    struct Hash {
        std::size_t operator()(const Key& key) const noexcept;
    };
    struct Counted {
        profile::Shape shape;
        bool is_news;
        std::uint64_t calls = 0; ///< since it was told
    };
    std::unordered_map<Key, Counted, Hash> m_counted;
    Counted* m_last = nullptr;
    const Key* m_last_key = nullptr;
    std::uint64_t m_calls = 0;
};

/// The profiles of one cache: read when they are asked for, written by a thread of its own, together, at most twice a
/// second. Thread-safe. Never throws for what the folder does: it is a fault for `fault` to count.
class ProfileKeeper {
public:
    using Fault = std::function<void(const std::string& doing, const Error& error)>;
    enum class Writing : std::uint8_t { no, yes };

    /// `store` outlives it.
    ProfileKeeper(store::LocalStore& store, Writing writing, Fault fault);
    ProfileKeeper(const ProfileKeeper&) = delete;
    ProfileKeeper& operator=(const ProfileKeeper&) = delete;
    ~ProfileKeeper() { end(); }

    /// One for each key: functions that are wrapped again go on counting.
    [[nodiscard]] std::shared_ptr<FunctionProfile> of(profile::Profile empty);
    /// Its own, joined with what the folder and the layers below it have.
    [[nodiscard]] profile::Profile joined(const FunctionProfile& function);
    /// The same of all functions that were counted and are worth a file.
    [[nodiscard]] std::vector<profile::Profile> counted();
    /// Begins the writer's thread (a tenth of a millisecond), which otherwise the first note does.
    void expect() noexcept;
    /// It has news.
    void note(const std::shared_ptr<FunctionProfile>& function) noexcept;
    [[nodiscard]] std::uint64_t hits() const noexcept { return m_hits; }     ///< profiles that were read
    [[nodiscard]] std::uint64_t misses() const noexcept { return m_misses; } ///< that were not there, or damaged
    [[nodiscard]] bool writes() const noexcept { return m_writing == Writing::yes; }

private:
    /// Once. REQUIRES: m_mutex is held.
    void start_writer();
    void run(const std::stop_token& stop) noexcept;
    [[nodiscard]] bool is_ending();
    [[nodiscard]] bool is_forked() const noexcept;
    /// False: somebody else writes just now.
    bool write(FunctionProfile& function) noexcept;
    /// How many are left.
    std::size_t write_all() noexcept;
    void end() noexcept;

    store::LocalStore& m_store;
    profile::Library m_library;
    const Writing m_writing;
    const Fault m_fault;
    std::mutex m_mutex; // guards the next three
    std::map<Digest, std::shared_ptr<FunctionProfile>> m_functions;
    std::set<std::shared_ptr<FunctionProfile>> m_noted;
    bool m_is_ending = false;
    std::atomic<std::uint64_t> m_hits = 0, m_misses = 0;
    std::atomic<pid_t> m_process = 0; ///< that began the thread: a forked child has none
    std::condition_variable_any m_wake;
    std::mutex m_file_mutex; ///< one at a time writes; taken before m_mutex
    std::mutex m_end_mutex;  ///< an exit and the destructor end it one after the other
    std::jthread m_writer;
    std::optional<ExitHook> m_at_exit;
};

} // namespace warmgraph
