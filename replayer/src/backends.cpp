#include "backends.hpp"

#include <algorithm>
#include <mutex>

#include "warmgraph/backends/registry.hpp"
#if WARMGRAPH_REPLAY_CUDA
#include "warmgraph/backends/cuda.hpp"
#endif
#if WARMGRAPH_REPLAY_OPENCL
#include "warmgraph/backends/opencl.hpp"
#endif

namespace warmgraph::replayer {

namespace {

void register_all()
{
    static std::once_flag once;
    std::call_once(once, [] {
#if WARMGRAPH_REPLAY_CUDA
        backends::register_backend(backends::make_cuda_replay_backend());
#endif
#if WARMGRAPH_REPLAY_OPENCL
        backends::register_backend(backends::make_opencl_backend());
#endif
    });
}

} // namespace

std::string_view backend_names() noexcept { return WARMGRAPH_REPLAY_BACKEND_NAMES; }

Result<std::shared_ptr<backends::Device>> open_device(std::string_view id)
{
    register_all();
    const auto known = backends::backends();
    const std::string_view wanted = backends::backend_of(id);
    if ((wanted == "cuda" || wanted == "opencl") &&
        std::ranges::find(known, wanted, &backends::Backend::name) == known.end())
        return fail(
            ErrorCode::unsupported,
            "cannot open '{}': this library has only the backends {}: build it with -DWARMGRAPH_REPLAY_BACKENDS=all",
            id, backend_names());
    return backends::open_device(id);
}

} // namespace warmgraph::replayer
