#include "warmgraph/preload/preload_queue.hpp"

#include <algorithm>
#include <exception>
#include <system_error>
#include <utility>

#include <unistd.h>

#include "warmgraph/base/clock.hpp"
#include "warmgraph/base/log.hpp"
#include "warmgraph/base/units.hpp"

namespace warmgraph {

namespace {

/// More threads hardly help (measured: 2.4 us a node with one thread, 1.6 us with eight).
constexpr std::size_t k_most_threads = 8;

} // namespace

// --- a request

PreloadRequest::PreloadRequest(Progress progress, std::size_t threads)
    : m_progress(std::move(progress)), m_threads(threads), m_started(system_clock().steady())
{
}

PreloadProgress PreloadRequest::progress() const
{
    const std::scoped_lock lock{m_mutex};
    return m_state;
}

void PreloadRequest::add_to_total(std::size_t entries)
{
    const std::scoped_lock lock{m_mutex};
    m_state.total += entries;
}

void PreloadRequest::wait()
{
    std::unique_lock lock{m_mutex};
    m_changed.wait(lock, [this] { return m_left == 0; });
}

void PreloadRequest::report(const std::string& function, const std::function<void(PreloadProgress&)>& count) noexcept
try {
    const auto stop = stop_token();
    std::unique_lock lock{m_mutex};
    // Stopping ends this wait: the progress function may exit the process, which waits for this thread.
    const bool is_told = m_changed.wait(lock, stop, [this] { return !m_is_reporting; });
    count(m_state);
    m_state.elapsed_ms = Milliseconds{system_clock().steady() - m_started}.count();
    m_state.function = function;
    if (!is_told || stop.stop_requested() || !m_progress) return;
    const PreloadProgress now = m_state;
    m_is_reporting = true;
    lock.unlock();
    try {
        m_progress(now);
    } catch (const std::exception& thrown) {
        log().warn("preload: the progress callback throws: {}", thrown.what());
    } catch (...) {
        log().warn("preload: the progress callback throws something that is not a std::exception");
    }
    lock.lock();
    m_is_reporting = false;
    m_changed.notify_all();
} catch (const std::exception& thrown) { // no memory for a copy of the name
    log().warn("preload: the progress of '{}' is not reported: {}", function, thrown.what());
}

// --- the queue

struct PreloadQueue::State {
    struct Item {
        Request request;
        Task task;
    };

