#include "warmgraph/backends/built.hpp"

#include <algorithm>
#include <mutex>

#include "warmgraph/backends/opencl.hpp"
#include "warmgraph/backends/registry.hpp"
#if WARMGRAPH_HAVE_CUDA
#include "warmgraph/backends/cuda.hpp"
#endif

namespace warmgraph::backends {
namespace {

void register_built()
{
    static std::once_flag once;
    std::call_once(once, [] {
        for (auto& backend : make_built_backends()) register_backend(std::move(backend));
    });
}

} // namespace

std::vector<std::shared_ptr<Backend>> make_built_backends()
{
    std::vector<std::shared_ptr<Backend>> built{make_opencl_backend()};
#if WARMGRAPH_HAVE_CUDA
    built.push_back(make_cuda_backend());
#endif
    return built;
}

Result<std::shared_ptr<Device>> open_built_device(std::string_view id)
{
    constexpr std::string_view k_cuda = "cuda";
    register_built();
    // "no backend 'cuda'" would not say that another build has it.
    const auto known = backends();
    if (backend_of(id) == k_cuda && std::ranges::find(known, k_cuda, &Backend::name) == known.end())
        return fail(ErrorCode::unsupported,
                    "cannot open '{}': this build has no CUDA backend: configure where cuda.h is found", id);
    return open_device(id);
}

} // namespace warmgraph::backends
