#include "http_client.hpp"

#include <algorithm>
#include <array>
#include <chrono>

#include "transfer.hpp"
#include "warmgraph/base/printable.hpp"
#include "warmgraph/base/process.hpp"
#include "warmgraph/base/sha256.hpp"
#include "warmgraph/base/signing_key.hpp"

namespace warmgraph::remote::http {
namespace {

/// Handles, each with its connection, that are kept for the next request.
constexpr std::size_t k_most_idle = 8;

/// A list of headers for curl.
class HeaderList {
public:
    explicit HeaderList(const CurlLibrary& library) : m_library(library) {}
    HeaderList(const HeaderList&) = delete;
    HeaderList& operator=(const HeaderList&) = delete;
    ~HeaderList() { m_library.list_free(m_list); }
    void add(std::string line)
    {
        if (curl_slist* const longer = m_library.list_append(m_list, line.c_str())) m_list = longer;
        wipe(line);
    }
    [[nodiscard]] curl_slist* get() const noexcept { return m_list; }

private:
    const CurlLibrary& m_library;
    curl_slist* m_list = nullptr;
};

void add_headers(HeaderList& list, const Request& request, const Address& address)
{
    for (const std::string& line : request.headers) list.add(line);
    const std::string& token = address.credentials.token;
    // Without this, curl 7.88 asks before it sends a body. It stays where requests are signed, because curl 7.88 signs also
    // headers that are left out; there, curl waits 1 ms for leave (set_common).
    if (address.signing.empty()) list.add("Expect:");
    if (!address.is_s3) {
        if (!token.empty()) list.add("Authorization: Bearer " + token);
        return;
    }
    if (address.signing.empty()) return;
    // curl 7.88 signs with this digest, and does not send it by itself.
    list.add("x-amz-content-sha256: " + to_hex(sha256(request.body)));
    if (!token.empty()) list.add("x-amz-security-token: " + token);
}

/// Sets one option of a handle after another; the first failure stays.
class Options {
public:
    Options(const CurlLibrary& library, CURL* handle) : m_library(library), m_handle(handle) {}
    template <class Value>
    void set(CURLoption option, Value value)
    {
        if (m_status == CURLE_OK) m_status = m_library.set(m_handle, option, value);
    }
    [[nodiscard]] CURLcode status() const noexcept { return m_status; }

private:
    const CurlLibrary& m_library;
    CURL* m_handle;
    CURLcode m_status = CURLE_OK;
};

void set_method(Options& options, const Request& request)
{
    switch (request.method) {
    case Method::get: options.set(CURLOPT_HTTPGET, 1L); break;
    case Method::head: options.set(CURLOPT_NOBODY, 1L); break;
    case Method::put:
        options.set(CURLOPT_UPLOAD, 1L);
        options.set(CURLOPT_INFILESIZE_LARGE, static_cast<curl_off_t>(request.body.size()));
        break;
    case Method::remove: options.set(CURLOPT_CUSTOMREQUEST, "DELETE"); break;
    case Method::make_folder: options.set(CURLOPT_CUSTOMREQUEST, "MKCOL"); break;
    }
    if (!request.range.empty()) options.set(CURLOPT_RANGE, request.range.c_str());
}

void set_access(Options& options, const Address& address)
{
    const Credentials& credentials = address.credentials;
    if (!address.signing.empty()) options.set(CURLOPT_AWS_SIGV4, address.signing.c_str());
    if (credentials.user.empty() || (address.is_s3 && address.signing.empty())) return;
    if (!address.is_s3) options.set(CURLOPT_HTTPAUTH, static_cast<long>(CURLAUTH_BASIC));
    options.set(CURLOPT_USERNAME, credentials.user.c_str());
    options.set(CURLOPT_PASSWORD, credentials.password.c_str());
}

/// The settings of every request.
void set_common(Options& options, milliseconds connect_timeout, milliseconds timeout)
{
    options.set(CURLOPT_NOSIGNAL, 1L);
    options.set(CURLOPT_PROTOCOLS_STR, "http,https");
    options.set(CURLOPT_FOLLOWLOCATION, 0L);
    options.set(CURLOPT_NETRC, static_cast<long>(CURL_NETRC_IGNORED));
    options.set(CURLOPT_CONNECTTIMEOUT_MS, static_cast<long>(std::max<std::int64_t>(connect_timeout.count(), 1)));
    options.set(CURLOPT_TIMEOUT_MS, static_cast<long>(std::max<std::int64_t>(timeout.count(), 1)));
    options.set(CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L); // a proxy's
    options.set(CURLOPT_EXPECT_100_TIMEOUT_MS, 1L);
    options.set(CURLOPT_BUFFERSIZE, 256L * 1024);
    options.set(CURLOPT_UPLOAD_BUFFERSIZE, 256L * 1024);
}

bool is_answer_without_http(CURLcode status)
{
    switch (status) {
    case CURLE_UNSUPPORTED_PROTOCOL: // an answer without a status line ("HTTP/0.9")
    case CURLE_WEIRD_SERVER_REPLY:
    case CURLE_BAD_CONTENT_ENCODING:
    case CURLE_PARTIAL_FILE: // the connection ended before the announced length
    case CURLE_HTTP2:
    case CURLE_HTTP2_STREAM: return true;
    default: return false;
    }
}

} // namespace

std::string_view to_string(Method method) noexcept
{
    switch (method) {
    case Method::get: return "GET";
    case Method::head: return "HEAD";
    case Method::put: return "PUT";
    case Method::remove: return "DELETE";
    case Method::make_folder: break;
    }
    return "MKCOL";
}

/// A connection for one request.
class HttpClient::Borrowed {
public:
    explicit Borrowed(HttpClient& client) : m_client(client)
    {
        const std::scoped_lock guard(client.m_mutex);
        if (client.m_idle.empty()) {
            m_connection = {client.m_library.make(), client.m_library.make_multi()};
        } else {
            m_connection = client.m_idle.back();
            client.m_idle.pop_back();
        }
    }
    Borrowed(const Borrowed&) = delete;
    Borrowed& operator=(const Borrowed&) = delete;
    ~Borrowed()
    {
        if (is_whole()) {
            m_client.m_library.reset(m_connection.easy); // it holds pointers into the request
            const std::scoped_lock guard(m_client.m_mutex);
            if (m_client.m_idle.size() < k_most_idle) {
                m_client.m_idle.push_back(m_connection); // has the capacity
                return;
            }
        }
        m_client.clean_up(m_connection);
    }
    [[nodiscard]] const Connection& get() const noexcept { return m_connection; }
    [[nodiscard]] bool is_whole() const noexcept
    {
        return m_connection.easy != nullptr && m_connection.multi != nullptr;
    }

private:
    HttpClient& m_client;
    Connection m_connection;
};

HttpClient::HttpClient(const CurlLibrary& library, Address address, milliseconds connect_timeout,
                       std::shared_ptr<const std::atomic<bool>> stop)
    : m_library(library),
      m_address(std::move(address)),
      m_connect_timeout(connect_timeout),
      m_stop(std::move(stop)),
      m_ca_file(environment("SSL_CERT_FILE").value_or(""))
{
    m_idle.reserve(k_most_idle);
}

HttpClient::~HttpClient()
{
    for (const Connection& connection : m_idle) clean_up(connection);
}

void HttpClient::clean_up(const Connection& connection) const
{
    if (connection.easy != nullptr) m_library.clean_up(connection.easy);
    if (connection.multi != nullptr) m_library.clean_up_multi(connection.multi);
}

/// curl_easy_perform() would look at `stop` only once a second. CURLE_ABORTED_BY_CALLBACK: `stop` is true.
CURLcode HttpClient::perform(const Connection& connection, const Transfer& transfer, milliseconds small_timeout) const
{
    const auto small_end = std::chrono::steady_clock::now() + small_timeout;
    const auto is_late = [&] {
        return small_timeout.count() > 0 && !transfer.is_large() && std::chrono::steady_clock::now() > small_end;
    };
    constexpr int k_look_every_ms = 50;
    if (m_library.add(connection.multi, connection.easy) != CURLM_OK) return CURLE_FAILED_INIT;
    CURLcode status = CURLE_FAILED_INIT;
    int running = 1;
    while (m_library.perform(connection.multi, &running) == CURLM_OK && running != 0) {
        if (m_stop && *m_stop) {
            status = CURLE_ABORTED_BY_CALLBACK;
            break;
        }
        if (is_late()) {
            status = CURLE_OPERATION_TIMEDOUT;
            break;
        }
        if (m_library.poll(connection.multi, nullptr, 0, k_look_every_ms, nullptr) != CURLM_OK) break;
    }
    int left = 0;
    while (const CURLMsg* const message = m_library.next_message(connection.multi, &left))
        if (message->msg == CURLMSG_DONE) status = message->data.result;
    m_library.remove(connection.multi, connection.easy); // closes the connection of a request that has not ended
    return status;
}

Result<Response> HttpClient::exchange(const Request& request)
{
    const Borrowed borrowed(*this);
    if (m_stop && *m_stop) return fail(ErrorCode::io_failed, "nothing is asked any more, because the process ends");
    if (!borrowed.is_whole()) return fail(ErrorCode::out_of_memory, "libcurl makes no handle");
    const std::string url = request.url.empty() ? m_address.url_of(request.name) : request.url;
    HeaderList headers(m_library);
    add_headers(headers, request, m_address);
    Transfer transfer(request);
    std::array<char, CURL_ERROR_SIZE> text{};

    Options options(m_library, borrowed.get().easy);
    set_common(options, m_connect_timeout, request.timeout);
    // As OpenSSL and the program curl have it; libcurl does not.
    if (!m_ca_file.empty()) options.set(CURLOPT_CAINFO, m_ca_file.c_str());
    set_access(options, m_address);
    set_method(options, request);
    options.set(CURLOPT_URL, url.c_str());
    options.set(CURLOPT_HTTPHEADER, headers.get());
    options.set(CURLOPT_ERRORBUFFER, text.data());
    options.set(CURLOPT_HEADERFUNCTION, &Transfer::take_header);
    options.set(CURLOPT_HEADERDATA, &transfer);
    options.set(CURLOPT_WRITEFUNCTION, &Transfer::take_body);
    options.set(CURLOPT_WRITEDATA, &transfer);
    options.set(CURLOPT_READFUNCTION, &Transfer::give_body);
    options.set(CURLOPT_READDATA, &transfer);
    options.set(CURLOPT_SEEKFUNCTION, &Transfer::seek_body);
    options.set(CURLOPT_SEEKDATA, &transfer);
    if (options.status() != CURLE_OK)
        return fail(ErrorCode::unsupported, "libcurl refuses a setting: {}", m_library.text_of(options.status()));

    const CURLcode status = perform(borrowed.get(), transfer, request.small_timeout);
    if (transfer.stopped()) return std::move(transfer).response(); // the error of `status` is ours
    if (status == CURLE_OK) return std::move(transfer).response();
    if (status == CURLE_ABORTED_BY_CALLBACK) return fail(ErrorCode::io_failed, "given up, because the process ends");
    if (status == CURLE_OPERATION_TIMEDOUT)
        return fail(ErrorCode::io_failed, "no answer in time (at most {} ms to connect, {} ms in all{})",
                    m_connect_timeout.count(), request.timeout.count(),
                    request.small_timeout.count() == 0
                        ? ""
                        : fmt::format(", {} ms for a small answer or until it begins", request.small_timeout.count()));
    const std::string why = printable(text[0] != '\0' ? text.data() : m_library.text_of(status), 200);
    if (is_answer_without_http(status)) return fail(ErrorCode::corrupt, "the answer is no whole HTTP answer: {}", why);
    // curl 7.88 says the same for a line that is too long for it.
    if (status == CURLE_OUT_OF_MEMORY)
        return fail(ErrorCode::corrupt, "the answer's headers have a line that is too long, or memory ran out");
    return fail(ErrorCode::io_failed, "{}", why);
}

std::unexpected<Error> failure_of(const Response& response, const Address& address)
{
    const long status = response.head.status;
    // S3 explains its refusals in XML: <Code>AccessDenied</Code>.
    std::string code;
    const std::string_view body = as_text(response.body);
    if (const std::size_t begin = body.find("<Code>"); address.is_s3 && begin != std::string_view::npos)
        code = fmt::format(" ({})", printable(body.substr(begin + 6, body.find('<', begin + 6) - begin - 6), 64));
    if (status >= 300 && status < 400)
        return fail(ErrorCode::io_failed,
                    "the server redirects to '{}' with {}, and redirects are not followed: give that URL",
                    printable(response.head.location, 200), status);
    if (status == 401 || status == 403)
        return fail(ErrorCode::permission_denied, "the server refuses with {}{}: check {}", status, code,
                    address.is_s3 ? "the key, the clock, and that the key may list the bucket (s3:ListBucket): without "
                                    "that, S3 answers 403 for missing objects, too"
                                  : "user, password or token");
    if (status == 404 || status == 410)
        return fail(ErrorCode::not_found, "the server answers {}{}: check the path", status, code);
    if (status == 405 || status == 501)
        return fail(ErrorCode::unsupported, "the server answers {}{}: it must allow GET, HEAD, PUT and DELETE", status,
                    code);
    if (status == 413)
        return fail(ErrorCode::unsupported, "the object is too large for the server (413): raise its limit "
                                            "(client_max_body_size of nginx), or set max-bytes");
    if (status == 507) return fail(ErrorCode::no_space, "the server has no space left (507)");
    if (status >= 400) return fail(ErrorCode::io_failed, "the server answers {}{}", status, code);
    return fail(ErrorCode::corrupt, "the server answers {}, which is no answer to this request", status);
}

} // namespace warmgraph::remote::http
