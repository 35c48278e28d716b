// The functions of libcurl that the HTTP backend uses. The library is opened at run time, when the first HTTP backend is
// made, so that programs without a remote tier neither need nor load it.
#pragma once

#include <curl/curl.h>

#include "warmgraph/base/error.hpp"

namespace warmgraph::remote::http {

/// The member, and libcurl's name of the function.
#define WARMGRAPH_CURL_FUNCTIONS(X)                                                                                    \
    X(global_init, curl_global_init)                                                                                   \
    X(version_info, curl_version_info)                                                                                 \
    X(make, curl_easy_init)                                                                                            \
    X(reset, curl_easy_reset)                                                                                          \
    X(set, curl_easy_setopt)                                                                                           \
    X(clean_up, curl_easy_cleanup)                                                                                     \
    X(text_of, curl_easy_strerror)                                                                                     \
    X(make_multi, curl_multi_init)                                                                                     \
    X(add, curl_multi_add_handle)                                                                                      \
    X(perform, curl_multi_perform)                                                                                     \
    X(poll, curl_multi_poll)                                                                                           \
    X(next_message, curl_multi_info_read)                                                                              \
    X(remove, curl_multi_remove_handle)                                                                                \
    X(clean_up_multi, curl_multi_cleanup)                                                                              \
    X(list_append, curl_slist_append)                                                                                  \
    X(list_free, curl_slist_free_all)

/// Thread-safe once it is opened.
struct CurlLibrary {
#define WARMGRAPH_CURL_MEMBER(member, symbol) decltype(&::symbol) member = nullptr;
    WARMGRAPH_CURL_FUNCTIONS(WARMGRAPH_CURL_MEMBER)
#undef WARMGRAPH_CURL_MEMBER

    /// Opens libcurl.so.4 at the first call; later calls give the same answer. `unsupported`: it is missing or too old; the
    /// message says how to get it. It is never closed, because its threads (name resolution) need its code.
    [[nodiscard]] static Result<const CurlLibrary*> open();
};

} // namespace warmgraph::remote::http
