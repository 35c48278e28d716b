#include "warmgraph/remote/backends.hpp"

namespace warmgraph::remote {

Result<std::unique_ptr<store::Tier>> http_backend(const Settings& settings)
{
    return fail(ErrorCode::unsupported, "remote {}: HTTP is not built in", settings.label);
}

} // namespace warmgraph::remote
