// The shapes that this process's functions are called with, and the thread that writes them into the cache folder.
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

/// This process's part of one function's profile. Thread-safe.
class FunctionProfile {
public:
    /// `empty`: has its key and no parts.
    explicit FunctionProfile(profile::Profile empty);

    /// `is_news`: the shape is more specific than the function's declaration. Without such a shape no file is written.
    void add(const profile::Shape& shape, std::uint64_t calls, bool is_news);
    void decide(const profile::Wish& wish, std::vector<std::int64_t> buckets);
    [[nodiscard]] profile::Profile own() const;
    [[nodiscard]] profile::Calls calls() const;
    /// The profile if it changed since the last call; else nullopt.
    [[nodiscard]] std::optional<profile::Profile> take_news();
    void put_back() noexcept; ///< the write failed: take_news() gives it again
    [[nodiscard]] bool is_worth_a_file() const;
    [[nodiscard]] const Digest& key() const noexcept { return m_own.key; }

private:
    mutable std::mutex m_mutex; // guards all members except the key
    profile::Profile m_own;
    profile::Part* m_part; ///< points into m_own
    bool m_is_worth_a_file = false, m_has_news = false;
};

/// Counts the calls of one function by shape, under the function's lock. Cheap for known shapes.
class ShapeCounter {
public:
    using Key = std::vector<std::int64_t>;
    using MakeShape = std::function<profile::Shape()>;

    /// Returns true when it reported to the profile: at a new shape, and each time the number of calls has doubled.
    bool count(const Key& key, const MakeShape& make, bool is_news, FunctionProfile& into);
    void tell(FunctionProfile& profile);

private:
    struct Hash {
        std::size_t operator()(const Key& key) const noexcept;
    };
    struct Counted {
        profile::Shape shape;
        bool is_news;
        std::uint64_t calls = 0; ///< since the last report
    };
    std::unordered_map<Key, Counted, Hash> m_counted;
    Counted* m_last = nullptr;
    const Key* m_last_key = nullptr;
    std::uint64_t m_calls = 0;
};

/// The profiles of one cache. They are read on demand and written by one thread, together, at most twice a second.
/// Thread-safe. Never throws because of the folder: `fault` counts its failures.
class ProfileKeeper {
public:
    using Fault = std::function<void(const std::string& doing, const Error& error)>;
    enum class Writing : std::uint8_t { no, yes };

    /// `store` must outlive this object.
    ProfileKeeper(store::LocalStore& store, Writing writing, Fault fault);
    ProfileKeeper(const ProfileKeeper&) = delete;
    ProfileKeeper& operator=(const ProfileKeeper&) = delete;
    ~ProfileKeeper() { end(); }

    /// Returns the same object for the same key: a function that is wrapped again goes on counting.
    [[nodiscard]] std::shared_ptr<FunctionProfile> of(profile::Profile empty);
    /// The function's own counts, joined with the profiles of the folder and its layers.
    [[nodiscard]] profile::Profile joined(const FunctionProfile& function);
    /// The same for all functions that were counted and are worth a file.
    [[nodiscard]] std::vector<profile::Profile> counted();
    /// Starts the writer thread now (0.1 ms). Otherwise the first note() starts it.
    void expect() noexcept;
    /// Reports that the function has news.
    void note(const std::shared_ptr<FunctionProfile>& function) noexcept;
    [[nodiscard]] std::uint64_t hits() const noexcept { return m_hits; }     ///< profiles that were read
    [[nodiscard]] std::uint64_t misses() const noexcept { return m_misses; } ///< profiles that were missing or damaged
    [[nodiscard]] bool writes() const noexcept { return m_writing == Writing::yes; }

private:
    /// Starts the thread once. REQUIRES: m_mutex is held.
    void start_writer();
    void run(const std::stop_token& stop) noexcept;
    [[nodiscard]] bool is_ending();
    [[nodiscard]] bool is_forked() const noexcept;
    /// Returns false when another process is writing.
    bool write(FunctionProfile& function) noexcept;
    /// Returns the number of functions that are left.
    std::size_t write_all() noexcept;
    void end() noexcept;

    store::LocalStore& m_store;
    profile::Library m_library;
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
    std::mutex m_end_mutex;  ///< keeps an exit and the destructor from ending the thread at the same time
    std::jthread m_writer;
    std::optional<ExitHook> m_at_exit;
};

} // namespace warmgraph
