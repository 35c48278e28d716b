// Cache::open_all: which entries, in which order, in which thread.
#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <exception>
#include <map>
#include <mutex>
#include <new>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "cache/cache_impl.hpp"
#include "preload/ahead.hpp"
#include "throwing.hpp"
#include "warmgraph/base/exit_hook.hpp"
#include "warmgraph/base/log.hpp"
#include "warmgraph/capture/run_context.hpp"

namespace warmgraph {

namespace {

/// Reading and decoding go side by side; the driver builds graphs hardly faster from several threads (measured: 2.4 us
/// a node from one thread, 1.6 from eight).
constexpr std::size_t k_workers = 8;

/// So long the rest waits for the first call of what OpenOptions::first names. A service calls it at once; the driver's
/// locks, which eight workers take by turns, cost that call 2 to 8 ms.
constexpr std::chrono::milliseconds k_most_for_the_first_call{10};
constexpr std::chrono::microseconds k_look_again{200};

struct Planned {
    std::weak_ptr<Function::Impl> function; ///< weak: a function may go away before its turn
    std::string name;
    OpenCandidate entry;
    int urgency = 0;
};

using Placeholders = std::map<backends::Device*, std::shared_ptr<const Placeholder>>;

using Functions = std::vector<std::shared_ptr<Function::Impl>>;

/// For each function, what is on disk. Headers are read from several threads: the first entry waits for all of them.
std::vector<std::vector<OpenCandidate>> all_candidates(const Functions& functions)
{
    constexpr std::size_t k_functions_of_a_thread = 8; // fewer take no longer than starting one
    std::vector<std::vector<OpenCandidate>> result(functions.size());
    std::atomic<std::size_t> next = 0;
    std::mutex mutex; // guards thrown
    std::exception_ptr thrown;
    const auto read_rest = [&]() noexcept {
        try {
            for (std::size_t i = next++; i < functions.size(); i = next++) result[i] = candidates_of(*functions[i]);
        } catch (...) {
            const std::scoped_lock lock{mutex};
            thrown = std::current_exception();
        }
    };
    {
        std::vector<std::jthread> helpers;
        const std::size_t cores = std::clamp<std::size_t>(std::thread::hardware_concurrency(), 1, k_workers);
        const std::size_t wanted = std::min(cores, functions.size() / k_functions_of_a_thread);
        helpers.reserve(wanted);
        try {
            while (helpers.size() + 1 < wanted) helpers.emplace_back(read_rest);
        } catch (const std::system_error&) { // NOLINT(bugprone-empty-catch): those that there are do it
        }
        read_rest();
    }
    if (thrown) std::rethrow_exception(thrown);
    return result;
}

std::vector<Planned> plan(Cache::Impl& cache, const OpenOptions& options)
{
    std::vector<Planned> result;
    const Functions functions = cache.functions.living();
    auto candidates = all_candidates(functions);
    for (std::size_t i = 0; i < functions.size(); ++i)
        for (auto& entry : candidates[i]) {
            const int urgency = options.urgency ? options.urgency(functions[i]->declaration->name, entry.inputs) : 0;
            result.push_back({functions[i], functions[i]->declaration->name, std::move(entry), urgency});
        }
    std::ranges::stable_sort(result, [](const Planned& a, const Planned& b) {
        return a.urgency != b.urgency ? a.urgency > b.urgency : a.entry.last_used > b.entry.last_used;
    });
    return result;
}

/// The last used entry of OpenOptions::first alone, where it has one that fits; else all.
std::vector<Planned> plan_begin(Cache::Impl& cache, const OpenOptions& options)
{
    if (options.first.empty()) return plan(cache, options);
    for (const auto& function : cache.functions.living()) {
        if (function->declaration->name != options.first) continue;
        auto candidates = candidates_of(*function);
        const auto last = std::ranges::max_element(candidates, {}, &OpenCandidate::last_used);
        if (last != candidates.end() && !last->damage)
            return {{function, function->declaration->name, std::move(*last), 0}};
    }
    return plan(cache, options);
}

/// One for each device, as large as the largest entry needs.
Placeholders reserve_placeholders(const std::vector<Planned>& queue)
{
    std::map<std::shared_ptr<backends::Device>, std::uint64_t> needed;
    for (const Planned& planned : queue)
        if (const auto function = planned.function.lock(); function && !planned.entry.damage) {
            auto& bytes = needed[function->declaration->backend()];
            bytes = std::max(bytes, planned.entry.placeholder_bytes);
        }
    Placeholders result;
    for (const auto& [device, bytes] : needed) {
        auto reserved = Placeholder::reserve(device, std::max<std::uint64_t>(bytes, 1));
        if (reserved)
            result.emplace(device.get(), std::move(*reserved));
        else
            log().warn("cannot open entries ahead on {}: {}", device->id(), reserved.error().message);
    }
    return result;
}

} // namespace

struct Opening::Impl {
    Impl(std::shared_ptr<Cache::Impl> its_cache, OpenOptions its_options)
        : cache(std::move(its_cache)),
          options(std::move(its_options)),
          started(system_clock().steady()),
          queue(plan_begin(*cache, options)),
          placeholders(reserve_placeholders(queue)),
          has_more(queue.size() == 1 && queue.front().name == options.first)
    {
        state.total = queue.size();
    }

