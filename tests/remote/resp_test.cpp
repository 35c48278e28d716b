// The parser of Redis's replies, with answers that a server may give and answers that a hostile one may give.
#include "expect_error.hpp"
#include "redis/heads.hpp"
#include "redis/resp.hpp"

namespace warmgraph::test::resp_test {
namespace {

using remote::redis::error_of;
using remote::redis::Reply;
using remote::redis::ReplyCaps;
using remote::redis::ReplyParser;
using remote::redis::Request;
using Kind = Reply::Kind;

constexpr ReplyCaps k_caps{.bulk_bytes = 1000, .total_bytes = 3000};

/// All replies in the text, which comes in pieces of `piece` bytes; the Error if there is one.
Result<std::vector<Reply>> parse(std::string_view text, const ReplyCaps& caps = k_caps, std::size_t piece = ~0ULL)
{
    ReplyParser parser(caps);
    std::vector<Reply> replies;
    while (!text.empty()) {
        ByteView bytes = as_bytes(text.substr(0, piece));
        text.remove_prefix(std::min(piece, text.size()));
        while (!bytes.empty()) {
            auto reply = parser.take(bytes);
            if (!reply) return std::unexpected(reply.error());
            if (*reply) replies.push_back(std::move(**reply));
        }
    }
    return replies;
}

Bytes bytes_of(std::string_view text) { return {as_bytes(text).begin(), as_bytes(text).end()}; }
Reply status(std::string text) { return {.kind = Kind::status, .line = std::move(text)}; }
Reply bulk(std::string_view text) { return {.kind = Kind::bulk, .bulk = bytes_of(text)}; }
Reply integer(std::int64_t number) { return {.kind = Kind::integer, .number = number}; }
Reply array(std::vector<Reply> items) { return {.kind = Kind::array, .items = std::move(items)}; }

struct Answer {
    std::string text;
    std::vector<Reply> replies;
};

std::vector<Answer> answers()
{
    return {
        {"+OK\r\n", {status("OK")}},
        {"+\r\n", {status("")}},
        {"-ERR no such thing\r\n", {{.kind = Kind::error, .line = "ERR no such thing"}}},
        {":0\r\n", {integer(0)}},
        {":-9223372036854775808\r\n", {integer(std::numeric_limits<std::int64_t>::min())}},
        {"$0\r\n\r\n", {bulk("")}},
        {"$3\r\nabc\r\n", {bulk("abc")}},
        {std::string("$6\r\n\r\n\0$+\n\r\n", 12), {bulk(std::string_view("\r\n\0$+\n", 6))}},
        {"$-1\r\n", {Reply{}}},
        {"*-1\r\n", {Reply{}}},
        {"*0\r\n", {array({})}},
        {"*2\r\n$1\r\na\r\n:7\r\n", {array({bulk("a"), integer(7)})}},
        {"*2\r\n*0\r\n*1\r\n*1\r\n$-1\r\n", {array({array({}), array({array({Reply{}})})})}},
        {"+OK\r\n+QUEUED\r\n*2\r\n$2\r\nhi\r\n-WRONGTYPE x\r\n:1\r\n",
         {status("OK"), status("QUEUED"), array({bulk("hi"), {.kind = Kind::error, .line = "WRONGTYPE x"}}),
          integer(1)}},
        {"$1000\r\n" + std::string(1000, 'x') + "\r\n", {bulk(std::string(1000, 'x'))}},
        {"*4\r\n:1\r\n:2\r\n:3\r\n:4\r\n*4\r\n:1\r\n:2\r\n:3\r\n:4\r\n",
         {array({integer(1), integer(2), integer(3), integer(4)}),
          array({integer(1), integer(2), integer(3), integer(4)})}},
    };
}

TEST(Resp, ReadsAnswersHoweverTheyAreCut)
{
    for (const auto& [text, replies] : answers())
        for (const std::size_t piece : {1UL, 2UL, 3UL, 7UL, 1000UL, ~0UL})
            EXPECT_EQ(take(parse(text, k_caps, piece)), replies) << text << " in pieces of " << piece;
}

TEST(Resp, WaitsForTheRestOfAnAnswer)
{
    for (const auto& [text, replies] : answers())
        for (std::size_t cut = 0; cut < text.size(); ++cut) {
            const auto begun = parse(std::string_view(text).substr(0, cut));
            ASSERT_TRUE(succeeded(begun)) << text << " cut at " << cut;
            EXPECT_LT(begun->size(), replies.size()) << text << " cut at " << cut;
        }
}

std::string nested(std::size_t depth)
{
    std::string text;
    for (std::size_t i = 0; i < depth; ++i) text += "*1\r\n";
    return text;
}

TEST(Resp, RefusesWhatIsNoAnswer)
{
    const std::string hostile[]{
        "$9223372036854775808\r\n",       // 2^63
        "$9223372036854775807\r\n",       // 2^63 - 1
        "$18446744073709551616\r\n",      // 2^64
        "$1001\r\n",                      // above the cap
        "$-2\r\n",                        //
        "$-9223372036854775808\r\n",      //
        "*9223372036854775807\r\n",       //
        "*1025\r\n",                      //
        "*-2\r\n",                        //
        "*600\r\n*600\r\n",               // each is below the cap, together they are not
        nested(5),                        //
        nested(1000),                     //
        "+" + std::string(10 << 20, 'x'), // no end of the line
        std::string(10 << 20, 'x'),       //
        "+" + std::string(5000, 'x') + "\r\n",
        "$" + std::string(5000, '1') + "\r\n",
        "+OK\n",
        "+OK\r",
        "+O\rK\r\n",
        "\r\n",
        "\n",
        "OK\r\n",
        "HTTP/1.1 400 Bad Request\r\n\r\n",
        ":\r\n",
        ":+1\r\n",
        ":1 \r\n",
        ": 1\r\n",
        ":0x10\r\n",
        ":9223372036854775808\r\n",
        "$\r\n\r\n",
        "$a\r\n",
        "$3\r\nabcd\r\n",
        "$3\r\nabc\n",
        "$3\r\nabc\rx",
        "$2\r\nabc\r\n",
        "%1\r\n+a\r\n+b\r\n", // RESP3
        "_\r\n",
        "#t\r\n",
        ",1.5\r\n",
        std::string("\0\0\0\0\r\n", 6),
        "*2\r\n:1\r\nx\r\n",
    };
    for (const std::string& text : hostile) {
        if (text == "+OK\r") { // may go on
            EXPECT_TRUE(take(parse(text)).empty());
            continue;
        }
        const std::string shown = text.substr(0, 40);
        const auto at_once = parse(text);
        ASSERT_TRUE(failed_with(at_once, ErrorCode::corrupt)) << shown;
        EXPECT_LT(at_once.error().message.size(), 500U) << shown;
        if (text.size() < 10'000) {
            const auto in_bytes = parse(text, k_caps, 1);
            EXPECT_TRUE(failed_with(in_bytes, ErrorCode::corrupt, at_once.error().message)) << shown;
        }
    }
}

TEST(Resp, LimitsAllBytesOfAnAnswer)
{
    std::string text = "*4\r\n";
    for (int i = 0; i < 3; ++i) text += "$1000\r\n" + std::string(1000, 'x') + "\r\n";
    EXPECT_EQ(take(parse(text + "$0\r\n\r\n"))[0].items.size(), 4U);
    EXPECT_TRUE(failed_with(parse(text + "$1\r\n"), ErrorCode::corrupt, "3000 in all"));
    EXPECT_TRUE(failed_with(parse("*1\r\n$1\r\n", {}), ErrorCode::corrupt)) << "no bulk string is wanted";
}

TEST(Resp, TakesNoMemoryForAnAnnouncement)
{
    const ReplyCaps boundless{.bulk_bytes = ~0ULL, .total_bytes = ~0ULL};
    EXPECT_TRUE(take(parse("$9223372036854775807\r\nabc", boundless)).empty()) << "and no exception";
}

TEST(Resp, KeepsALargeAnswerInItsOwnSizeOfMemory)
{
    constexpr std::size_t k_size = (3 << 20) + 5;
    const std::string text = fmt::format("${}\r\n{}\r\n", k_size, std::string(k_size, 'x'));
    const auto replies = take(parse(text, {.bulk_bytes = k_size, .total_bytes = k_size}, 65'536));
    EXPECT_EQ(replies[0].bulk.size(), k_size);
    EXPECT_EQ(replies[0].bulk.capacity(), k_size);
}

TEST(Resp, TakesOneAnswerAtATime)
{
    ReplyParser parser(k_caps);
    ByteView bytes = as_bytes("+a\r\n+b\r\n+");
    EXPECT_EQ(take(parser.take(bytes)), status("a"));
    EXPECT_EQ(bytes.size(), 5U);
    EXPECT_EQ(take(parser.take(bytes)), status("b"));
    EXPECT_EQ(take(parser.take(bytes)), std::nullopt);
    EXPECT_TRUE(bytes.empty());
}

TEST(Resp, GivesErrorsTheirCodes)
{
    const std::pair<const char*, ErrorCode> errors[]{
        {"NOAUTH Authentication required.", ErrorCode::permission_denied},
        {"WRONGPASS invalid username-password pair", ErrorCode::permission_denied},
        {"NOPERM this user has no permissions", ErrorCode::permission_denied},
        {"DENIED Redis is running in protected mode", ErrorCode::permission_denied},
        {"OOM command not allowed", ErrorCode::no_space},
        {"LOADING Redis is loading", ErrorCode::io_failed},
        {"ERR anything", ErrorCode::io_failed},
        {"OOMPH", ErrorCode::io_failed},
        {"", ErrorCode::io_failed},
    };
    for (const auto& [line, code] : errors) {
        EXPECT_EQ(error_of(line).code, code) << line;
        EXPECT_NE(error_of(line).message.find(line), std::string::npos);
    }
    EXPECT_LT(error_of(std::string(4000, 'x')).message.size(), 300U);
    EXPECT_EQ(error_of("ERR \x1b[2J").message.find('\x1b'), std::string::npos) << "a terminal is not driven";
}

TEST(Resp, WritesCommands)
{
    Request request;
    request.add({"SET", "a key", std::string_view("\r\n\0", 3)});
    request.add({"PING"});
    EXPECT_EQ(request.bytes,
              "*3\r\n$3\r\nSET\r\n$5\r\na key\r\n$3\r\n" + std::string("\r\n\0", 3) + "\r\n*1\r\n$4\r\nPING\r\n");
    EXPECT_EQ(request.commands, 2U);
}

TEST(RedisHeads, AreReadAsTheyWereWritten)
{
    using namespace remote::redis;
    const Bytes large(100'000, std::byte{'x'}), small = bytes_of("small");
    EXPECT_EQ(head_of(large).bytes.size(), 4096U) << "it has no header";
    for (const Bytes& entry : {large, small, Bytes{}}) {
        const Bytes field = encode(head_of(entry));
        const auto head = decode_head(field);
        ASSERT_TRUE(head);
        EXPECT_EQ(head->size, entry.size());
        EXPECT_EQ(suffices(*head, {.bytes = 4096, .whole = false}), true);
        EXPECT_EQ(suffices(*head, {.bytes = 4097, .whole = false}), entry.size() < 4097);
        EXPECT_EQ(suffices(*head, {.bytes = 10, .whole = false, .offset = 4090}), entry.size() < 4097);
    }
    Bytes field = encode(head_of(small));
    field.push_back(std::byte{});
    EXPECT_FALSE(decode_head(field)) << "more bytes than the entry has";
    for (const std::size_t size : {0, 7}) EXPECT_FALSE(decode_head(ByteView(field).first(size)));
}

} // namespace
} // namespace warmgraph::test::resp_test
