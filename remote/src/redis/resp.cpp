#include "redis/resp.hpp"

#include <algorithm>
#include <charconv>

#include "warmgraph/base/printable.hpp"

namespace warmgraph::remote::redis {
namespace {

/// Bytes of address space for a bulk string before its bytes came. Memory that is not written to costs nothing; growth
/// in steps would cost a copy of each step.
constexpr std::size_t k_first_room = 64U << 20;
constexpr std::size_t k_shown = 200; ///< bytes of an answer that a message shows

std::optional<std::int64_t> whole_number(std::string_view text)
{
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
    return value;
}

ByteView take_front(ByteView& bytes, std::size_t count)
{
    const ByteView front = bytes.first(count);
    bytes = bytes.subspan(count);
    return front;
}

void add_bulk(std::string& bytes, std::string_view word)
{
    bytes += fmt::format("${}\r\n", word.size());
    bytes += word;
    bytes += "\r\n";
}

} // namespace

void Request::add(std::initializer_list<std::string_view> words)
{
    bytes += fmt::format("*{}\r\n", words.size());
    for (const std::string_view word : words) add_bulk(bytes, word);
    ++commands;
}

Result<std::optional<Reply>> ReplyParser::take(ByteView& bytes)
{
    while (!bytes.empty()) {
        auto reply = m_bulk_left ? take_bulk(bytes) : take_line(bytes);
        if (!reply || *reply) return reply;
    }
    return std::nullopt;
}

Result<std::optional<Reply>> ReplyParser::take_line(ByteView& bytes)
{
    const std::string_view text = as_text(bytes);
    const std::size_t end = text.find('\n');
    const std::size_t count = end == std::string_view::npos ? text.size() : end + 1;
    if (m_line.size() + count > k_line_bytes)
        return fail(ErrorCode::corrupt, "the answer has a line of more than {} bytes", k_line_bytes);
    m_line += as_text(take_front(bytes, count));
    if (end == std::string_view::npos) return std::nullopt;
    const std::string line = std::exchange(m_line, {});
    if (line.size() < 3 || line.find('\r') != line.size() - 2)
        return fail(ErrorCode::corrupt, "the answer is not RESP: '{}'", printable(line, k_shown));
    std::string rest = line.substr(1, line.size() - 3);
    if (line[0] == '+') return complete({.kind = Reply::Kind::status, .line = std::move(rest)});
    if (line[0] == '-') return complete({.kind = Reply::Kind::error, .line = std::move(rest)});
    const auto number = whole_number(rest);
    if (!number || (line[0] != ':' && line[0] != '$' && line[0] != '*'))
        return fail(ErrorCode::corrupt, "the answer is not RESP2: '{}'", printable(line, k_shown));
    if (line[0] == ':') return complete({.kind = Reply::Kind::integer, .number = *number});
    return line[0] == '$' ? begin_bulk(*number) : begin_array(*number);
}

Result<std::optional<Reply>> ReplyParser::begin_bulk(std::int64_t length)
{
    if (length == -1) return complete({});
    if (length < 0) return fail(ErrorCode::corrupt, "the answer announces {} bytes", length);
    const auto size = static_cast<std::uint64_t>(length);
    if (size > m_caps.bulk_bytes || size > m_caps.total_bytes - m_total)
        return fail(ErrorCode::corrupt, "the answer announces {} bytes after {}, at most {} and {} in all are read",
                    size, m_total, m_caps.bulk_bytes, m_caps.total_bytes);
    m_total += size;
    m_bulk_left = size;
    m_bulk.reserve(std::min<std::uint64_t>(size, k_first_room));
    return std::nullopt;
}

Result<std::optional<Reply>> ReplyParser::begin_array(std::int64_t length)
{
    if (length == -1) return complete({});
    if (length < 0) return fail(ErrorCode::corrupt, "the answer announces {} elements", length);
    const auto count = static_cast<std::uint64_t>(length);
    if (count > m_caps.elements - m_elements)
        return fail(ErrorCode::corrupt, "the answer announces {} elements after {}, at most {} are read", count,
                    m_elements, m_caps.elements);
    if (m_open.size() == k_nesting)
        return fail(ErrorCode::corrupt, "the answer has arrays in each other, more than {}", k_nesting);
    m_elements += count;
    if (count == 0) return complete({.kind = Reply::Kind::array});
    m_open.push_back({{.kind = Reply::Kind::array}, count});
    return std::nullopt;
}

/// The string's own bytes, then the end of its line.
Result<std::optional<Reply>> ReplyParser::take_bulk(ByteView& bytes)
{
    if (*m_bulk_left > 0) {
        const auto count = std::min<std::uint64_t>(*m_bulk_left, bytes.size());
        // Memory grows with the bytes that came, not with the announced length, and never exceeds it.
        const std::uint64_t size = m_bulk.size() + *m_bulk_left;
        if (m_bulk.capacity() < m_bulk.size() + count)
            m_bulk.reserve(std::min<std::uint64_t>(size, std::max(2 * m_bulk.capacity(), m_bulk.size() + count)));
        append(m_bulk, take_front(bytes, count));
        *m_bulk_left -= count;
        return std::nullopt;
    }
    m_line += as_text(take_front(bytes, 1));
    if (m_line == "\r") return std::nullopt;
    if (m_line != "\r\n") return fail(ErrorCode::corrupt, "the answer's bytes do not end where it announced their end");
    m_line.clear();
    m_bulk_left.reset();
    return complete({.kind = Reply::Kind::bulk, .bulk = std::exchange(m_bulk, {})});
}

/// Puts the reply into the array that it belongs to. Returns the outermost reply when that is whole.
std::optional<Reply> ReplyParser::complete(Reply reply)
{
    while (!m_open.empty()) {
        OpenArray& array = m_open.back();
        array.reply.items.push_back(std::move(reply));
        if (--array.missing > 0) return std::nullopt;
        reply = std::move(array.reply);
        m_open.pop_back();
    }
    m_elements = 0;
    return reply;
}

Error error_of(std::string_view line)
{
    const std::string_view word = line.substr(0, line.find(' '));
    ErrorCode code = ErrorCode::io_failed;
    if (word == "NOAUTH" || word == "WRONGPASS" || word == "NOPERM" || word == "DENIED")
        code = ErrorCode::permission_denied;
    if (word == "OOM") code = ErrorCode::no_space;
    return {code, fmt::format("the server answers '{}'", printable(line, k_shown))};
}

} // namespace warmgraph::remote::redis
