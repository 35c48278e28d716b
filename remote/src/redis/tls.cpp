#include "redis/tls.hpp"

#include <algorithm>

#include <arpa/inet.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include <dlfcn.h>

#include "redis/connection.hpp"

namespace warmgraph::remote::redis {
namespace {

/// OpenSSL's functions. All come from the opened library and from the libcrypto that it needs: this library may hold
/// another libcrypto, whose objects must not be mixed with those.
struct OpenSsl {
    decltype(&::TLS_client_method) client_method;
    decltype(&::SSL_CTX_new) ctx_new;
    decltype(&::SSL_CTX_free) ctx_free;
    decltype(&::SSL_CTX_ctrl) ctx_ctrl;
    decltype(&::SSL_CTX_set_options) ctx_set_options;
    decltype(&::SSL_CTX_set_verify) ctx_set_verify;
    decltype(&::SSL_CTX_set_default_verify_paths) ctx_set_default_verify_paths;
    decltype(&::SSL_new) ssl_new;
    decltype(&::SSL_free) ssl_free;
    decltype(&::SSL_ctrl) ssl_ctrl;
    decltype(&::SSL_get0_param) get0_param;
    decltype(&::SSL_set_bio) set_bio;
    decltype(&::SSL_connect) connect;
    decltype(&::SSL_get_error) get_error;
    decltype(&::SSL_get_verify_result) get_verify_result;
    decltype(&::SSL_read_ex) read_ex;
    decltype(&::SSL_write_ex) write_ex;
    decltype(&::X509_VERIFY_PARAM_set1_ip_asc) set1_ip_asc;
    decltype(&::X509_VERIFY_PARAM_set1_host) set1_host;
    decltype(&::X509_verify_cert_error_string) verify_text;
    decltype(&::BIO_new) bio_new;
    decltype(&::BIO_s_mem) bio_s_mem;
    decltype(&::BIO_read) bio_read;
    decltype(&::BIO_write) bio_write;
    decltype(&::ERR_get_error) err_get_error;
    decltype(&::ERR_clear_error) err_clear_error;
    decltype(&::ERR_error_string_n) err_text;
};

template <class Function>
bool find(void* library, const char* name, Function& function)
{
    function = reinterpret_cast<Function>(::dlsym(library, name));
    return function != nullptr;
}

/// Null where the library, or a function, is missing. The library stays open.
const OpenSsl* open_ssl()
{
    static const OpenSsl* const functions = []() -> const OpenSsl* {
        void* const library = ::dlopen("libssl.so.3", RTLD_NOW | RTLD_LOCAL);
        if (library == nullptr) return nullptr;
        static OpenSsl found{};
        const bool all =
            find(library, "TLS_client_method", found.client_method) && find(library, "SSL_CTX_new", found.ctx_new) &&
            find(library, "SSL_CTX_free", found.ctx_free) && find(library, "SSL_CTX_ctrl", found.ctx_ctrl) &&
            find(library, "SSL_CTX_set_options", found.ctx_set_options) &&
            find(library, "SSL_CTX_set_verify", found.ctx_set_verify) &&
            find(library, "SSL_CTX_set_default_verify_paths", found.ctx_set_default_verify_paths) &&
            find(library, "SSL_new", found.ssl_new) && find(library, "SSL_free", found.ssl_free) &&
            find(library, "SSL_ctrl", found.ssl_ctrl) && find(library, "SSL_get0_param", found.get0_param) &&
            find(library, "SSL_set_bio", found.set_bio) && find(library, "SSL_connect", found.connect) &&
            find(library, "SSL_get_error", found.get_error) &&
            find(library, "SSL_get_verify_result", found.get_verify_result) &&
            find(library, "SSL_read_ex", found.read_ex) && find(library, "SSL_write_ex", found.write_ex) &&
            find(library, "X509_VERIFY_PARAM_set1_ip_asc", found.set1_ip_asc) &&
            find(library, "X509_VERIFY_PARAM_set1_host", found.set1_host) &&
            find(library, "X509_verify_cert_error_string", found.verify_text) &&
            find(library, "BIO_new", found.bio_new) && find(library, "BIO_s_mem", found.bio_s_mem) &&
            find(library, "BIO_read", found.bio_read) && find(library, "BIO_write", found.bio_write) &&
            find(library, "ERR_get_error", found.err_get_error) &&
            find(library, "ERR_clear_error", found.err_clear_error) &&
            find(library, "ERR_error_string_n", found.err_text);
        return all ? &found : nullptr;
    }();
    return functions;
}

bool is_ip_address(const std::string& host)
{
    in6_addr address{};
    return ::inet_pton(AF_INET, host.c_str(), &address) == 1 || ::inet_pton(AF_INET6, host.c_str(), &address) == 1;
}

} // namespace

struct TlsContext::Impl {
    const OpenSsl& api;
    SSL_CTX* context;
};

TlsContext::TlsContext(std::unique_ptr<Impl> impl) noexcept : m_impl(std::move(impl)) {}
TlsContext::~TlsContext() { m_impl->api.ctx_free(m_impl->context); }

Result<std::unique_ptr<TlsContext>> TlsContext::open()
{
    const OpenSsl* const api = open_ssl();
    if (api == nullptr)
        return fail(ErrorCode::unsupported, "rediss needs OpenSSL 3, and libssl.so.3 cannot be opened: install it "
                                            "(Debian and Ubuntu: libssl3), or use redis");
    SSL_CTX* const context = api->ctx_new(api->client_method());
    if (context == nullptr) return fail(ErrorCode::io_failed, "OpenSSL cannot prepare TLS");
    std::unique_ptr<TlsContext> result(new TlsContext(std::make_unique<Impl>(*api, context)));
    api->ctx_ctrl(context, SSL_CTRL_SET_MIN_PROTO_VERSION, TLS1_2_VERSION, nullptr);
    api->ctx_set_options(context, SSL_OP_NO_RENEGOTIATION);
    api->ctx_set_verify(context, SSL_VERIFY_PEER, nullptr);
    // Without certificates no server is trusted, and the handshake says so.
    static_cast<void>(api->ctx_set_default_verify_paths(context));
    api->err_clear_error();
    return result;
}

/// OpenSSL reads from and writes to memory; the bytes between that and the socket are moved here, because a socket of
/// OpenSSL's would raise SIGPIPE and know no deadline.
struct TlsSession::Impl {
    const OpenSsl& api;
    SSL* ssl;
    BIO* received; ///< of `ssl`
    BIO* to_send;  ///< of `ssl`

