#include "copies.hpp"

#include <exception>
#include <utility>

#include <unistd.h>

#include "warmgraph/base/log.hpp"

namespace warmgraph::store {

Copies::Copies(std::function<void(const Name&, ByteView)> write) : m_write(std::move(write)), m_process(::getpid()) {}

void Copies::add(const Name& name, Bytes bytes)
{
    constexpr std::uint64_t k_most_waiting = 256ULL << 20; // of the host's memory
    if (::getpid() == m_process) {
        const std::scoped_lock lock{m_mutex};
        if (!m_is_ending && m_waiting + bytes.size() <= k_most_waiting) {
            if (!m_thread.joinable()) {
                m_thread = std::thread([this] { run(); });
                m_at_exit.emplace([this] { end(); });
            }
            m_waiting += bytes.size();
            m_queue.push_back({name, std::move(bytes)});
            m_changed.notify_all();
            return;
        }
    }
    m_write(name, bytes);
}

void Copies::run() noexcept
{
    std::unique_lock lock{m_mutex};
    while (true) {
        m_changed.wait(lock, [&] { return m_is_ending || !m_queue.empty(); });
        if (m_queue.empty()) return;
        const Copy copy = std::move(m_queue.front());
        m_queue.pop_front();
        m_is_writing = true;
        lock.unlock();
        m_write(copy.name, copy.bytes);
        lock.lock();
        m_waiting -= copy.bytes.size();
        m_is_writing = false;
        m_changed.notify_all();
    }
}

void Copies::wait()
{
    std::unique_lock lock{m_mutex};
    m_changed.wait(lock, [&] { return m_queue.empty() && !m_is_writing; });
}

void Copies::end() noexcept
{
    std::thread ended;
    {
        const std::scoped_lock lock{m_mutex};
        m_is_ending = true;
        ended = std::move(m_thread);
        m_changed.notify_all();
    }
    if (ended.joinable()) ended.join();
}

} // namespace warmgraph::store