    Impl(const Impl&) = delete;
    Impl& operator=(const Impl&) = delete;
    ~Impl()
    {
        stopping.request_stop();
        join_planner();                      // it begins workers
        for (std::jthread& worker : workers) // one whose callback exits may destroy it, in a static object
            if (worker.get_id() == std::this_thread::get_id()) worker.detach();
    }

    /// Restores what nobody else has begun until there is nothing left, or `stop`; then, when all others have, too,
    /// uploads what it restored: an entry that is not restored yet costs its first call more than one that is not
    /// uploaded.
    void work(const std::stop_token& stop) noexcept;
    void restore(const Planned& planned, const std::stop_token& stop,
                 replay::Instantiation instantiation = replay::Instantiation::at_restore) noexcept;
    /// OpenOptions::first's: its first call comes at once, and need not wait for its graph's instantiation. The planner does
    /// that once the call has passed.
    void restore_first() noexcept;
    void upload(const Planned& planned, const std::stop_token& stop) noexcept;
    /// False where the system has no further thread.
    [[nodiscard]] bool start_workers();
    /// Until the first was called, or for a while.
    void let_first_call_pass() const;
    /// What OpenOptions::first left to be looked at.
    void plan_rest() noexcept;
    /// Plans the rest on a thread of its own, which then starts the workers. False as above.
    [[nodiscard]] bool start_planner();
    void join_planner();
    [[nodiscard]] Result<void> open(Function::Impl& function, const OpenCandidate& entry,
                                    replay::Instantiation instantiation, const std::stop_token& stop);
    /// Counts it, and tells the caller of it when the reports before it have been told; nobody waits for those after
    /// `stop`.
    void report(const Planned& planned, const std::stop_token& stop,
                const std::function<void(OpenProgress&)>& change) noexcept;
    void count_worker(int change) noexcept;
    void join();
    void join_others(); ///< with join_mutex
    /// Also in a worker whose callback exits, and while another thread waits for it in join().
    void end_at_exit();

