// The callbacks of one request: they take headers and body from curl within the plan's limits, and give it the body.
#pragma once

#include <cstddef>
#include <optional>

#include "http_client.hpp"

namespace warmgraph::remote::http {

/// Used by one thread. `request` must outlive it.
class Transfer {
public:
    explicit Transfer(const Request& request) : m_request(request) {}

    // --- The signatures are those of curl's options; `transfer` is a Transfer*.
    static std::size_t take_header(char* data, std::size_t size, std::size_t count, void* transfer) noexcept;
    static std::size_t take_body(char* data, std::size_t size, std::size_t count, void* transfer) noexcept;
    static std::size_t give_body(char* data, std::size_t size, std::size_t count, void* transfer) noexcept;
    static int seek_body(void* transfer, curl_off_t offset, int origin) noexcept;

    /// True if a callback ended the transfer: the body is longer than planned, or the answer is not used.
    [[nodiscard]] bool stopped() const noexcept { return m_failure.has_value() || m_response.is_cut; }
    /// True once an answer has begun that has more than k_small_bytes, or does not say how many.
    [[nodiscard]] bool is_large() const noexcept;
    /// The answer, once the transfer has ended well or was stopped.
    [[nodiscard]] Result<Response> response() &&;

private:
    [[nodiscard]] bool take_line(std::string_view line);
    [[nodiscard]] bool take_field(std::string_view name, std::string_view value);
    [[nodiscard]] bool begin_body();
    [[nodiscard]] bool take(ByteView bytes);
    [[nodiscard]] bool has_body() const noexcept;

    const Request& m_request;
    Response m_response;
    std::optional<Error> m_failure;
    BodyPlan m_plan;
    bool m_is_chunked = false;
    bool m_has_head = false; ///< all headers of the last answer are there
    std::size_t m_header_bytes = 0;
    std::uint64_t m_received = 0; ///< bytes of the body
    std::uint64_t m_sent = 0;     ///< bytes of the request's body
};

} // namespace warmgraph::remote::http
