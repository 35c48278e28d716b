#include "warmgraph/remote/uploads.hpp"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <set>
#include <thread>

#include <unistd.h>

#include "warmgraph/base/exit_hook.hpp"
#include "warmgraph/base/log.hpp"
#include "warmgraph/base/units.hpp"
#include "warmgraph/cachefmt/codec.hpp"
#include "warmgraph/profile/profile_library.hpp"

namespace warmgraph::remote {
namespace {

/// The profile with the counts of the remote's, if that has one.
Result<Bytes> joined(RemoteTier& remote, const store::Name& name, Bytes bytes)
{
    const auto there = remote.get(name, {store::row_of(store::ArtifactKind::profiles).most_bytes});
    if (!there || !*there || !(*there)->bytes) return bytes;
    auto own = profile::decode(bytes);
    auto theirs = profile::decode(*(*there)->bytes);
    if (!own || !theirs) return bytes;
    const auto both = profile::join(std::move(*own), *theirs);
    if (!both) return bytes;
    return profile::ProfileCodec::encode(*both);
}

bool is_tombstone(const store::EntryKey& key, ByteView bytes)
{
    const auto header = cachefmt::decode_header(bytes, key, {}, {});
    return header && header->kind != cachefmt::EntryKind::graph;
}

} // namespace

std::string mark_name(const Settings& settings)
{
    return settings.name_space.empty() ? settings.label : fmt::format("{} {}", settings.label, settings.name_space);
}

Result<bool> send(store::LocalStore& store, RemoteTier& remote, const store::Name& name)
{
    auto found = store.tier().get(name, {store::row_of(store::kind_of(name)).most_bytes});
    if (!found) return std::unexpected(found.error());
    if (!*found || !(*found)->bytes) return false;
    Bytes& bytes = *(*found)->bytes;
    const auto* const key = std::get_if<store::EntryKey>(&name);
    if (key != nullptr && is_tombstone(*key, bytes)) return false;
    if (store::kind_of(name) == store::ArtifactKind::profiles) {
        auto both = joined(remote, name, std::move(bytes));
        if (!both) return std::unexpected(both.error());
        bytes = std::move(*both);
    }
    const bool is_image = std::holds_alternative<store::ImageName>(name);
    if (auto done = remote.put(name, bytes, is_image ? store::PutMode::create_only : store::PutMode::replace); !done)
        return std::unexpected(done.error());
    return true;
}

struct Uploads::State {
    struct Item {
        std::size_t remote;
        store::Name name;
    };

    store::LocalStore& store;
    std::vector<std::shared_ptr<RemoteTier>> remotes;
    std::chrono::milliseconds deadline;
    pid_t process = ::getpid();
    std::mutex mutex;
    std::condition_variable changed;
    std::deque<Item> queue;    ///< guarded by mutex, like all below
    std::set<store::Name> own; ///< what this process put, before it is marked: no earlier process left it
    std::size_t failed = 0;
    bool is_sending = false, is_ending = false, wants_left = false;
    std::thread thread;
    std::optional<ExitHook> at_exit;

