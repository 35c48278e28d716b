#include "curl_library.hpp"

#include <dlfcn.h>

namespace warmgraph::remote::http {
namespace {

constexpr const char* k_library = "libcurl.so.4";
/// 7.88.0, of February 2023: Debian 12 has it. Older ones were not tried; those before 7.85 lack CURLOPT_PROTOCOLS_STR, and
/// with CURLOPT_NOSIGNAL older ones may end the process by SIGPIPE in TLS.
constexpr unsigned k_oldest = 0x075800;

Result<CurlLibrary> open_library()
{
    void* const opened = ::dlopen(k_library, RTLD_NOW | RTLD_LOCAL);
    if (opened == nullptr) {
        const char* const why = ::dlerror();
        return fail(ErrorCode::unsupported,
                    "remote tiers over HTTP need {}, which cannot be opened ({}): install libcurl4 (Debian 12) or "
                    "libcurl4t64 (Ubuntu 24.04)",
                    k_library, why != nullptr ? why : "no reason given");
    }
    CurlLibrary library;
    const char* missing = nullptr;
    const auto resolve = [&]<class Function>(Function& target, const char* symbol) {
        target = reinterpret_cast<Function>(::dlsym(opened, symbol));
        if (target == nullptr && missing == nullptr) missing = symbol;
    };
#define WARMGRAPH_CURL_RESOLVE(member, symbol) resolve(library.member, #symbol);
    WARMGRAPH_CURL_FUNCTIONS(WARMGRAPH_CURL_RESOLVE)
#undef WARMGRAPH_CURL_RESOLVE
    if (missing != nullptr)
        return fail(ErrorCode::unsupported, "{} has no {}: install libcurl 7.88 or newer", k_library, missing);
    const curl_version_info_data& found = *library.version_info(CURLVERSION_NOW);
    if (found.version_num < k_oldest)
        return fail(ErrorCode::unsupported, "{} is version {}, expected 7.88 or newer: update it", k_library,
                    found.version);
    if (const CURLcode status = library.global_init(CURL_GLOBAL_DEFAULT); status != CURLE_OK)
        return fail(ErrorCode::unsupported, "{} cannot be initialised: {}", k_library, library.text_of(status));
    return library;
}

} // namespace

Result<const CurlLibrary*> CurlLibrary::open()
{
    static const Result<CurlLibrary> library = open_library();
    if (!library) return std::unexpected(library.error());
    return &*library;
}

} // namespace warmgraph::remote::http