    void work()
    {
        while (auto item = next()) run(std::move(*item));
    }
    /// Returns the next item. nullopt: no item is left for this thread, and the thread is no longer counted.
    [[nodiscard]] std::optional<Item> next()
    {
        const std::scoped_lock lock{mutex};
        for (auto item = items.begin(); item != items.end(); ++item)
            if (auto taken = take(item)) return taken;
        const auto self = std::ranges::find(threads, std::this_thread::get_id(), &std::jthread::get_id);
        if (self != threads.end()) ended.splice(ended.end(), threads, self);
        return std::nullopt;
    }
    [[nodiscard]] std::optional<Item> next_of(const Request& request)
    {
        const std::scoped_lock lock{mutex};
        const auto item = std::ranges::find(items, request, &Item::request);
        return item != items.end() ? take(item) : std::nullopt;
    }
    /// Takes the item from the queue; nullopt if its request already runs as many tasks as it may. REQUIRES: the mutex
    /// is held.
    [[nodiscard]] std::optional<Item> take(std::list<Item>::iterator item)
    {
        const std::scoped_lock lock{item->request->m_mutex};
        if (item->request->m_running.size() >= item->request->m_threads) return std::nullopt;
        item->request->m_running.push_back(std::this_thread::get_id());
        std::optional<Item> taken{std::move(*item)};
        items.erase(item);
        return taken;
    }
    static void run(Item item)
    {
        PreloadRequest& request = *item.request;
        try {
            if (const auto stop = request.stop_token(); !stop.stop_requested()) item.task(stop);
        } catch (const std::exception& thrown) { // out of memory; the call then restores its entry itself
            log().debug("an entry is not preloaded: {}", thrown.what());
        }
        item.task = nullptr;
        const std::scoped_lock lock{request.m_mutex};
        std::erase(request.m_running, std::this_thread::get_id());
        --request.m_left;
        request.m_changed.notify_all();
    }
    /// REQUIRES: the mutex is held. Starts `count` more threads, if the system allows it.
    void start(const std::shared_ptr<State>& self, std::size_t count)
    {
        try {
            for (; count != 0 && threads.size() < k_most_threads; --count) {
                auto& thread = threads.emplace_back();
                thread = std::jthread{[self] { self->work(); }};
            }
        } catch (const std::system_error& thrown) {
            threads.pop_back();
            log().debug("entries are preloaded by only {}: {}", plural(threads.size(), "thread"), thrown.what());
        }
    }
    void end()
    {
        std::list<std::jthread> all;
        std::list<Item> dropped; // destroyed after the lock is released
        {
            const std::scoped_lock lock{mutex};
            has_ended = true;
            for (const auto& weak : requests)
                if (const auto request = weak.lock()) request->m_stop.request_stop();
            dropped.swap(items);
            all.splice(all.end(), threads);
            all.splice(all.end(), ended);
        }
        for (const Item& item : dropped) {
            const std::scoped_lock lock{item.request->m_mutex};
            --item.request->m_left;
            item.request->m_changed.notify_all();
        }
        for (std::jthread& thread : all) {
            if (process != ::getpid() || thread.get_id() == std::this_thread::get_id()) thread.detach();
        }
    }

    std::mutex mutex; // guards the other members
    std::list<Item> items;
    std::list<std::jthread> threads; ///< threads that run tasks
    std::list<std::jthread> ended;   ///< threads that ended and must be joined
    std::vector<std::weak_ptr<PreloadRequest>> requests;
    bool has_ended = false;
    pid_t process = ::getpid(); ///< the process with these threads: a forked child does not have these threads
};

PreloadQueue::PreloadQueue() : m_state(std::make_shared<State>()) {}
PreloadQueue::~PreloadQueue() { m_state->end(); }

void PreloadQueue::add(const Request& request, std::vector<Task> tasks, bool is_needed)
{
    std::list<std::jthread> ended; // joined after the lock is released
    bool has_threads = true;
    {
        const std::scoped_lock lock{m_state->mutex};
        if (m_state->has_ended) return;
        {
            const std::scoped_lock of_request{request->m_mutex};
            request->m_left += tasks.size();
        }
        if (m_state->process != ::getpid()) {
            for (auto* list : {&m_state->threads, &m_state->ended})
                for (std::jthread& thread : *list) thread.detach();
            m_state->threads.clear();
            m_state->ended.clear();
            m_state->process = ::getpid();
        }
        if (!m_at_exit) m_at_exit.emplace([state = m_state] { state->end(); });
        ended.swap(m_state->ended);
        std::erase_if(m_state->requests, [](const auto& one) { return one.expired(); });
        m_state->requests.push_back(request);
        const std::size_t wanted = std::min(tasks.size(), request->m_threads);
        for (Task& task : tasks) m_state->items.push_back({request, std::move(task)});
        m_state->start(m_state, wanted);
        has_threads = !m_state->threads.empty();
    }
    if (has_threads) return;
    if (!is_needed) request->m_stop.request_stop(); // makes the tasks of the request end at once
    while (auto item = m_state->next_of(request)) State::run(std::move(*item));
}

void PreloadQueue::stop(PreloadRequest& request)
{
    request.m_stop.request_stop();
    std::unique_lock lock{request.m_mutex};
    request.m_changed.wait(lock, [&] {
        return std::ranges::all_of(request.m_running, [](auto id) { return id == std::this_thread::get_id(); });
    });
}

} // namespace warmgraph
