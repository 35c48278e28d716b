#include "redis/client.hpp"

#include <algorithm>
#include <array>

#include <unistd.h>

#include "warmgraph/base/signing_key.hpp"

namespace warmgraph::remote::redis {
namespace {

constexpr std::size_t k_most_idle = 4;
/// Routers between machines forget connections without traffic, at the earliest after some minutes, and tell nobody.
constexpr std::chrono::seconds k_longest_idle{60};

/// The replies, and how far they came: an answer that has begun is never asked for again.
struct Exchange {
    Result<std::vector<Reply>> replies;
    bool has_begun = false;
};

/// The first error of the replies: in a transaction the later ones only say that an earlier one failed.
const Reply* first_error(const std::vector<Reply>& replies)
{
    const auto error = std::ranges::find(replies, Reply::Kind::error, &Reply::kind);
    return error == replies.end() ? nullptr : &*error;
}

Result<std::vector<Reply>> read_replies(Connection& connection, std::size_t count, const ReplyCaps& caps,
                                        const CallTimes& times, bool& has_begun)
{
    std::vector<Reply> replies;
    ReplyParser parser(caps);
    std::array<std::byte, 64 * 1024> room; // NOLINT: only what was received is read
    Deadline by = std::min(times.by, std::chrono::steady_clock::now() + times.silence);
    while (replies.size() < count) {
        const auto received = connection.receive(room, by);
        if (!received) return std::unexpected(received.error());
        // A server that takes no more clients says so, and ends the connection.
        if (*received == 0 && first_error(replies) != nullptr) return replies;
        if (*received == 0) return fail(ErrorCode::io_failed, "the server closed the connection");
        has_begun = true;
        by = times.by;
        ByteView bytes{room.data(), *received};
        while (replies.size() < count) {
            auto reply = parser.take(bytes);
            if (!reply) return std::unexpected(reply.error());
            if (!*reply) break;
            replies.push_back(std::move(**reply));
        }
        if (!bytes.empty()) return fail(ErrorCode::corrupt, "the server answers more than was asked");
    }
    return replies;
}

Exchange exchange(Connection& connection, const Request& request, const ReplyCaps& caps, const CallTimes& times)
{
    Exchange done;
    if (auto sent = connection.send(as_bytes(request.bytes), times.by); !sent)
        done.replies = std::unexpected(sent.error());
    else
        done.replies = read_replies(connection, request.commands, caps, times, done.has_begun);
    return done;
}

/// A server may repeat the arguments of a command in its error, so nothing of the text is shown.
Error refused_login(const Error& error, std::string_view line)
{
    const std::string_view known[]{"WRONGPASS", "NOAUTH", "NOPERM", "LOADING", "ERR"};
    const auto word = std::ranges::find(known, line.substr(0, line.find(' ')));
    return {error.code, fmt::format("the server refuses the user, the password or the database ({})",
                                    word == std::end(known) ? "another error" : *word)};
}

} // namespace

std::unique_ptr<Connection> Client::take_idle()
{
    const std::scoped_lock guard(m_mutex);
    // The parent goes on with these connections; here they are only closed, which sends nothing.
    if (const pid_t self = ::getpid(); std::exchange(m_owner, self) != self) m_idle.clear();
    while (!m_idle.empty()) {
        Idle last = std::move(m_idle.back());
        m_idle.pop_back();
        // Bytes that wait here are the end of the connection, or an answer that nobody asked for.
        const bool is_good = last.connection->is_quiet();
        if (is_good && std::chrono::steady_clock::now() - last.since < k_longest_idle)
            return std::move(last.connection);
    }
    return nullptr;
}

void Client::keep(std::unique_ptr<Connection> connection)
{
    const std::scoped_lock guard(m_mutex);
    if (m_owner == ::getpid() && m_idle.size() < k_most_idle)
        m_idle.push_back({std::move(connection), std::chrono::steady_clock::now()});
}

Result<std::unique_ptr<Connection>> Client::open(const CallTimes& times) const
{
    const Deadline connect_by = std::min(times.by, std::chrono::steady_clock::now() + m_settings.connect_timeout);
    auto connection = Connection::open(m_settings, m_tls.get(), connect_by,
                                       std::min(times.by, connect_by + m_settings.header_timeout));
    if (!connection) return connection;
    Request login;
    const Credentials& credentials = m_settings.credentials;
    login.bytes.reserve(256 + credentials.user.size() + credentials.password.size()); // growth would leave copies
    if (!credentials.user.empty())
        login.add({"AUTH", credentials.user, credentials.password});
    else if (!credentials.password.empty())
        login.add({"AUTH", credentials.password});
    if (m_settings.database != 0) login.add({"SELECT", std::to_string(m_settings.database)});
    if (login.commands == 0) return connection;
    const Exchange done = exchange(**connection, login, {}, {times.by, m_settings.header_timeout});
    wipe(login.bytes);
    if (!done.replies && done.replies.error().code == ErrorCode::corrupt) // its message shows the answer
        return fail(ErrorCode::corrupt, "the server does not answer the login as Redis does");
    if (!done.replies) return std::unexpected(done.replies.error());
    if (const Reply* const error = first_error(*done.replies))
        return std::unexpected(refused_login(error_of(error->line), error->line));
    return connection;
}

Result<std::vector<Reply>> Client::call(const Request& request, const ReplyCaps& caps, const CallTimes& times)
{
    std::unique_ptr<Connection> connection = take_idle();
    while (true) {
        // A server that answers each command at once could make a list endless.
        if (std::chrono::steady_clock::now() >= times.by)
            return fail(ErrorCode::io_failed, "remote {}: no answer within the time limit", m_settings.label);
        const bool is_kept = connection != nullptr;
        if (!is_kept) {
            auto opened = open(times);
            if (!opened) return within(fmt::format("remote {}", m_settings.label), std::move(opened.error()));
            connection = std::move(*opened);
        }
        Exchange done = exchange(*connection, request, caps, times);
        if (!done.replies && is_kept && !done.has_begun && connection->is_closed()) {
            connection.reset();
            continue;
        }
        if (!done.replies) return within(fmt::format("remote {}", m_settings.label), std::move(done.replies.error()));
        // After an error the connection is not kept: it may be in the middle of a transaction.
        if (const Reply* const error = first_error(*done.replies))
            return within(fmt::format("remote {}", m_settings.label), error_of(error->line));
        keep(std::move(connection));
        return std::move(*done.replies);
    }
}

} // namespace warmgraph::remote::redis
