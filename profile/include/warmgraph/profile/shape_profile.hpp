// The shapes with which the functions of this process are called, and the thread that writes them into the cache
// folder.
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
#include "warmgraph/profile/profile_library.hpp"
#include "warmgraph/store/local_store.hpp"

namespace warmgraph {

/// This process's part of one function's profile. Thread-safe.
class FunctionProfile {
public:
    /// `empty`: a profile with its key and without parts.
    explicit FunctionProfile(profile::Profile empty);

    /// Adds calls with a shape. `is_news`: whether the shape is more specific than the function's declaration. If a
    /// profile has no such shape, no file is written.
    void add(const profile::Shape& shape, std::uint64_t calls, bool is_news);
    void decide(const profile::BucketRequest& wish, std::vector<std::int64_t> buckets);
    [[nodiscard]] profile::Profile own() const;
    [[nodiscard]] profile::Calls calls() const;
    /// Returns the profile if it changed since the last call of this function; otherwise nullopt.
    [[nodiscard]] std::optional<profile::Profile> take_new_counts();
    void put_back() noexcept; ///< call this if the write failed; take_new_counts() then returns the profile again
    [[nodiscard]] bool is_worth_a_file() const;
    [[nodiscard]] const Digest& key() const noexcept { return m_own.key; }

private:
    mutable std::mutex m_mutex; // guards all other members except the key
    profile::Profile m_own;
    profile::Part* m_part; ///< the part of this process, in m_own
    bool m_is_worth_a_file = false, m_has_news = false;
};

/// Counts the calls of one function by shape. Used under the function's lock. Counting a known shape is cheap.
class ShapeCounter {
public:
    using Key = std::vector<std::int64_t>;
    using MakeShape = std::function<profile::Shape()>;

    /// Counts a call. Reports the counts to the profile at a new shape, and each time the number of calls has doubled.
    /// Returns whether it reported.
    bool count(const Key& key, const MakeShape& make, bool is_news, FunctionProfile& into);
    void tell(FunctionProfile& profile);

private:
    struct Hash {
        std::size_t operator()(const Key& key) const noexcept;
    };
    struct ShapeCount {
        profile::Shape shape;
        bool is_news;
        std::uint64_t calls = 0; ///< number of calls since the last report
    };
    std::unordered_map<Key, ShapeCount, Hash> m_counted;
    ShapeCount* m_last = nullptr;
    const Key* m_last_key = nullptr;
    std::uint64_t m_calls = 0;
};

/// The profiles of one cache. They are read on demand and written by one thread, together, at most twice a second.
/// Thread-safe. A failure of the folder does not throw: `fault` counts it.
class ProfileKeeper {
public:
    using Fault = std::function<void(const std::string& doing, const Error& error)>;
    enum class Writing : std::uint8_t { no, yes };

    /// `store` must outlive this object.
    ProfileKeeper(store::LocalStore& store, Writing writing, Fault fault);
    ProfileKeeper(const ProfileKeeper&) = delete;
    ProfileKeeper& operator=(const ProfileKeeper&) = delete;
    ~ProfileKeeper() { end(); }

    /// Returns the profile of a function. Returns the same object for the same key, so that a function that is wrapped
    /// again goes on counting.
    [[nodiscard]] std::shared_ptr<FunctionProfile> of(profile::Profile empty);
    /// Returns the function's own counts, joined with the profiles in the folder and its layers.
    [[nodiscard]] profile::Profile joined(const FunctionProfile& function);
    /// Returns the joined profiles of all functions that were counted and are worth a file.
    [[nodiscard]] std::vector<profile::Profile> counted();
    /// Starts the writer thread now, which takes 0.1 ms. Otherwise the first note() starts it.
    void expect() noexcept;
    /// Notes that the function has counts that are not written yet.
    void note(const std::shared_ptr<FunctionProfile>& function) noexcept;
    [[nodiscard]] std::uint64_t hits() const noexcept { return m_hits; } ///< number of profiles that were read
    /// Number of profiles that were missing or damaged.
    [[nodiscard]] std::uint64_t misses() const noexcept { return m_misses; }
    [[nodiscard]] bool writes() const noexcept { return m_writing == Writing::yes; }

private:
    /// Starts the writer thread, only once. REQUIRES: m_mutex is held.
    void start_writer();
    void run(const std::stop_token& stop) noexcept;
    [[nodiscard]] bool is_ending();
    [[nodiscard]] bool is_forked() const noexcept;
    /// Writes one profile. Returns false if another process is writing.
    bool write(FunctionProfile& function) noexcept;
    /// Writes the profiles that have news. Returns the number of profiles that could not be written yet.
    std::size_t write_all() noexcept;
    void end() noexcept;

    store::LocalStore& m_store;
    profile::ProfileLibrary m_library;
    const Writing m_writing;
    const Fault m_fault;
    std::mutex m_mutex; // guards the next three members
    std::map<Digest, std::shared_ptr<FunctionProfile>> m_functions;
    std::set<std::shared_ptr<FunctionProfile>> m_noted;
    bool m_is_ending = false;
    std::atomic<std::uint64_t> m_hits = 0, m_misses = 0;
    std::atomic<pid_t> m_process = 0; ///< the process that started the thread; a forked child has no thread
    std::condition_variable_any m_wake;
    std::mutex m_file_mutex; ///< held during a write; taken before m_mutex
    std::mutex m_end_mutex;  ///< an exit and the destructor must not end the thread at the same time
    std::jthread m_writer;
    std::optional<ExitHook> m_at_exit;
};

} // namespace warmgraph