    std::shared_ptr<Cache::Impl> cache;
    OpenOptions options;
    std::chrono::steady_clock::time_point started;
    std::vector<Planned> queue; // changed by the planner, before there are workers
    std::atomic<std::size_t> next = 0;
    Placeholders placeholders; // while this lives, and while what was restored is unused; changed as the queue is
    const bool has_more;       // entries that are not in the queue yet
    mutable std::mutex mutex;  // guards state, is_reporting, working
    OpenProgress state;
    bool is_reporting = false;                // the callback runs
    int working = 0;                          // workers that have not ended
    std::condition_variable_any restored_one; // with `mutex`
    std::condition_variable_any reported;     // with `mutex`
    std::condition_variable all_ended;        // with `mutex`
    std::stop_source stopping;                // of all workers
    std::mutex join_mutex;                    // one thread starts workers, or waits for them
    std::vector<std::jthread> workers;        // they end before what they use
    std::jthread planner;                     // ends before the workers that it begins
    std::optional<ExitHook> end_workers;
};

void Opening::Impl::report(const Planned& planned, const std::stop_token& stop,
                           const std::function<void(OpenProgress&)>& change) noexcept
try {
    std::unique_lock lock{mutex};
    // What stops this thread may be the callback itself, which exits and waits for it.
    const bool is_told = reported.wait(lock, stop, [this] { return !is_reporting; });
    change(state);
    restored_one.notify_all();
    state.elapsed_ms = Milliseconds{system_clock().steady() - started}.count();
    state.function = planned.name;
    if (!is_told || !options.progress) return;
    const OpenProgress now = state;
    is_reporting = true;
    lock.unlock();
    try {
        options.progress(now);
    } catch (const std::exception& thrown) {
        log().warn("open_all: the progress callback throws: {}", thrown.what());
    } catch (...) {
        log().warn("open_all: the progress callback throws something that is no std::exception");
    }
    lock.lock();
    is_reporting = false;
    reported.notify_one();
} catch (const std::exception& thrown) { // memory: a copy of the name
    log().warn("open_all: '{}' is not reported: {}", planned.name, thrown.what());
}

Result<void> Opening::Impl::open(Function::Impl& function, const OpenCandidate& entry,
                                 replay::Instantiation instantiation, const std::stop_token& stop)
try {
    const auto placeholder = placeholders.find(function.declaration->backend().get());
    return restore_ahead(function, entry, placeholder != placeholders.end() ? placeholder->second : nullptr,
                         instantiation, stop);
} catch (const std::exception& thrown) { // memory: nothing else throws here
    return fail(ErrorCode::out_of_memory, "{}", thrown.what());
}

void Opening::Impl::restore(const Planned& planned, const std::stop_token& stop,
                            replay::Instantiation instantiation) noexcept
{
    const auto function = planned.function.lock();
    if (!function) return report(planned, stop, [](OpenProgress& now) { --now.total; });
    const auto opened = open(*function, planned.entry, instantiation, stop);
    report(planned, stop, [&opened](OpenProgress& now) { ++(opened ? now.opened : now.failed); });
}

void Opening::Impl::restore_first() noexcept
{
    const Planned& first = queue[next++];
    if (has_more && options.wait != OpenWait::all) return restore(first, {}, replay::Instantiation::later);
    restore(first, {});
    upload(first, {}); // else its first call would wait for it beside the workers' driver calls
}

void Opening::Impl::upload(const Planned& planned, const std::stop_token& stop) noexcept
try {
    const auto function = planned.function.lock();
    if (!function) return;
    if (auto uploaded = warmgraph::upload(*function, planned.entry.guards_digest, stop); !uploaded)
        log().debug("'{}' was not uploaded, its first launch will do it: {}", planned.name, uploaded.error().message);
} catch (const std::exception& thrown) { // memory: nothing else throws here
    log().debug("'{}' was not uploaded, its first launch will do it: {}", planned.name, thrown.what());
}

void Opening::Impl::work(const std::stop_token& stop) noexcept
{
    std::vector<std::size_t> mine;
    const auto remember = [&mine](std::size_t index) {
        try {
            mine.push_back(index);
        } catch (const std::bad_alloc&) { // NOLINT(bugprone-empty-catch): it is not uploaded ahead
        }
    };
    while (!stop.stop_requested()) {
        const std::size_t index = next++;
        if (index >= queue.size()) break;
        restore(queue[index], stop);
        remember(index);
    }
    {
        std::unique_lock lock{mutex};
        if (!restored_one.wait(lock, stop, [this] { return state.opened + state.failed >= state.total; })) return;
    }
    for (const std::size_t index : mine) {
        if (stop.stop_requested()) return;
        upload(queue[index], stop);
    }
}

bool Opening::Impl::start_workers()
try {
    const std::size_t left = queue.size() - next;
    const std::size_t most = options.threads != 0
                                 ? options.threads
                                 : std::clamp<std::size_t>(std::thread::hardware_concurrency(), 1, k_workers);
    // A process that exits would take down the driver and OpenSSL under them.
    if (!end_workers) end_workers.emplace([this] { end_at_exit(); });
    const std::scoped_lock lock{join_mutex};
    workers.reserve(std::min(left, most));
    while (workers.size() < std::min(left, most)) {
        count_worker(1); // before it is there: who waits for all must not miss it
        try {
            workers.emplace_back([this] {
                work(stopping.get_token());
                count_worker(-1);
            });
        } catch (...) {
            count_worker(-1);
            throw;
        }
    }
    return true;
} catch (const std::system_error& thrown) {
    log().warn("open_all goes on with {} threads: {}", workers.size(), thrown.what());
    return !workers.empty();
}

void Opening::Impl::let_first_call_pass() const
{
    if (options.wait == OpenWait::all) return;
    const Planned& first = queue.front();
    const auto end = system_clock().steady() + k_most_for_the_first_call;
    const auto is_waiting = [&first] {
        const auto function = first.function.lock();
        return function && is_unused(*function, first.entry.guards_digest);
    };
    while (!stopping.stop_requested() && system_clock().steady() < end && is_waiting())
        std::this_thread::sleep_for(k_look_again);
}

void Opening::Impl::plan_rest() noexcept
try {
    const Planned first = queue.front();
    auto all = [&] {
        try {
            return plan(*cache, options);
        } catch (const std::exception& thrown) { // what the caller's urgency throws
            log().warn("open_all: the urgency callback throws: {}", thrown.what());
        } catch (...) {
            log().warn("open_all: the urgency callback throws something that is no std::exception");
        }
        OpenOptions without;
        return plan(*cache, without);
    }();
    std::erase_if(all, [&](const Planned& planned) {
        return planned.name == first.name && planned.entry.guards_digest == first.entry.guards_digest;
    });
    placeholders = reserve_placeholders(all);
    all.insert(all.begin(), first);
    queue = std::move(all);
    const std::scoped_lock lock{mutex};
    state.total += queue.size() - 1;
} catch (const std::exception& thrown) { // memory, or a folder that is gone: each call restores its own entry
    log().warn("open_all goes no further: {}", thrown.what());
}

bool Opening::Impl::start_planner()
try {
    end_workers.emplace([this] { end_at_exit(); });
    count_worker(1);
    try {
        planner = std::jthread([this] {
            let_first_call_pass();
            upload(queue.front(), stopping.get_token());
            plan_rest();
            try {
                if (!stopping.stop_requested() && !start_workers()) work(stopping.get_token());
            } catch (const std::exception& thrown) { // memory: each call restores its own entry
                log().warn("open_all goes no further: {}", thrown.what());
            }
            count_worker(-1);
        });
    } catch (...) {
        count_worker(-1);
        throw;
    }
    return true;
} catch (const std::system_error&) {
    return false;
}

void Opening::Impl::join_planner()
{
    if (!planner.joinable()) return;
    if (planner.get_id() == std::this_thread::get_id())
        planner.detach();
    else
        planner.join();
}

void Opening::Impl::join_others()
{
    for (std::jthread& worker : workers)
        if (worker.joinable() && worker.get_id() != std::this_thread::get_id()) worker.join();
}

void Opening::Impl::count_worker(int change) noexcept
{
    const std::scoped_lock lock{mutex};
    working += change;
    if (working == 0) all_ended.notify_all();
}

void Opening::Impl::join()
{
    {
        std::unique_lock lock{mutex}; // not with join_mutex: a worker that exits waits for the others
        all_ended.wait(lock, [&] { return working == 0; });
    }
    const std::scoped_lock lock{join_mutex};
    join_others();
}

void Opening::Impl::end_at_exit()
{
    stopping.request_stop();
    join_planner();
    const std::scoped_lock lock{join_mutex}; // nobody holds it who waits for this thread
    join_others();
}

Opening::Opening(std::unique_ptr<Impl> impl) noexcept : m_impl(std::move(impl)) {}
Opening::Opening(Opening&&) noexcept = default;
Opening& Opening::operator=(Opening&&) noexcept = default;
Opening::~Opening() = default;

void Opening::wait() { m_impl->join(); }

OpenProgress Opening::progress() const
{
    const std::scoped_lock lock{m_impl->mutex};
    return m_impl->state;
}

Opening Cache::open_all(OpenOptions options)
{
    // Its function's lock is held by the very call that would wait for it here.
    if (const RunContext* running = current_run())
        raise({ErrorCode::invalid_argument,
               fmt::format("open_all is called inside '{}': call it before the first call", running->function)});
    auto impl = std::make_unique<Opening::Impl>(m_impl, std::move(options));
    if (!impl->queue.empty()) {
        impl->restore_first();
        if (impl->has_more && !impl->start_planner()) {
            impl->upload(impl->queue.front(), {});
            impl->plan_rest();
        }
        if (!impl->planner.joinable() && !impl->start_workers()) impl->work({});
    }
    const bool all = impl->options.wait == OpenWait::all;
    Opening opening{std::move(impl)};
    if (all) opening.wait();
    return opening;
}

} // namespace warmgraph
