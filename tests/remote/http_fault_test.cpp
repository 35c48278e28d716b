// HTTP servers that fail or lie: each gives the right error in time, and takes no memory.
#include <fstream>

#include "expect_error.hpp"
#include "fault_server.hpp"
#include "http_servers.hpp"
#include "warmgraph/remote/backends.hpp"

namespace warmgraph::test::http_fault_test {
namespace {

using namespace std::chrono_literals;
using store::Name;
using store::ReadLimit;

constexpr std::uint64_t k_wanted = 100;
constexpr ReadLimit k_whole{k_wanted};
constexpr ReadLimit k_part{.bytes = k_wanted, .whole = false, .offset = 50};

/// The times are short, and a call may take much longer than they say before a test fails.
remote::Settings settings_for(std::uint16_t port)
{
    remote::Settings settings = patient(remote::Scheme::http);
    settings.port = port;
    settings.label = "http://127.0.0.1/faulty";
    settings.connect_timeout = 400ms;
    settings.header_timeout = 400ms;
    settings.payload_timeout = 800ms;
    return settings;
}

/// The bytes or whichever error there is; not_found for no object.
Result<Bytes> read(store::Tier& tier, const ReadLimit& extent)
{
    auto found = tier.get(store::ImageName{}, extent);
    if (!found) return std::unexpected(found.error());
    if (!*found) return fail(ErrorCode::not_found, "no object");
    return std::move((*found)->bytes);
}

/// The most memory that this process has had, in bytes.
std::uint64_t peak_memory()
{
    std::ifstream status("/proc/self/status");
    for (std::string line; std::getline(status, line);)
        if (line.starts_with("VmHWM:")) return std::stoull(line.substr(6)) * 1024;
    throw std::runtime_error("/proc/self/status has no VmHWM");
}

/// Reads the request, and sends this text.
FaultBehaviour saying(std::string text)
{
    return [text = std::move(text)](FaultPeer& peer) {
        while (peer.reads_request() && peer.sends(text)) {}
    };
}
/// Reads the request, and sends the text, and then the piece again and again.
FaultBehaviour without_end(std::string text, std::string piece, std::chrono::milliseconds pause = 0ms)
{
    return [text = std::move(text), piece = std::move(piece), pause](FaultPeer& peer) {
        if (peer.reads_request() && peer.sends(text)) peer.sends_for_ever(piece, pause);
    };
}
FaultBehaviour once(std::string text)
{
    return [text = std::move(text)](FaultPeer& peer) {
        if (peer.reads_request()) peer.sends(text);
    };
}

struct Fault {
    const char* name;
    FaultBehaviour behaviour;
    ReadLimit extent;
    ErrorCode code;
    const char* text = ""; ///< a part of the message
};
void PrintTo(const Fault& fault, std::ostream* out) { *out << fault.name; }

const std::string k_ok = "HTTP/1.1 200 OK\r\n";
const std::string k_partial = "HTTP/1.1 206 Partial Content\r\n";
const std::string k_much(64 * 1024, 'x');
const std::string k_chunk = "10000\r\n" + k_much + "\r\n";

std::string part(const std::string& range, std::size_t size)
{
    return k_partial + fmt::format("Content-Range: {}\r\nContent-Length: {}\r\n\r\n", range, size) +
           std::string(size, 'x');
}
std::string status(const std::string& line) { return "HTTP/1.1 " + line + "\r\nContent-Length: 4\r\n\r\noops"; }

const Fault k_silent_faults[]{
    {"SilentAfterConnect", [](FaultPeer& peer) { peer.waits_for_the_end(); }, k_whole, ErrorCode::io_failed, "in time"},
    {"SilentAfterTheRequest",
     [](FaultPeer& peer) {
         if (peer.reads_request()) peer.waits_for_the_end();
     },
     k_whole, ErrorCode::io_failed, "in time"},
    {"SilentAfterTheHeaders",
     [](FaultPeer& peer) {
         if (peer.reads_request() && peer.sends(k_ok + "Content-Length: 10\r\n\r\n")) peer.waits_for_the_end();
     },
     k_whole, ErrorCode::io_failed, "in time"},
    {"DrippingBody", without_end(k_ok + "Content-Length: 90\r\n\r\n", "x", 50ms), k_whole, ErrorCode::io_failed,
     "in time"},
    {"DrippingHeaders", without_end(k_ok + "X-Slow: ", "x", 50ms), k_whole, ErrorCode::io_failed, "in time"},
    {"ClosedAfterConnect", [](FaultPeer&) {}, k_whole, ErrorCode::io_failed},
    {"ClosedAfterTheRequest", once(""), k_whole, ErrorCode::io_failed, "Empty reply"},
    {"ResetInTheMiddle",
     [](FaultPeer& peer) {
         if (peer.reads_request() && peer.sends(k_ok + "Content-Length: 90\r\n\r\nxxx")) peer.resets();
     },
     k_whole, ErrorCode::io_failed},
    {"CutInTheMiddle", once(k_ok + "Content-Length: 90\r\n\r\nxxx"), k_whole, ErrorCode::corrupt, "87 bytes remaining"},
    {"CutInAChunk", once(k_ok + "Transfer-Encoding: chunked\r\n\r\n10\r\nxxx"), k_whole, ErrorCode::corrupt},
    {"CutInTheHeaders", once("HTTP/1.1 200 OK\r\nContent-Le"), k_whole, ErrorCode::io_failed,
     "inside the answer's headers"},
    {"CutAfterTheStatus", once("HTTP/1.1 206 OK\r\n"), k_part, ErrorCode::io_failed},
};

const Fault k_status_faults[]{
    {"InternalError", saying(status("500 Oops")), k_whole, ErrorCode::io_failed, "answers 500"},
    {"Unavailable", saying(status("503 Later")), k_whole, ErrorCode::io_failed, "answers 503"},
    {"NoSpace", saying(status("507 Full")), k_whole, ErrorCode::no_space, "507"},
    {"Unauthorized", saying(status("401 No")), k_whole, ErrorCode::permission_denied, "401"},
    {"Forbidden", saying(status("403 No")), k_part, ErrorCode::permission_denied, "403"},
    {"Missing", saying(status("404 None")), k_whole, ErrorCode::not_found, "no object"},
    {"Gone", saying(status("410 Gone")), k_part, ErrorCode::not_found, "no object"},
    {"NoMethod", saying(status("405 No")), k_whole, ErrorCode::unsupported, "405"},
    {"NoContent", saying("HTTP/1.1 204 None\r\n\r\n"), k_whole, ErrorCode::corrupt, "204"},
    {"AnErrorWithoutEnd", without_end("HTTP/1.1 500 Oops\r\nTransfer-Encoding: chunked\r\n\r\n", k_chunk), k_whole,
     ErrorCode::io_failed, "answers 500"},
    {"AnErrorOfATerabyte", without_end("HTTP/1.1 500 Oops\r\nContent-Length: 1099511627776\r\n\r\n", k_much), k_whole,
     ErrorCode::io_failed, "answers 500"},
    {"ARedirectToItself", saying("HTTP/1.1 302 Found\r\nLocation: /\r\nContent-Length: 0\r\n\r\n"), k_whole,
     ErrorCode::io_failed, "redirects to '/' with 302"},
    {"ARedirectWithControls", saying("HTTP/1.1 308 Found\r\nLocation: x\x1b[2J\r\nContent-Length: 0\r\n\r\n"), k_whole,
     ErrorCode::io_failed, "redirects to 'x\\x1b[2J'"},
};

const Fault k_length_faults[]{
    {"LongestLengthWithoutEnd", without_end(k_ok + "Content-Length: 9223372036854775807\r\n\r\n", k_much), k_whole,
     ErrorCode::corrupt, "object has 9223372036854775807 bytes, at most 100"},
    {"LongestLengthForAPart", without_end(k_ok + "Content-Length: 9223372036854775807\r\n\r\n", k_much), k_part,
     ErrorCode::unsupported, "ignores the header Range"},
    {"LengthOf2To64", without_end(k_ok + "Content-Length: 18446744073709551616\r\n\r\n", k_much), k_whole,
     ErrorCode::corrupt, "Content-Length"},
    {"NegativeLength", without_end(k_ok + "Content-Length: -1\r\n\r\n", k_much), k_whole, ErrorCode::corrupt},
    {"TwoLengths", saying(k_ok + "Content-Length: 3\r\nContent-Length: 4\r\n\r\nxxxx"), k_whole, ErrorCode::corrupt},
    {"ChunksWithoutEnd", without_end(k_ok + "Transfer-Encoding: chunked\r\n\r\n", k_chunk), k_whole, ErrorCode::corrupt,
     "more than 100 bytes"},
    {"ChunksWithoutEndForAPart", without_end(k_ok + "Transfer-Encoding: chunked\r\n\r\n", k_chunk), k_part,
     ErrorCode::unsupported, "Range"},
    {"NoLengthAndNoEnd", without_end(k_ok + "\r\n", k_much), k_whole, ErrorCode::corrupt, "more than 100 bytes"},
    {"PartWithoutEnd", without_end(k_partial + "Content-Range: bytes 50-149/1000\r\n\r\n", k_much), k_part,
     ErrorCode::corrupt, "Content-Range"},
};

const Fault k_range_faults[]{
    {"PartFromElsewhere", saying(part("bytes 0-99/1000", 100)), k_part, ErrorCode::corrupt,
     "Content-Range 'bytes 0-99/1000'"},
    {"PartThatIsTooShort", saying(part("bytes 50-59/1000", 10)), k_part, ErrorCode::corrupt, "Content-Range"},
    {"PartThatIsTooLong", saying(part("bytes 50-159/1000", 110)), k_part, ErrorCode::corrupt, "Content-Range"},
    {"PartBeyondTheSize", saying(part("bytes 50-149/120", 100)), k_part, ErrorCode::corrupt, "Content-Range"},
    {"PartOfOtherLength", saying(part("bytes 50-149/1000", 90)), k_part, ErrorCode::corrupt, "and 90 bytes"},
    {"PartOfNoSize", saying(part("bytes 50-149/*", 100)), k_part, ErrorCode::corrupt, "Content-Range"},
    {"PartBackwards", saying(part("bytes 50-9/1000", 100)), k_part, ErrorCode::corrupt, "Content-Range"},
    {"PartOfNumbersThatOverflow", saying(part("bytes 50-18446744073709551616/99999999999999999999", 100)), k_part,
     ErrorCode::corrupt, "Content-Range"},
    {"PartsInSeveralPieces",
     saying(k_partial + "Content-Type: multipart/byteranges; boundary=x\r\nContent-Length: 4\r\n\r\n--x-"), k_part,
     ErrorCode::corrupt, "Content-Range ''"},
    {"PartWhereTheWholeIsWanted", saying(part("bytes 0-99/1000", 100)), k_whole, ErrorCode::corrupt, "206"},
    {"NoPartThoughItIsThere", saying("HTTP/1.1 416 No\r\nContent-Range: bytes */1000\r\nContent-Length: 0\r\n\r\n"),
     k_part, ErrorCode::corrupt, "416"},
};

const Fault k_foreign_faults[]{
    {"AnotherProtocol", once("SSH-2.0-OpenSSH_9.2\r\n"), k_whole, ErrorCode::corrupt},
    {"ZerosOnly", once(std::string(4096, '\0')), k_whole, ErrorCode::corrupt},
    {"NoProtocolWithoutEnd", without_end("", k_much), k_whole, ErrorCode::corrupt},
    {"AHeaderOf10MiB", once(k_ok + "X-Long: " + std::string(10 << 20, 'x') + "\r\nContent-Length: 1\r\n\r\nx"), k_whole,
     ErrorCode::corrupt, "headers"},
    {"HeadersOf10MiB",
     [](FaultPeer& peer) {
         if (!peer.reads_request() || !peer.sends(k_ok)) return;
         for (int i = 0; i < 10 * 1024 && peer.sends("X-Many: " + std::string(1014, 'x') + "\r\n"); ++i) {}
     },
     k_whole, ErrorCode::corrupt, "headers"},
    {"InterimAnswersWithoutEnd", without_end("", "HTTP/1.1 100 Continue\r\n\r\n"), k_whole, ErrorCode::corrupt,
     "headers"},
    {"AChunkOfNoLength", saying(k_ok + "Transfer-Encoding: chunked\r\n\r\nzz\r\nxx\r\n0\r\n\r\n"), k_whole,
     ErrorCode::io_failed},
};

class HttpFault : public testing::TestWithParam<Fault> {};

TEST_P(HttpFault, IsAnErrorInTimeWithoutMuchMemory)
{
    const FaultServer server(GetParam().behaviour);
    const auto tier = take(remote::backend_of(settings_for(server.port())));
    const std::uint64_t memory = peak_memory();
    const auto begin = std::chrono::steady_clock::now();
    EXPECT_TRUE(failed_with(read(*tier, GetParam().extent), GetParam().code, GetParam().text));
    EXPECT_LT(std::chrono::steady_clock::now() - begin, 20s);
    EXPECT_LT(peak_memory() - memory, 48U << 20U);
    EXPECT_LT(server.sent(), 48U << 20U) << "most of it stays in the system's buffers";
}

constexpr auto k_name = [](const auto& tested) { return std::string(tested.param.name); };
INSTANTIATE_TEST_SUITE_P(Silent, HttpFault, testing::ValuesIn(k_silent_faults), k_name);
INSTANTIATE_TEST_SUITE_P(Status, HttpFault, testing::ValuesIn(k_status_faults), k_name);
INSTANTIATE_TEST_SUITE_P(Length, HttpFault, testing::ValuesIn(k_length_faults), k_name);
INSTANTIATE_TEST_SUITE_P(Range, HttpFault, testing::ValuesIn(k_range_faults), k_name);
INSTANTIATE_TEST_SUITE_P(Foreign, HttpFault, testing::ValuesIn(k_foreign_faults), k_name);

TEST(HttpFaults, LeaveTheTierUsable)
{
    std::atomic<int> asked = 0;
    const FaultServer server([&](FaultPeer& peer) {
        while (peer.reads_request()) switch (asked++ % 3) {
            case 0: // longer than it says: the rest is no answer to the next request
                if (!peer.sends(k_ok + "Content-Length: 3\r\n\r\none and more")) return;
                break;
            case 1: peer.sends(k_ok + "Content-Length: 9\r\n\r\ncut"); return;
            default:
                if (!peer.sends(k_ok + "Content-Length: 5\r\n\r\nright")) return;
            }
    });
    const auto tier = take(remote::backend_of(settings_for(server.port())));
    for (int i = 0; i < 3; ++i) {
        EXPECT_EQ(as_text(take(read(*tier, k_whole))), "one") << "the announced bytes; their digest decides";
        EXPECT_TRUE(failed_with(read(*tier, k_whole), ErrorCode::corrupt));
        EXPECT_EQ(as_text(take(read(*tier, k_whole))), "right");
    }
}

TEST(HttpFaults, FollowNoRedirectToAnotherHost)
{
    const FaultServer other(saying(k_ok + "Content-Length: 4\r\n\r\nevil"));
    const FaultServer server(saying(fmt::format(
        "HTTP/1.1 307 Go\r\nLocation: http://127.0.0.1:{}/evil\r\nContent-Length: 0\r\n\r\n", other.port())));
    const auto tier = take(remote::backend_of(settings_for(server.port())));
    EXPECT_TRUE(failed_with(read(*tier, k_whole), ErrorCode::io_failed, "/evil' with 307"));
    EXPECT_TRUE(failed_with(tier->put(store::ImageName{}, as_bytes("a")), ErrorCode::io_failed, "307"));
    EXPECT_TRUE(failed_with(tier->remove(store::ImageName{}), ErrorCode::io_failed, "307"));
    EXPECT_TRUE(failed_with(tier->list({}), ErrorCode::io_failed, "307"));
    EXPECT_EQ(other.connections(), 0);
}

TEST(HttpFaults, UseTheWholeObjectOfAServerWithoutRanges)
{
    std::string object(1000, 'x');
    object.replace(50, 3, "abc");
    const FaultServer server(saying(k_ok + "Content-Length: 1000\r\nETag: \"1\"\r\n\r\n" + object));
    const auto tier = take(remote::backend_of(settings_for(server.port())));
    const auto found = take(tier->get(store::ImageName{}, {.bytes = 4, .whole = false, .offset = 49}));
    EXPECT_EQ(as_text(take(found->bytes)), "xabc");
    EXPECT_EQ(found->stamp.size, 1000U);
    EXPECT_NE(found->stamp.version, 0U);
    EXPECT_EQ(take(read(*tier, {.bytes = 100, .whole = false, .offset = 990})).size(), 10U);
    EXPECT_EQ(take(read(*tier, {.bytes = 100, .whole = false, .offset = 2000})).size(), 0U);
}

TEST(HttpFaults, EndAfterTheTimeThatTheAnswerIsWorth)
{
    const FaultServer server([](FaultPeer& peer) { peer.waits_for_the_end(); });
    remote::Settings settings = settings_for(server.port());
    settings.connect_timeout = settings.header_timeout = settings.payload_timeout = 10min;
    const auto tier = take(remote::backend_of(settings));
    const auto begin = std::chrono::steady_clock::now();
    for (const ReadLimit& extent :
         {ReadLimit{.bytes = 1 << 20, .within = 100ms}, ReadLimit{.bytes = 0, .within = 100ms}})
        EXPECT_TRUE(failed_with(read(*tier, extent), ErrorCode::io_failed, "at most"));
    EXPECT_TRUE(failed_with(tier->get_entries(k_decode, {.bytes = 100, .whole = false, .within = 100ms}),
                            ErrorCode::io_failed));
    EXPECT_LT(std::chrono::steady_clock::now() - begin, 60s);
}

TEST(HttpFaults, CostNoMoreThanASmallAnswerThoughMuchIsWanted)
{
    const FaultServer silent([](FaultPeer& peer) { peer.waits_for_the_end(); });
    const FaultServer dripping(without_end(k_ok + "Content-Length: 60000\r\n\r\n", "x", 50ms));
    for (const std::uint16_t port : {silent.port(), dripping.port()}) {
        remote::Settings settings = settings_for(port);
        settings.payload_timeout = 10min;
        const auto tier = take(remote::backend_of(settings));
        const auto begin = std::chrono::steady_clock::now();
        EXPECT_TRUE(failed_with(read(*tier, {256 << 20}), ErrorCode::io_failed, "400 ms for a small answer"));
        EXPECT_TRUE(failed_with(tier->get_entries(k_decode, {100, false}), ErrorCode::io_failed, "in time"));
        EXPECT_LT(std::chrono::steady_clock::now() - begin, 60s);
    }
}

TEST(HttpFaults, LeaveAPayloadThatComesSlowlyItsTime)
{
    const std::string piece(10'000, 'x');
    const FaultServer server(without_end(k_ok + "Content-Length: 100000\r\n\r\n", piece, 100ms));
    remote::Settings settings = settings_for(server.port());
    settings.payload_timeout = 10min;
    EXPECT_EQ(take(read(*take(remote::backend_of(settings)), {1 << 20})).size(), 100'000U);
}

TEST(HttpFaults, EndOnceTheProcessEnds)
{
    const FaultServer server([](FaultPeer& peer) { peer.waits_for_the_end(); });
    remote::Settings settings = settings_for(server.port());
    settings.connect_timeout = settings.header_timeout = settings.payload_timeout = 10min;
    const auto tier = take(remote::backend_of(settings));
    const std::jthread ending([&] {
        while (server.connections() == 0) std::this_thread::sleep_for(5ms);
        *settings.stop = true;
    });
    const auto begin = std::chrono::steady_clock::now();
    EXPECT_TRUE(failed_with(tier->put(store::ImageName{}, as_bytes("a")), ErrorCode::io_failed, "the process ends"));
    EXPECT_TRUE(failed_with(read(*tier, k_whole), ErrorCode::io_failed, "the process ends"));
    EXPECT_LT(std::chrono::steady_clock::now() - begin, 60s);
}

TEST(HttpFaults, EndAfterTheTimeToConnect)
{
    // A full queue of connections: Linux drops further ones, as a firewall does.
    const auto [socket, port] = bound_socket();
    ASSERT_EQ(::listen(socket.get(), 0), 0);
    std::vector<Descriptor> fillers;
    for (int i = 0; i < 8; ++i) {
        fillers.emplace_back(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
        const sockaddr_in address = loopback(port);
        static_cast<void>(::connect(fillers.back().get(), reinterpret_cast<const sockaddr*>(&address), sizeof address));
    }
    remote::Settings settings = settings_for(port);
    settings.header_timeout = 10min;
    const auto begin = std::chrono::steady_clock::now();
    EXPECT_TRUE(failed_with(read(*take(remote::backend_of(settings)), k_whole), ErrorCode::io_failed,
                            "at most 400 ms to connect"));
    EXPECT_LT(std::chrono::steady_clock::now() - begin, 60s);
}

TEST(HttpFaults, FailAPutAndNotItsIndex)
{
    const std::string done = "HTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n";
    FaultBehaviour only_objects =
        [&](FaultPeer& peer) { // each body is in the same piece as its headers, or is left unread
            while (peer.reads_request()) {
                const bool is_put = peer.request().starts_with("PUT ") && !peer.request().contains("/index.1 ");
                if (!peer.sends(is_put ? done : status("503 Later")) || !is_put) return;
            }
        };
    const FaultServer server(std::move(only_objects));
    const auto tier = take(remote::backend_of(settings_for(server.port())));
    EXPECT_TRUE(succeeded(tier->put(store::ImageName{}, as_bytes("a")))) << "the index is advisory";
    const FaultServer silent([](FaultPeer& peer) { peer.waits_for_the_end(); });
    const auto other = take(remote::backend_of(settings_for(silent.port())));
    EXPECT_TRUE(failed_with(other->put(store::ImageName{}, Bytes(4 << 20)), ErrorCode::io_failed, "in time"));
    const FaultServer full(saying(status("507 Full")));
    const auto third = take(remote::backend_of(settings_for(full.port())));
    EXPECT_TRUE(failed_with(third->put(store::ImageName{}, as_bytes("a")), ErrorCode::no_space));
}

TEST(HttpFaults, RefuseAnIndexThatLies)
{
    for (const std::string& index :
         {std::string("Content-Length: 8\r\n\r\nWGINDEX\1"), "Content-Length: 9223372036854775807\r\n\r\n" + k_much,
          std::string("Content-Length: 12\r\n\r\nWGINDEX\1\xff\xff\xff\xff"),
          std::string("Content-Length: 0\r\n\r\n")}) {
        const FaultServer server(saying(k_ok + index));
        const auto tier = take(remote::backend_of(settings_for(server.port())));
        EXPECT_TRUE(failed_with(tier->list({}), ErrorCode::corrupt, "http://127.0.0.1/faulty"));
        EXPECT_TRUE(failed_with(tier->get_entries(k_decode, {100, false}), ErrorCode::corrupt));
    }
}

} // namespace
} // namespace warmgraph::test::http_fault_test
