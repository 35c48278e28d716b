// Stands in for the HTTP backend in a build without libcurl's headers.
#include "warmgraph/remote/backends.hpp"

namespace warmgraph::remote {

Result<std::unique_ptr<store::Tier>> http_backend(const Settings& settings)
{
    return fail(ErrorCode::unsupported,
                "remote {}: HTTP was left out of this build, because curl/curl.h of 7.88 or newer was missing: "
                "install libcurl4-openssl-dev and build again",
                settings.label);
}

} // namespace warmgraph::remote
