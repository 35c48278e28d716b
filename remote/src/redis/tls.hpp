// TLS for rediss, by the OpenSSL of this machine, which is opened at run time: only who uses rediss needs it.
#pragma once

#include <chrono>
#include <memory>
#include <span>
#include <string>

#include "warmgraph/base/bytes.hpp"
#include "warmgraph/base/error.hpp"

namespace warmgraph::remote::redis {

using Deadline = std::chrono::steady_clock::time_point;
class Socket;

/// The settings of all sessions of one server: TLS 1.2 or later, and the certificates that this machine trusts
/// ($SSL_CERT_FILE and $SSL_CERT_DIR, else OpenSSL's own). Thread-safe.
class TlsContext {
public:
    /// unsupported: this machine has no libssl.so.3.
    [[nodiscard]] static Result<std::unique_ptr<TlsContext>> open();
    TlsContext(TlsContext&&) = delete;
    ~TlsContext();

private:
    friend class TlsSession;
    struct Impl;
    explicit TlsContext(std::unique_ptr<Impl> impl) noexcept;
    std::unique_ptr<Impl> m_impl;
};

/// One connection. Its end sends nothing: after a fork the parent goes on with it.
class TlsSession {
public:
    /// REQUIRES: `context` outlives the session.
    explicit TlsSession(const TlsContext& context);
    TlsSession(TlsSession&&) = delete;
    ~TlsSession();

    /// io_failed: the server has no certificate for `host` that is trusted, or the handshake fails.
    [[nodiscard]] Result<void> shake_hands(Socket& socket, const std::string& host, Deadline by);
    [[nodiscard]] Result<void> send(Socket& socket, ByteView bytes, Deadline by);
    [[nodiscard]] Result<std::size_t> receive(Socket& socket, std::span<std::byte> room, Deadline by);

private:
    struct Impl;
    std::unique_ptr<Impl> m_impl;
};

} // namespace warmgraph::remote::redis
