// Stands in for the HTTP backend in a build without libcurl's headers.
#include "clocks.hpp"
#include "warmgraph/remote/backends.hpp"

namespace warmgraph::remote {

Result<StoreTime> http_time(const Settings& settings) { return std::unexpected(http_backend(settings).error()); }

Result<std::unique_ptr<store::Tier>> http_backend(const Settings& settings)
{
    return fail(ErrorCode::unsupported,
                "remote {}: HTTP was left out of this build, because curl/curl.h of 7.88 or newer was missing: "
                "install libcurl4-openssl-dev and build again",
                settings.label);
}

} // namespace warmgraph::remote
