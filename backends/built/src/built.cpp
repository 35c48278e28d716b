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

/// Makes an error that says which build has the backend; the registry would only say that there is no such backend.
Result<void> require_built(std::string_view backend, std::string_view id)
{
    constexpr std::string_view k_cuda = "cuda";
    const auto known = backends();
    if (backend == k_cuda && std::ranges::find(known, k_cuda, &Backend::name) == known.end())
        return fail(ErrorCode::unsupported,
                    "cannot open '{}': this build has no CUDA backend: build with -DWARMGRAPH_CUDA=ON", id);
    return {};
}

std::vector<std::string> names()
{
    std::vector<std::string> result;
    for (const auto& known : backends()) result.push_back(known->name());
    return result;
}

} // namespace

std::string_view built_backend_names() noexcept { return WARMGRAPH_BACKENDS; }

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
    register_built();
    if (auto there = require_built(backend_of(id), id); !there) return std::unexpected(there.error());
    return open_device(id);
}

Result<std::unique_ptr<AheadCompiler>> make_ahead_compiler(std::string_view backend, const std::string& target)
{
    register_built();
    if (auto there = require_built(backend, backend); !there) return std::unexpected(there.error());
#if WARMGRAPH_HAVE_CUDA
    if (backend == "cuda") return make_cuda_ahead_compiler(target);
#endif
    return fail(ErrorCode::unsupported, "backend '{}' cannot compile for '{}' without its device", backend, target);
}

Result<void> prepare_built_recording(std::string_view backend)
{
    register_built();
    if (auto there = require_built(backend, backend); !there) return there;
    for (const auto& known : backends())
        if (known->name() == backend) return known->prepare_recording();
    return fail(ErrorCode::not_found, "there is no backend '{}'; known: {}", backend, fmt::join(names(), ", "));
}

} // namespace warmgraph::backends
