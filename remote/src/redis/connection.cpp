#include "redis/connection.hpp"

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <system_error>
#include <thread>

#include <netinet/tcp.h>

#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

namespace warmgraph::remote::redis {
namespace {

std::string text_of_errno(int error) { return std::generic_category().message(error); }

bool is_end(int error) noexcept { return error == EPIPE || error == ECONNRESET; }

struct FreeAddresses {
    void operator()(addrinfo* list) const noexcept { ::freeaddrinfo(list); }
};
using Addresses = std::unique_ptr<addrinfo, FreeAddresses>;

/// The result of a lookup, which may come after nobody waits any more.
struct Lookup {
    std::mutex mutex;
    std::condition_variable ended;
    std::optional<int> status;
    Addresses addresses;
};

int look_up(const std::string& host, const std::string& port, int flags, Addresses& addresses)
{
    addrinfo hints{};
    hints.ai_flags = flags | AI_NUMERICSERV;
    hints.ai_family = AF_UNSPEC;
    hints.ai_socktype = SOCK_STREAM;
    addrinfo* list = nullptr;
    const int status = ::getaddrinfo(host.c_str(), port.c_str(), &hints, &list);
    if (status == 0) addresses.reset(list);
    return status;
}

/// getaddrinfo() has no time limit and waits for a name server for 5 s and longer, so it has a thread of its own.
Result<Addresses> addresses_of(const std::string& host, std::uint16_t port, Deadline by)
{
    const std::string service = std::to_string(port);
    Addresses numeric;
    if (look_up(host, service, AI_NUMERICHOST, numeric) == 0) return numeric;
    const auto lookup = std::make_shared<Lookup>();
    try {
        std::thread([=] {
            Addresses found;
            const int status = look_up(host, service, 0, found);
            const std::scoped_lock guard(lookup->mutex);
            lookup->status = status;
            lookup->addresses = std::move(found);
            lookup->ended.notify_one();
        }).detach();
    } catch (const std::system_error& error) {
        return fail(ErrorCode::io_failed, "cannot look up {}: no thread: {}", host, error.what());
    }
    std::unique_lock lock(lookup->mutex);
    if (!lookup->ended.wait_until(lock, by, [&] { return lookup->status.has_value(); }))
        return fail(ErrorCode::io_failed, "the look-up of {} did not end within the time limit for connecting", host);
    if (*lookup->status != 0)
        return fail(ErrorCode::io_failed, "cannot look up {}: {}", host, ::gai_strerror(*lookup->status));
    return std::move(lookup->addresses);
}

Result<Socket> connect_to(const Settings& settings, int family, const sockaddr* address, socklen_t size, Deadline by)
{
    const int descriptor = ::socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (descriptor < 0) return fail(ErrorCode::io_failed, "no socket: {}", text_of_errno(errno));
    Socket socket(descriptor, settings.stop);
    if (family != AF_UNIX) {
        const int on = 1; // a request goes out at once
        static_cast<void>(::setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on));
    }
    if (::connect(descriptor, address, size) == 0) return socket;
    // A Unix socket whose queue is full gives EAGAIN, and nothing to wait for.
    if (errno != EINPROGRESS && errno != EINTR)
        return fail(ErrorCode::io_failed, "cannot connect: {}", text_of_errno(errno));
    if (auto connected = socket.finish_connecting(by); !connected) return std::unexpected(connected.error());
    return socket;
}

Result<Socket> connect_by_name(const Settings& settings, Deadline by)
{
    constexpr std::uint16_t k_port = 6379;
    const auto addresses = addresses_of(settings.host, settings.port != 0 ? settings.port : k_port, by);
    if (!addresses) return std::unexpected(addresses.error());
    int left = 0;
    for (const addrinfo* address = addresses->get(); address != nullptr; address = address->ai_next) ++left;
    Result<Socket> socket = fail(ErrorCode::io_failed, "{} has no address", settings.host);
    for (const addrinfo* address = addresses->get(); address != nullptr; address = address->ai_next, --left) {
        const auto now = std::chrono::steady_clock::now();
        auto next =
            connect_to(settings, address->ai_family, address->ai_addr, address->ai_addrlen, now + (by - now) / left);
        if (next) return next;
        socket = std::unexpected(std::move(next.error()));
    }
    return socket;
}

Result<Socket> connect_by_path(const Settings& settings, Deadline by)
{
    const std::string& path = settings.path;
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    if (path.size() >= sizeof address.sun_path)
        return fail(ErrorCode::invalid_argument, "the path of a socket has {} bytes, at most {} are possible",
                    path.size(), sizeof address.sun_path - 1);
    std::ranges::copy(path, address.sun_path);
    return connect_to(settings, AF_UNIX, reinterpret_cast<const sockaddr*>(&address), sizeof address, by);
}

} // namespace

