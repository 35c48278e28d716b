// The protocol of Redis, RESP2 (redis.io/docs/reference/protocol-spec): commands as bytes, and replies from bytes. Pure
// functions without a socket, so that a fuzzer can feed them.
//
// Not hiredis: Debian 12 has version 0.14, which has no TLS and no limit on the sizes that a server announces.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "warmgraph/base/bytes.hpp"
#include "warmgraph/base/error.hpp"

namespace warmgraph::remote::redis {

/// Commands that are sent at once. There is one reply for each.
struct Request {
    std::string bytes;
    std::size_t commands = 0;
    /// Adds a command and its arguments, which may be any bytes.
    void add(std::initializer_list<std::string_view> words);
};

struct Reply {
    enum class Kind : std::uint8_t { status, error, integer, bulk, null, array };
    Kind kind = Kind::null;
    std::string line{};      ///< of a status and an error, without the type's mark
    std::int64_t number = 0; ///< of an integer
    Bytes bulk{};
    std::vector<Reply> items{}; ///< of an array
    bool operator==(const Reply&) const = default;
};

/// The largest replies that are accepted. A larger announcement is `corrupt` before memory is taken for it.
struct ReplyCaps {
    std::uint64_t bulk_bytes = 0;  ///< one bulk string
    std::uint64_t total_bytes = 0; ///< all bulk strings that one parser reads
    std::size_t elements = 1024;   ///< all elements of one reply, those of nested arrays too
};
inline constexpr std::size_t k_line_bytes = 4096; ///< a status, an error, an integer or a length
inline constexpr std::size_t k_nesting = 4;       ///< arrays in arrays

/// Reads replies, however their bytes are cut into pieces.
class ReplyParser {
public:
    explicit ReplyParser(const ReplyCaps& caps) : m_caps(caps) {}
    /// Takes from the front of `bytes` what belongs to the current reply. nullopt: all bytes are taken and the reply
    /// goes on. corrupt: these bytes are no RESP2, or exceed a limit; the parser cannot go on.
    [[nodiscard]] Result<std::optional<Reply>> take(ByteView& bytes);

private:
    struct OpenArray {
        Reply reply;
        std::uint64_t missing = 0; ///< elements that are not read yet
    };
    [[nodiscard]] Result<std::optional<Reply>> take_line(ByteView& bytes);
    [[nodiscard]] Result<std::optional<Reply>> take_bulk(ByteView& bytes);
    [[nodiscard]] Result<std::optional<Reply>> begin_bulk(std::int64_t length);
    [[nodiscard]] Result<std::optional<Reply>> begin_array(std::int64_t length);
    [[nodiscard]] std::optional<Reply> complete(Reply reply);

    ReplyCaps m_caps;
    std::uint64_t m_total = 0;                ///< bytes of the bulk strings so far
    std::size_t m_elements = 0;               ///< of this reply so far
    std::string m_line;                       ///< the beginning of a line
    std::optional<std::uint64_t> m_bulk_left; ///< bytes of a bulk string that are not read yet; unset outside of one
    Bytes m_bulk;
    std::vector<OpenArray> m_open;
};

/// The Error for an error reply: permission_denied for a wrong password or a forbidden command, no_space for OOM, else
/// io_failed.
[[nodiscard]] Error error_of(std::string_view line);

} // namespace warmgraph::remote::redis