    Result<void> flush(Socket& socket, Deadline by) const
    {
        std::byte piece[16 * 1024];
        int count = 0;
        while ((count = api.bio_read(to_send, piece, sizeof piece)) > 0)
            if (auto sent = socket.send({piece, static_cast<std::size_t>(count)}, by); !sent) return sent;
        return {};
    }
    /// Gives OpenSSL more bytes from the server; false at their end.
    Result<bool> fill(Socket& socket, Deadline by) const
    {
        std::byte piece[32 * 1024];
        const auto count = socket.receive(piece, by);
        if (!count) return std::unexpected(count.error());
        if (*count > 0 && api.bio_write(received, piece, static_cast<int>(*count)) != static_cast<int>(*count))
            return fail(ErrorCode::io_failed, "TLS: no memory");
        return *count > 0;
    }
    std::unexpected<Error> failure(std::string_view doing) const
    {
        const unsigned long error = api.err_get_error();
        char text[256] = "the connection ended";
        if (error != 0) api.err_text(error, text, sizeof text);
        const long verified = api.get_verify_result(ssl);
        if (verified == X509_V_OK) return fail(ErrorCode::io_failed, "TLS: {}: {}", doing, text);
        return fail(ErrorCode::io_failed, "TLS: {}: the server's certificate: {} (SSL_CERT_FILE names others to trust)",
                    doing, api.verify_text(verified));
    }
    /// Calls `step` until it succeeds; 1 is success. False: the server ended the session.
    template <class Step>
    Result<bool> run(Socket& socket, Deadline by, std::string_view doing, const Step& step) const
    {
        while (true) {
            api.err_clear_error();
            const int result = step();
            const int error = result == 1 ? SSL_ERROR_NONE : api.get_error(ssl, result);
            // An alert about the failure goes out, too, but the failure is the result.
            auto sent = flush(socket, by);
            if (error == SSL_ERROR_ZERO_RETURN) return false;
            if (error != SSL_ERROR_NONE && error != SSL_ERROR_WANT_READ) return failure(doing);
            if (!sent) return std::unexpected(sent.error());
            if (error == SSL_ERROR_NONE) return true;
            if (const auto more = fill(socket, by); !more || !*more) return more;
        }
    }
};

TlsSession::TlsSession(const TlsContext& context)
    : m_impl(std::make_unique<Impl>(context.m_impl->api, context.m_impl->api.ssl_new(context.m_impl->context), nullptr,
                                    nullptr))
{
    Impl& it = *m_impl;
    if (it.ssl == nullptr) return;
    it.received = it.api.bio_new(it.api.bio_s_mem());
    it.to_send = it.api.bio_new(it.api.bio_s_mem());
    it.api.set_bio(it.ssl, it.received, it.to_send);
}

TlsSession::~TlsSession() { m_impl->api.ssl_free(m_impl->ssl); }

Result<void> TlsSession::shake_hands(Socket& socket, const std::string& host, Deadline by)
{
    const Impl& it = *m_impl;
    if (it.ssl == nullptr || it.received == nullptr || it.to_send == nullptr)
        return fail(ErrorCode::io_failed, "TLS: no memory");
    X509_VERIFY_PARAM* const wanted = it.api.get0_param(it.ssl);
    int set = 0;
    if (is_ip_address(host)) {
        set = it.api.set1_ip_asc(wanted, host.c_str());
    } else {
        set = it.api.set1_host(wanted, host.c_str(), host.size());
        std::string name = host; // the function takes a pointer to what it does not change
        it.api.ssl_ctrl(it.ssl, SSL_CTRL_SET_TLSEXT_HOSTNAME, TLSEXT_NAMETYPE_host_name, name.data());
    }
    // An empty name would accept any certificate.
    if (set != 1 || host.empty()) return fail(ErrorCode::io_failed, "TLS: '{}' is no name for a certificate", host);
    const auto done = it.run(socket, by, "handshake", [&] { return it.api.connect(it.ssl); });
    if (!done) return std::unexpected(done.error());
    if (!*done) return fail(ErrorCode::io_failed, "TLS: the server closed the connection during the handshake");
    return {};
}

Result<void> TlsSession::send(Socket& socket, ByteView bytes, Deadline by)
{
    constexpr std::size_t k_piece = 256 * 1024; // limits the memory for encrypted bytes
    while (!bytes.empty()) {
        std::size_t sent = 0;
        const ByteView piece = bytes.first(std::min(bytes.size(), k_piece));
        const auto ok = m_impl->run(
            socket, by, "send", [&] { return m_impl->api.write_ex(m_impl->ssl, piece.data(), piece.size(), &sent); });
        if (!ok) return std::unexpected(ok.error());
        if (!*ok) return fail(ErrorCode::io_failed, "TLS: the server closed the connection");
        bytes = bytes.subspan(sent);
    }
    return {};
}

Result<std::size_t> TlsSession::receive(Socket& socket, std::span<std::byte> room, Deadline by)
{
    std::size_t count = 0;
    const auto ok = m_impl->run(socket, by, "receive",
                                [&] { return m_impl->api.read_ex(m_impl->ssl, room.data(), room.size(), &count); });
    if (!ok) return std::unexpected(ok.error());
    return *ok ? count : 0;
}

} // namespace warmgraph::remote::redis