    void note(const store::Name& name) noexcept;
    void add(Item item);
    void start();
    void run() noexcept;
    void take_left() noexcept;
    void send_one(const Item& item) noexcept;
    void end() noexcept;
};

void Uploads::State::note(const store::Name& name) noexcept
try {
    if (::getpid() != process) return;
    {
        const std::scoped_lock lock{mutex};
        own.insert(name);
    }
    for (std::size_t i = 0; i < remotes.size(); ++i) {
        if (auto marked = store.set_mark(remotes[i]->mark(), store::RemoteMark::unsent, to_text(name)); !marked)
            log().debug("{} is not marked as unsent: {}", to_text(name), marked.error().message);
        const std::scoped_lock lock{mutex};
        add({i, name});
        start();
    }
} catch (const std::exception& error) {
    log().debug("an object is not sent by this process: {}", error.what());
}

/// An object that waits already is sent as it is then. Once the thread has ended, a mark is all that is left to do.
/// REQUIRES: mutex is held.
void Uploads::State::add(Item item)
{
    if (is_ending) return;
    const bool waits =
        std::ranges::any_of(queue, [&](const Item& one) { return one.remote == item.remote && one.name == item.name; });
    if (!waits) queue.push_back(std::move(item));
}

/// Starts the thread at the first use. REQUIRES: mutex is held.
void Uploads::State::start()
{
    if (!thread.joinable() && !is_ending) {
        thread = std::thread([this] { run(); });
        at_exit.emplace([this] { end(); });
    }
    changed.notify_all();
}

void Uploads::State::run() noexcept
{
    std::unique_lock lock{mutex};
    while (true) {
        changed.wait(lock, [&] { return is_ending || wants_left || !queue.empty(); });
        if (wants_left) {
            wants_left = false;
            is_sending = true;
            lock.unlock();
            take_left();
            lock.lock();
        } else if (!queue.empty()) {
            const Item item = std::move(queue.front());
            queue.pop_front();
            is_sending = true;
            lock.unlock();
            send_one(item);
            lock.lock();
        } else {
            return; // is_ending
        }
        is_sending = false;
        changed.notify_all();
    }
}

/// Puts what earlier processes left into the queue: images first, because entries name them.
void Uploads::State::take_left() noexcept
try {
    for (std::size_t i = 0; i < remotes.size(); ++i) {
        const auto names = store.marks(remotes[i]->mark(), store::RemoteMark::unsent);
        if (!names) continue;
        std::vector<Item> left;
        for (const std::string& text : *names)
            if (auto name = store::name_from_text(text)) left.push_back({i, std::move(*name)});
        std::ranges::stable_partition(
            left, [](const Item& item) { return std::holds_alternative<store::ImageName>(item.name); });
        const std::scoped_lock lock{mutex};
        for (Item& item : left)
            if (!own.contains(item.name)) add(std::move(item));
    }
} catch (const std::exception& error) {
    log().debug("what earlier processes did not send is not sent now: {}", error.what());
}

void Uploads::State::send_one(const Item& item) noexcept
try {
    RemoteTier& remote = *remotes[item.remote];
    const std::string text = store::to_text(item.name);
    const auto sent = send(store, remote, item.name);
    // An object that the remote never takes is not tried by each later process again.
    const bool is_final = sent || sent.error().code == ErrorCode::unsupported;
    if (!sent) {
        log().debug("{} is not sent to {}: {}", text, remote.remote_label(), sent.error().message);
        const std::scoped_lock lock{mutex};
        ++failed;
    }
    if (is_final) static_cast<void>(store.clear_mark(remote.mark(), store::RemoteMark::unsent, text));
} catch (const std::exception& error) {
    log().debug("an object is not sent: {}", error.what());
}

/// Waits for the queue until the deadline, then stops the remotes and drops the queue; the marks stay.
void Uploads::State::end() noexcept
{
    std::unique_lock lock{mutex};
    const bool is_done = changed.wait_for(lock, deadline, [&] { return queue.empty() && !is_sending && !wants_left; });
    is_ending = true;
    const std::size_t left = queue.size() + (is_sending ? 1 : 0);
    queue.clear();
    wants_left = false;
    changed.notify_all();
    std::thread ended = std::move(thread);
    lock.unlock();
    if (!is_done)
        for (const auto& remote : remotes) remote->stop();
    if (ended.joinable()) ended.join();
    if (left != 0)
        log().info("{} not sent yet: the next process or `warmgraph push` sends them", plural(left, "object"));
}

Uploads::Uploads(store::LocalStore& store, std::vector<std::shared_ptr<RemoteTier>> remotes,
                 std::chrono::milliseconds deadline)
    : m_state(std::make_shared<State>(store, std::move(remotes), deadline))
{
    std::erase_if(m_state->remotes, [](const auto& remote) { return remote->options().read_only; });
    if (m_state->remotes.empty()) return;
    store.listen([state = m_state](const store::Name& name) { state->note(name); });
}

Uploads::~Uploads()
{
    if (::getpid() == m_state->process) {
        m_state->end(); // the listener stays: it only marks objects from now on
    } else {
        static_cast<void>(new std::shared_ptr<State>(m_state)); // a forked child has no thread to end
    }
}

void Uploads::resume() noexcept
try {
    const std::scoped_lock lock{m_state->mutex};
    if (m_state->remotes.empty()) return;
    m_state->wants_left = true;
    m_state->start();
} catch (const std::exception& error) {
    log().debug("what earlier processes did not send is not sent now: {}", error.what());
}

std::size_t Uploads::wait(std::chrono::milliseconds most)
{
    std::unique_lock lock{m_state->mutex};
    m_state->changed.wait_for(lock, most,
                              [&] { return m_state->queue.empty() && !m_state->is_sending && !m_state->wants_left; });
    return m_state->queue.size() + m_state->failed + (m_state->is_sending ? 1 : 0);
}

} // namespace warmgraph::remote