Socket::Socket(Socket&& other) noexcept
    : m_descriptor(std::exchange(other.m_descriptor, -1)),
      m_stop(std::move(other.m_stop)),
      m_is_closed(other.m_is_closed)
{
}

Socket::~Socket()
{
    if (m_descriptor >= 0) ::close(m_descriptor);
}

Result<void> Socket::wait_for(short events, Deadline by) const
{
    using std::chrono::milliseconds;
    constexpr std::int64_t k_look_ms = 50; // for the end of the process
    while (true) {
        if (m_stop && *m_stop) return fail(ErrorCode::io_failed, "nothing is asked any more, because the process ends");
        const auto left = std::chrono::ceil<milliseconds>(by - std::chrono::steady_clock::now()).count();
        pollfd one{.fd = m_descriptor, .events = events, .revents = 0};
        const int ready = ::poll(&one, 1, static_cast<int>(std::clamp<std::int64_t>(left, 0, k_look_ms)));
        if (ready > 0) return {};
        if (ready < 0 && errno != EINTR) return fail(ErrorCode::io_failed, "cannot wait: {}", text_of_errno(errno));
        if (ready == 0 && left <= 0) return fail(ErrorCode::io_failed, "no answer within the time limit");
    }
}

Result<void> Socket::finish_connecting(Deadline by)
{
    if (!wait_for(POLLOUT, by))
        return fail(ErrorCode::io_failed, "cannot connect: no answer within the time limit for connecting");
    int error = 0;
    socklen_t size = sizeof error;
    if (::getsockopt(m_descriptor, SOL_SOCKET, SO_ERROR, &error, &size) != 0) error = errno;
    if (error != 0) return fail(ErrorCode::io_failed, "cannot connect: {}", text_of_errno(error));
    return {};
}

Result<void> Socket::send(ByteView bytes, Deadline by)
{
    while (!bytes.empty()) {
        const ssize_t sent = ::send(m_descriptor, bytes.data(), bytes.size(), MSG_NOSIGNAL);
        if (sent >= 0) {
            bytes = bytes.subspan(static_cast<std::size_t>(sent));
        } else if (errno == EAGAIN) {
            if (auto ready = wait_for(POLLOUT, by); !ready) return ready;
        } else if (errno != EINTR) {
            m_is_closed = is_end(errno);
            return fail(ErrorCode::io_failed, "cannot send: {}", text_of_errno(errno));
        }
    }
    return {};
}

Result<std::size_t> Socket::receive(std::span<std::byte> room, Deadline by)
{
    while (true) {
        const ssize_t received = ::recv(m_descriptor, room.data(), room.size(), 0);
        if (received > 0) return static_cast<std::size_t>(received);
        if (received == 0 || is_end(errno)) {
            m_is_closed = true;
            return 0;
        }
        if (errno == EAGAIN) {
            if (auto ready = wait_for(POLLIN, by); !ready) return std::unexpected(ready.error());
        } else if (errno != EINTR) {
            return fail(ErrorCode::io_failed, "cannot receive: {}", text_of_errno(errno));
        }
    }
}

bool Socket::is_quiet() const noexcept
{
    pollfd one{.fd = m_descriptor, .events = POLLIN, .revents = 0};
    return ::poll(&one, 1, 0) == 0;
}

Result<std::unique_ptr<Connection>> Connection::open(const Settings& settings, const TlsContext* tls,
                                                     Deadline connect_by, Deadline by)
{
    auto socket = settings.scheme == Scheme::redis_socket ? connect_by_path(settings, connect_by)
                                                          : connect_by_name(settings, connect_by);
    if (!socket) return std::unexpected(socket.error());
    auto connection = std::make_unique<Connection>(std::move(*socket));
    if (tls != nullptr) {
        connection->m_tls = std::make_unique<TlsSession>(*tls);
        auto secured = connection->m_tls->shake_hands(connection->m_socket, settings.host, by);
        if (!secured) return std::unexpected(secured.error());
    }
    return connection;
}

Result<void> Connection::send(ByteView bytes, Deadline by)
{
    return m_tls ? m_tls->send(m_socket, bytes, by) : m_socket.send(bytes, by);
}

Result<std::size_t> Connection::receive(std::span<std::byte> room, Deadline by)
{
    return m_tls ? m_tls->receive(m_socket, room, by) : m_socket.receive(room, by);
}

} // namespace warmgraph::remote::redis
