#include "transfer.hpp"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <exception>

#include "warmgraph/base/printable.hpp"

namespace warmgraph::remote::http {
namespace {

/// All headers of an answer together.
constexpr std::size_t k_most_header_bytes = 64 * 1024;
/// The beginning of an error's text, for its message, and the most that is read so that the connection can be kept.
constexpr BodyPlan k_error_text{.keep = 4096, .most = 64 * 1024};
/// More than any object has.
constexpr std::uint64_t k_most_reserved = 2ULL << 30;

char lower(char c) noexcept { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

std::string_view without_spaces(std::string_view text)
{
    const auto is_space = [](char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; };
    while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
    while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
    return text;
}

template <class T>
std::optional<T> number_in(std::string_view text)
{
    T number{};
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    return error == std::errc() && end == text.data() + text.size() ? std::optional<T>(number) : std::nullopt;
}

} // namespace

std::size_t Transfer::take_header(char* data, std::size_t size, std::size_t count, void* transfer) noexcept
try {
    return static_cast<Transfer*>(transfer)->take_line({data, size * count}) ? size * count : 0;
} catch (const std::exception&) {
    static_cast<Transfer*>(transfer)->m_failure = Error{ErrorCode::out_of_memory, {}};
    return 0;
}

std::size_t Transfer::take_body(char* data, std::size_t size, std::size_t count, void* transfer) noexcept
{
    auto& self = *static_cast<Transfer*>(transfer);
    try {
        if (self.take(warmgraph::as_bytes({data, size * count}))) return size * count;
    } catch (const std::exception&) {
        self.m_failure = Error{ErrorCode::out_of_memory, {}};
    }
    return CURL_WRITEFUNC_ERROR; // not 0, which is right for an empty piece
}

std::size_t Transfer::give_body(char* data, std::size_t size, std::size_t count, void* transfer) noexcept
{
    auto& self = *static_cast<Transfer*>(transfer);
    const ByteView rest = self.m_request.body.subspan(self.m_sent);
    const std::size_t given = std::min(rest.size(), size * count);
    if (given != 0) std::memcpy(data, rest.data(), given);
    self.m_sent += given;
    return given;
}

int Transfer::seek_body(void* transfer, curl_off_t offset, int origin) noexcept
{
    auto& self = *static_cast<Transfer*>(transfer);
    if (origin != SEEK_SET || offset < 0 || static_cast<std::uint64_t>(offset) > self.m_request.body.size())
        return CURL_SEEKFUNC_CANTSEEK;
    self.m_sent = static_cast<std::uint64_t>(offset);
    return CURL_SEEKFUNC_OK;
}

bool Transfer::take_line(std::string_view line)
{
    m_header_bytes += line.size();
    if (m_header_bytes > k_most_header_bytes) {
        m_failure =
            Error{ErrorCode::corrupt, fmt::format("the answer's headers have more than {} bytes", k_most_header_bytes)};
        return false;
    }
    if (line.starts_with("HTTP/")) { // a new answer: an interim one came before it, or a proxy's
        m_response.head = {};
        m_is_chunked = m_has_head = false;
        const std::string_view status = line.substr(std::min(line.find(' '), line.size()));
        m_response.head.status = number_in<long>(without_spaces(status).substr(0, 3)).value_or(0);
        return true;
    }
    const std::string_view field = without_spaces(line);
    if (field.empty())
        return m_response.head.status < 200 || begin_body(); // a trailer of a chunked body has no colon either
    const std::size_t colon = field.find(':');
    if (colon == std::string_view::npos) return true;
    std::string name(field.substr(0, colon));
    std::ranges::transform(name, name.begin(), lower);
    return take_field(name, without_spaces(field.substr(colon + 1)));
}

bool Transfer::take_field(std::string_view name, std::string_view value)
{
    ResponseHead& head = m_response.head;
    if (m_received != 0) return true; // a trailer
    if (name == "etag") head.etag = value.substr(0, 256);
    if (name == "date") head.date = value.substr(0, 64);
    if (name == "location") head.location = value.substr(0, 1024);
    if (name == "content-range") head.range = value.substr(0, 128);
    if (name == "transfer-encoding") m_is_chunked = true; // then a length has no meaning (RFC 9112, section 6.3)
    if (name != "content-length") return true;
    const auto length = number_in<std::uint64_t>(value);
    if (!length || (head.length && *head.length != *length)) {
        m_failure = Error{ErrorCode::corrupt, fmt::format("the answer's Content-Length is '{}', expected one number",
                                                          printable(value, 64))};
        return false;
    }
    head.length = length;
    return true;
}

bool Transfer::has_body() const noexcept
{
    const long status = m_response.head.status;
    return m_request.method != Method::head && status != 204 && status != 304;
}

bool Transfer::is_large() const noexcept
{
    return m_has_head && has_body() && m_response.head.length.value_or(~0ULL) > k_small_bytes;
}

bool Transfer::begin_body()
{
    if (m_received != 0) return true; // the end of the trailers
    m_has_head = true;
    ResponseHead& head = m_response.head;
    if (m_is_chunked) head.length.reset();
    if (head.status >= 400)
        m_plan = k_error_text;
    else
        m_plan = m_request.plan ? m_request.plan(head) : BodyPlan{.most = k_error_text.most};
    if (!has_body()) return true;
    // So that a body of 2^63 bytes is not waited for.
    if (head.length && *head.length > m_plan.most) {
        m_response.is_cut = true;
        return false;
    }
    // The system gives memory page by page, as the bytes arrive: a length alone takes none.
    if (head.length && head.status < 400) {
        const std::uint64_t expected = *head.length > m_plan.skip ? *head.length - m_plan.skip : 0;
        m_response.body.reserve(std::min({m_plan.keep, expected, k_most_reserved}));
    }
    return true;
}

bool Transfer::take(ByteView bytes)
{
    if (bytes.size() > m_plan.most - m_received) {
        m_response.is_cut = true;
        return false;
    }
    const std::uint64_t skipped =
        m_received < m_plan.skip ? std::min<std::uint64_t>(m_plan.skip - m_received, bytes.size()) : 0;
    m_received += bytes.size();
    bytes = bytes.subspan(skipped);
    append(m_response.body, bytes.first(std::min<std::uint64_t>(bytes.size(), m_plan.keep - m_response.body.size())));
    return true;
}

Result<Response> Transfer::response() &&
{
    if (m_failure && m_failure->code == ErrorCode::out_of_memory)
        return fail(ErrorCode::out_of_memory, "no memory for the answer of {} bytes or more", m_received);
    if (m_failure) return std::unexpected(std::move(*m_failure));
    // curl 7.88 takes headers that end with the connection for whole ones.
    if (!m_has_head) return fail(ErrorCode::io_failed, "the connection ended inside the answer's headers");
    const auto& announced = m_response.head.length;
    if (!m_response.is_cut && has_body() && announced && *announced != m_received)
        return fail(ErrorCode::corrupt, "the answer has {} bytes, announced are {}", m_received, *announced);
    m_response.received = m_received;
    return std::move(m_response);
}

} // namespace warmgraph::remote::http
