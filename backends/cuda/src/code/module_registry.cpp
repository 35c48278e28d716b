#include "code/module_registry.hpp"

#include <algorithm>
#include <utility>

#include "code/driver_function.hpp"
#include "code/module.hpp"
#include "cubin/cubin.hpp"
#include "device/core.hpp"

namespace warmgraph::backends::cuda {

namespace {

struct Origin {
    CUmodule module = nullptr;
    std::string kernel;
};

Result<Origin> origin_of(const Driver& driver, CUfunction given)
{
    const auto found = driver_function(driver, given);
    if (!found) return std::unexpected(found.error());
    const char* name = nullptr;
    if (auto done = driver.call("cuFuncGetName", driver.cuFuncGetName, &name, found->function); !done)
        return std::unexpected(std::move(done.error()));
    return Origin{found->module, name != nullptr ? name : ""};
}

std::unexpected<Error> image_unknown(const Core& core)
{
    if (core.recording_side != nullptr) return std::unexpected(core.recording_side->image_unknown());
    return fail(ErrorCode::not_recordable, "it comes from a module that another library loaded, and this library only "
                                           "replays: record it with libwarmgraph");
}

} // namespace

ModuleRegistry::ModuleRegistry() = default;
ModuleRegistry::~ModuleRegistry() = default;

void ModuleRegistry::add(CUmodule handle, CudaModule* module)
{
    const std::lock_guard lock(m_mutex);
    m_modules[handle] = module;
}

void ModuleRegistry::remove(CUmodule handle) noexcept
{
    const std::lock_guard lock(m_mutex);
    m_modules.erase(handle);
}

Result<void> ModuleRegistry::register_module(Core& core, CUmodule handle, ByteView image)
{
    if (handle == nullptr) return fail(ErrorCode::invalid_argument, "no module to register: the handle is null");
    const auto kernels = kernels_of(image);
    if (!kernels)
        return fail(ErrorCode::invalid_argument,
                    "{} bytes are given as the module's image, expected the cubin that it was loaded from: {}",
                    image.size(), kernels.error().message);
    std::shared_ptr<CudaModule> module = CudaModule::foreign(core, handle, {image.begin(), image.end()});
    for (const std::string& kernel : *kernels)
        if (const auto found = module->info(kernel); !found) {
            const bool is_other = found.error().code == ErrorCode::not_found;
            return fail(is_other ? ErrorCode::invalid_argument : found.error().code,
                        "the image does not belong to the module: {}", found.error().message);
        }
    const std::lock_guard lock(m_mutex);
    auto& known = m_registered[handle];
    if (known) m_gone.push_back(std::move(known));
    known = std::move(module);
    ++m_registrations;
    return {};
}

std::vector<std::shared_ptr<Module>> ModuleRegistry::registered()
{
    const std::lock_guard lock(m_mutex);
    std::vector<std::shared_ptr<Module>> result;
    result.reserve(m_registered.size());
    for (const auto& [handle, module] : m_registered) result.push_back(module);
    return result;
}

std::vector<std::string> ModuleRegistry::exposed_variables(const Core& core, ByteView image)
{
    const RecordingSide* const side = core.recording_side;
    if (side == nullptr) return {}; // without a tracker, requests are unknown
    const auto code = Cubin::parse(image);
    if (!code) return {}; // without its code, its variables are unknown too (CudaModule::changed_variables)
    std::vector<std::string> exposed;
    for (const auto& asked : side->variables().queries()) {
        const auto module = static_cast<CUmodule>(const_cast<void*>(asked.module));
        {
            const std::lock_guard lock(m_mutex);
            if (m_registered.contains(module)) continue;
        }
        // A module whose code is unknown may have been made from this image.
        const auto its_code = side->image_of(module);
        const auto its_kernels = its_code ? kernels_of(*its_code) : Result<std::vector<std::string>>{};
        const bool may_be_it =
            !its_code || !its_kernels || std::ranges::all_of(code->kernels(), [&](const auto& kernel) {
                return std::ranges::find(*its_kernels, kernel) != its_kernels->end();
            });
        if (!may_be_it) continue;
        for (const CubinVariable& variable : code->variables())
            if (std::ranges::binary_search(asked.variables, variable.name)) exposed.push_back(variable.name);
    }
    return exposed;
}

Result<CudaModule*> ModuleRegistry::module_of(Core& core, CUfunction function)
{
    const CurrentContext current(core);
    const auto origin = origin_of(*core.driver, function);
    if (!origin) return std::unexpected(origin.error());
    const std::lock_guard lock(m_mutex);
    if (const auto own = m_modules.find(origin->module); own != m_modules.end()) return own->second;
    if (const auto registered = m_registered.find(origin->module); registered != m_registered.end())
        return registered->second.get();
    return foreign_module(core, origin->module, origin->kernel);
}

Result<CudaModule*> ModuleRegistry::foreign_module(Core& core, CUmodule handle, const std::string& kernel)
{
    auto image = core.recording_side != nullptr ? core.recording_side->image_of(handle) : nullptr;
    if (!image) return image_unknown(core);
    ForeignModule& foreign = m_foreign[handle];
    if (foreign.image != image) {
        auto kernels = kernels_of(*image);
        if (!kernels) return image_unknown(core);
        auto module = CudaModule::foreign(core, handle, *image);
        if (foreign.module) m_gone.push_back(std::move(foreign.module));
        foreign = ForeignModule{std::move(image), std::move(*kernels), std::move(module)};
    }
    // The image belongs to another module if it lacks the kernel.
    if (std::ranges::find(foreign.kernels, kernel) == foreign.kernels.end()) return image_unknown(core);
    return foreign.module.get();
}

} // namespace warmgraph::backends::cuda
