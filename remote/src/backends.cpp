#include "warmgraph/remote/backends.hpp"

namespace warmgraph::remote {

Result<std::unique_ptr<store::Tier>> backend_of(const Settings& settings)
{
    switch (settings.scheme) {
    case Scheme::file: return file_backend(settings);
    case Scheme::http:
    case Scheme::https:
    case Scheme::s3: return http_backend(settings);
    case Scheme::redis:
    case Scheme::rediss:
    case Scheme::redis_socket: break;
    }
    return redis_backend(settings);
}

} // namespace warmgraph::remote
