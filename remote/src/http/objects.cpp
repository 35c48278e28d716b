#include "objects.hpp"

#include <algorithm>
#include <charconv>

#include "warmgraph/base/printable.hpp"
#include "warmgraph/base/sha256.hpp"

namespace warmgraph::remote::http {
namespace {

using store::ReadLimit;

/// A server that ignores the range may send at most so many bytes that are not wanted.
constexpr std::uint64_t k_most_unwanted = 1ULL << 20;
/// Servers count in signed 64-bit numbers. No object begins there.
constexpr std::uint64_t k_no_offset = 1ULL << 62;

constexpr std::uint64_t saturating_add(std::uint64_t a, std::uint64_t b) noexcept { return a > ~b ? ~0ULL : a + b; }

bool is_missing(long status) noexcept { return status == 404 || status == 410; }
bool is_done(long status) noexcept { return status >= 200 && status <= 204; }

/// A Content-Range: "bytes 0-99/1234"; of an answer 416 "bytes */1234".
struct ContentRange {
    std::optional<std::uint64_t> first{}, last{};
    std::uint64_t size = 0;
};

std::optional<ContentRange> parse_range(std::string_view text)
{
    const auto take_number = [&]() -> std::optional<std::uint64_t> {
        std::uint64_t number = 0;
        const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
        if (error != std::errc()) return std::nullopt;
        text.remove_prefix(static_cast<std::size_t>(end - text.data()));
        return number;
    };
    const auto take_text = [&](std::string_view expected) {
        if (!text.starts_with(expected)) return false;
        text.remove_prefix(expected.size());
        return true;
    };
    ContentRange range;
    if (!take_text("bytes ")) return std::nullopt;
    if (!take_text("*")) {
        range.first = take_number();
        if (!range.first || !take_text("-")) return std::nullopt;
        range.last = take_number();
        if (!range.last) return std::nullopt;
    }
    if (!take_text("/")) return std::nullopt;
    const auto size = take_number();
    if (!size || !text.empty()) return std::nullopt;
    range.size = *size;
    return range;
}

StoredObject found_of(Result<Bytes> bytes, std::uint64_t size, const ResponseHead& head)
{
    return {{{.size = size, .version = version_of(head.etag)}, std::move(bytes)}, head.etag};
}

/// The object's bytes where nothing of it is wanted.
Result<Bytes> no_bytes(const ReadLimit& extent, std::uint64_t size)
{
    if (extent.whole && size > extent.bytes)
        return fail(ErrorCode::corrupt, "object has {} bytes, at most {} are read", size, extent.bytes);
    return Bytes{};
}

Result<std::optional<StoredObject>> whole_object(Response response, const ReadLimit& extent)
{
    const auto& length = response.head.length;
    if (!response.is_cut) return found_of(std::move(response.body), response.received, response.head);
    if (length) return found_of(no_bytes(extent, *length), *length, response.head);
    return found_of(fail(ErrorCode::corrupt, "object has more than {} bytes", extent.bytes),
                    saturating_add(extent.bytes, 1), response.head);
}

/// From the answer of a server that ignores the range.
Result<std::optional<StoredObject>> part_of_whole(Response response)
{
    if (response.is_cut)
        return fail(
            ErrorCode::unsupported,
            "the server ignores the header Range, and the object is more than {} bytes longer than the part that is "
            "wanted: use a server with range requests",
            k_most_unwanted);
    return found_of(std::move(response.body), response.received, response.head);
}

Result<std::optional<StoredObject>> part_of_object(Response response, const ReadLimit& extent)
{
    const auto range = parse_range(response.head.range);
    const auto lie = [&] {
        return fail(ErrorCode::corrupt, "the answer has Content-Range '{}' and {} bytes, wanted are {} from {} on",
                    printable(response.head.range, 64), response.received, extent.bytes, extent.offset);
    };
    if (!range || !range->first || response.is_cut) return lie();
    if (*range->first != extent.offset || *range->last < *range->first || *range->last >= range->size) return lie();
    const std::uint64_t count = *range->last - *range->first + 1;
    if (count != response.received || count != std::min(extent.bytes, range->size - extent.offset)) return lie();
    return found_of(std::move(response.body), range->size, response.head);
}

} // namespace

Result<milliseconds> Deadline::left(milliseconds most) const
{
    if (!m_end) return most;
    const auto left = std::chrono::ceil<milliseconds>(*m_end - std::chrono::steady_clock::now());
    if (left.count() <= 0) return fail(ErrorCode::io_failed, "no answer in the time that it is worth");
    return std::min(left, most);
}

std::uint64_t version_of(std::string_view etag)
{
    if (etag.starts_with("W/")) etag.remove_prefix(2); // the same object, e.g. behind a compressing proxy
    if (etag.empty()) return 0;
    return std::max<std::uint64_t>(load<std::uint64_t>(sha256(as_bytes(etag)).bytes), 1);
}

Result<Response> Objects::send(Request request, std::uint64_t bytes, const Deadline& deadline) const
{
    const bool is_large = bytes > k_small_bytes;
    const auto timeout = deadline.left(is_large ? m_limits.large : m_limits.small);
    if (!timeout) return std::unexpected(timeout.error());
    request.timeout = *timeout;
    // A store that is silent or drips costs no more than a small answer does, though much may come.
    if (is_large && request.method == Method::get) request.small_timeout = std::min(m_limits.small, *timeout);
    return m_client.exchange(request);
}

Result<std::optional<StoredObject>> Objects::get(std::string_view name, const ReadLimit& extent,
                                                 const Deadline& deadline) const
{
    if (extent.bytes == 0 || (!extent.whole && extent.offset >= k_no_offset)) {
        auto found = stat(name, deadline);
        if (found && *found) (*found)->object.bytes = no_bytes(extent, (*found)->object.stamp.size);
        return found;
    }
    Request request{.method = Method::get, .name = std::string(name)};
    const std::uint64_t end = store::end_of(extent);
    if (!extent.whole && !(extent.offset == 0 && end == ~0ULL))
        request.range =
            end >= k_no_offset ? fmt::format("{}-", extent.offset) : fmt::format("{}-{}", extent.offset, end - 1);
    request.plan = [&extent](const ResponseHead& head) -> BodyPlan {
        if (extent.whole || head.status != 200) return {0, extent.bytes, extent.bytes};
        return {extent.offset, extent.bytes, saturating_add(extent.bytes, k_most_unwanted)};
    };
    auto response = send(std::move(request), extent.bytes, deadline);
    if (!response) return std::unexpected(std::move(response.error()));
    return judge(std::move(*response), extent, name, deadline);
}

Result<std::optional<StoredObject>> Objects::judge(Response response, const ReadLimit& extent, std::string_view name,
                                                   const Deadline& deadline) const
{
    const long status = response.head.status;
    if (is_missing(status)) return std::nullopt;
    if (status == 200)
        return extent.whole ? whole_object(std::move(response), extent) : part_of_whole(std::move(response));
    if (status == 206 && !extent.whole) return part_of_object(std::move(response), extent);
    if (status != 416 || extent.whole) return failure_of(response, m_client.address());
    // The object ends before the part.
    if (response.head.range.empty()) {
        auto found = stat(name, deadline);
        if (!found || !*found || (*found)->object.stamp.size <= extent.offset) return found;
    }
    const auto range = parse_range(response.head.range);
    if (!range || range->first || range->size > extent.offset)
        return fail(ErrorCode::corrupt,
                    "the server answers 416 with Content-Range '{}', expected 'bytes */' and a size of at "
                    "most {}",
                    printable(response.head.range, 64), extent.offset);
    return found_of(Bytes{}, range->size, response.head);
}

Result<std::optional<StoredObject>> Objects::stat(std::string_view name, const Deadline& deadline) const
{
    auto response = send({.method = Method::head, .name = std::string(name)}, 0, deadline);
    if (!response) return std::unexpected(std::move(response.error()));
    if (is_missing(response->head.status)) return std::nullopt;
    if (response->head.status != 200) return failure_of(*response, m_client.address());
    if (!response->head.length)
        return fail(ErrorCode::unsupported, "the server's answer to HEAD has no Content-Length, which is needed");
    return found_of(Bytes{}, *response->head.length, response->head);
}

Result<PutAnswer> Objects::put(std::string_view name, ByteView bytes, const std::string& condition) const
{
    Request request{.method = Method::put, .name = std::string(name), .body = bytes};
    if (!condition.empty()) request.headers.push_back(condition);
    auto response = send(request, bytes.size(), Deadline{});
    // A folder is missing: RFC 4918, section 9.7.1, says 409; nginx 1.22 answers 500.
    const auto lacks_folder = [&] { return response->head.status == 409 || response->head.status == 500; };
    if (response && lacks_folder() && !m_client.address().is_s3) {
        if (auto made = make_folders(name); !made) return std::unexpected(std::move(made.error()));
        response = send(request, bytes.size(), Deadline{});
    }
    if (response && response->head.status == 501 && !condition.empty()) {
        request.headers.clear();
        response = send(request, bytes.size(), Deadline{});
    }
    if (!response) return std::unexpected(std::move(response.error()));
    const long status = response->head.status;
    if (is_done(status)) return PutAnswer{.etag = response->head.etag};
    // 409 of S3: another client puts the object at this moment.
    if (!condition.empty() && (status == 412 || (status == 409 && m_client.address().is_s3)))
        return PutAnswer{.is_refused = true};
    return failure_of(*response, m_client.address());
}

Result<void> Objects::make_folders(std::string_view name) const
{
    const std::string url = m_client.address().url_of(name);
    for (std::size_t slash = url.find('/', m_client.address().root_end); slash != std::string::npos;
         slash = url.find('/', slash + 1)) {
        const auto made =
            send({.method = Method::make_folder, .name = {}, .url = url.substr(0, slash + 1)}, 0, Deadline{});
        if (!made) return std::unexpected(made.error());
        if (made->head.status >= 500) break;
        // Any other status is right here: the put that follows tells whether the folders are there.
    }
    return {};
}

Result<void> Objects::remove(std::string_view name) const
{
    const auto response = send({.method = Method::remove, .name = std::string(name)}, 0, Deadline{});
    if (!response) return std::unexpected(response.error());
    if (is_done(response->head.status) || is_missing(response->head.status)) return {};
    return failure_of(*response, m_client.address());
}

} // namespace warmgraph::remote::http
