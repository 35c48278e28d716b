#include "warmgraph/remote/settings.hpp"

#include "warmgraph/base/signing_key.hpp"

namespace warmgraph::remote {

std::string_view to_string(Scheme scheme) noexcept
{
    switch (scheme) {
    case Scheme::file: return "file";
    case Scheme::http: return "http";
    case Scheme::https: return "https";
    case Scheme::s3: return "s3";
    case Scheme::redis: return "redis";
    case Scheme::rediss: return "rediss";
    case Scheme::redis_socket: break;
    }
    return "unix";
}

void Credentials::forget() noexcept
{
    wipe(user);
    wipe(password);
    wipe(token);
}

} // namespace warmgraph::remote
