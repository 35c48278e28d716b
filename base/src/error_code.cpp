#include "warmgraph/base/error_code.hpp"

namespace warmgraph {

std::string_view to_string(ErrorCode code) noexcept
{
    switch (code) {
    case ErrorCode::invalid_argument: return "invalid_argument";
    case ErrorCode::not_recordable: return "not_recordable";
    case ErrorCode::compile_failed: return "compile_failed";
    case ErrorCode::miss_forbidden: return "miss_forbidden";
    case ErrorCode::corrupt: return "corrupt";
    case ErrorCode::stale: return "stale";
    case ErrorCode::not_found: return "not_found";
    case ErrorCode::io_failed: return "io_failed";
    case ErrorCode::no_space: return "no_space";
    case ErrorCode::permission_denied: return "permission_denied";
    case ErrorCode::driver_failed: return "driver_failed";
    case ErrorCode::out_of_memory: return "out_of_memory";
    case ErrorCode::unsupported: return "unsupported";
    case ErrorCode::verification_failed: return "verification_failed";
    case ErrorCode::internal: return "internal";
    case ErrorCode::partly_launched: return "partly_launched";
    case ErrorCode::untrusted: return "untrusted";
    }
    return "unknown";
}

} // namespace warmgraph
