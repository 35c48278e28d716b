// A server that answers wrongly, slowly or not at all: one behaviour for each connection.
#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <string_view>
#include <thread>

#include <poll.h>

#include "loopback.hpp"

namespace warmgraph::test {

/// One connection, on the server's side. Each call returns early, with false, once the client or the server has ended.
class FaultPeer {
public:
    FaultPeer(Descriptor connection, const std::atomic<bool>& is_over, std::atomic<std::uint64_t>& sent)
        : m_connection(std::move(connection)), m_is_over(is_over), m_sent(sent)
    {
    }

    /// Reads up to the end of the request's headers.
    [[nodiscard]] bool reads_request()
    {
        m_request.clear();
        while (!m_request.contains("\r\n\r\n")) {
            if (!waits_for(POLLIN)) return false;
            char piece[4096];
            const ssize_t size = ::recv(m_connection.get(), piece, sizeof piece, 0);
            if (size <= 0) return false;
            m_request.append(piece, static_cast<std::size_t>(size));
        }
        return true;
    }
    [[nodiscard]] const std::string& request() const noexcept { return m_request; }
    bool sends(std::string_view text)
    {
        while (!text.empty()) {
            if (!waits_for(POLLOUT)) return false;
            const ssize_t size = ::send(m_connection.get(), text.data(), text.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
            if (size <= 0) return false;
            m_sent += static_cast<std::uint64_t>(size);
            text.remove_prefix(static_cast<std::size_t>(size));
        }
        return true;
    }
    /// Sends the text again and again, with the pause between.
    void sends_for_ever(std::string_view text, std::chrono::milliseconds pause = std::chrono::milliseconds(0))
    {
        while (sends(text) && !has_left())
            if (pause.count() != 0) std::this_thread::sleep_for(pause);
    }
    void waits_for_the_end()
    {
        while (!m_is_over && !has_left()) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    /// Ends the connection with a reset.
    void resets()
    {
        const linger at_once{1, 0};
        ::setsockopt(m_connection.get(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
        m_connection = Descriptor();
    }

private:
    [[nodiscard]] bool waits_for(short event) const
    {
        while (!m_is_over) {
            pollfd wanted{m_connection.get(), event, 0};
            if (::poll(&wanted, 1, 20) > 0) return true;
        }
        return false;
    }
    [[nodiscard]] bool has_left() const
    {
        pollfd wanted{m_connection.get(), POLLRDHUP, 0};
        return ::poll(&wanted, 1, 0) > 0;
    }

    Descriptor m_connection;
    const std::atomic<bool>& m_is_over;
    std::atomic<std::uint64_t>& m_sent;
    std::string m_request;
};

using FaultBehaviour = std::function<void(FaultPeer&)>;

/// Serves one connection after another.
class FaultServer {
public:
    explicit FaultServer(FaultBehaviour behaviour) : m_behaviour(std::move(behaviour))
    {
        std::tie(m_socket, m_port) = bound_socket();
        if (::listen(m_socket.get(), 16) != 0) throw std::runtime_error("listen failed");
        m_thread = std::jthread([this] { serve(); });
    }
    FaultServer(const FaultServer&) = delete;
    FaultServer& operator=(const FaultServer&) = delete;
    ~FaultServer() { m_is_over = true; }

    [[nodiscard]] std::uint16_t port() const noexcept { return m_port; }
    [[nodiscard]] std::uint64_t sent() const noexcept
    {
        return m_sent;
    } ///< bytes, also those that the client did not take
    [[nodiscard]] int connections() const noexcept { return m_connections; }

private:
    void serve()
    {
        while (!m_is_over) {
            pollfd wanted{m_socket.get(), POLLIN, 0};
            if (::poll(&wanted, 1, 20) <= 0) continue;
            Descriptor connection(::accept4(m_socket.get(), nullptr, nullptr, SOCK_CLOEXEC));
            if (connection.get() < 0) continue;
            ++m_connections;
            FaultPeer peer(std::move(connection), m_is_over, m_sent);
            m_behaviour(peer);
        }
    }

    FaultBehaviour m_behaviour;
    Descriptor m_socket;
    std::uint16_t m_port = 0;
    std::atomic<bool> m_is_over = false;
    std::atomic<std::uint64_t> m_sent = 0;
    std::atomic<int> m_connections = 0;
    std::jthread m_thread; // last: it uses the rest
};

} // namespace warmgraph::test
