#include "warmgraph/remote/backends.hpp"

namespace warmgraph::remote {

Result<std::unique_ptr<store::Tier>> redis_backend(const Settings& settings)
{
    return fail(ErrorCode::unsupported, "remote {}: Redis is not built in", settings.label);
}

} // namespace warmgraph::remote
