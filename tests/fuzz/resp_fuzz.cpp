// Reads the answers of a Redis server, at once and byte by byte, and the heads of entries in them.
#include "fuzz.hpp"
#include "redis/heads.hpp"
#include "redis/resp.hpp"

namespace {

using namespace warmgraph;
using namespace warmgraph::remote::redis;

constexpr ReplyCaps k_caps{.bulk_bytes = 4096, .total_bytes = 16'384, .elements = 64};

struct Read {
    std::vector<Reply> replies;
    std::string error; ///< "" for none
};

Read read(ByteView bytes, std::size_t piece)
{
    ReplyParser parser(k_caps);
    Read result;
    while (!bytes.empty()) {
        ByteView front = bytes.first(std::min(piece, bytes.size()));
        bytes = bytes.subspan(front.size());
        while (!front.empty()) {
            auto reply = parser.take(front);
            if (!reply) {
                fuzz::require(reply.error().code == ErrorCode::corrupt, "a refusal is corrupt");
                result.error = reply.error().message;
                return result;
            }
            if (*reply) result.replies.push_back(std::move(**reply));
        }
    }
    return result;
}

/// Adds up the bytes and the elements of a reply, and checks its depth.
void measure(const Reply& reply, std::size_t depth, std::uint64_t& bytes, std::size_t& elements)
{
    fuzz::require(depth <= k_nesting, "arrays are in each other as deep as the limit says");
    fuzz::require(reply.bulk.size() <= k_caps.bulk_bytes, "a bulk string is within its limit");
    bytes += reply.bulk.size();
    elements += reply.items.size();
    for (const Reply& item : reply.items) measure(item, depth + 1, bytes, elements);
    if (const auto head = decode_head(reply.bulk)) {
        const Bytes again = encode(*head);
        fuzz::require(again == reply.bulk, "a head is written as it was read");
        static_cast<void>(suffices(*head, {.bytes = 100, .whole = false}));
    }
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size)
{
    const ByteView bytes{reinterpret_cast<const std::byte*>(data), size};
    const Read at_once = read(bytes, size), in_bytes = read(bytes, 1), in_pieces = read(bytes, 7);
    for (const Read* other : {&in_bytes, &in_pieces}) {
        fuzz::require(at_once.replies == other->replies, "answers are the same however they are cut");
        fuzz::require(at_once.error == other->error, "refusals are the same however they are cut");
    }
    std::uint64_t total = 0;
    for (const Reply& reply : at_once.replies) {
        std::size_t elements = 0;
        measure(reply, 0, total, elements);
        fuzz::require(elements <= k_caps.elements, "an answer has at most as many elements as the limit says");
        if (reply.kind == Reply::Kind::error)
            fuzz::require(!error_of(reply.line).message.empty(), "an error has a text");
    }
    fuzz::require(total <= k_caps.total_bytes, "all bulk strings are within their limit");
    return 0;
}
