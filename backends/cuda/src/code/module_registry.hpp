// Finds the Module of a function handle, never by name alone, because names are not unique.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <cuda.h>

#include "warmgraph/backends/device.hpp"
#include "warmgraph/base/bytes.hpp"
#include "warmgraph/base/error.hpp"

namespace warmgraph::backends::cuda {

struct Core;
class CudaModule;

/// Thread-safe.
class ModuleRegistry {
public:
    ModuleRegistry();
    ModuleRegistry(const ModuleRegistry&) = delete;
    ModuleRegistry& operator=(const ModuleRegistry&) = delete;
    ~ModuleRegistry();

    /// Adds a module. Each module that is made here calls this.
    void add(CUmodule handle, CudaModule* module);
    void remove(CUmodule handle) noexcept;

    /// See Device::register_module. Registering a handle again replaces its image.
    [[nodiscard]] Result<void> register_module(Core& core, CUmodule handle, ByteView image);
    [[nodiscard]] std::vector<std::shared_ptr<Module>> registered();
    [[nodiscard]] std::uint64_t registrations() const noexcept { return m_registrations; }

    /// See Device::exposed_variables.
    [[nodiscard]] std::vector<std::string> exposed_variables(const Core& core, ByteView image);

    /// Finds the module of a function: a module that was made here, a registered module, or a foreign module whose
    /// image the tracker kept (created at first use, kept as long as the registry). not_recordable, with the cure, if
    /// the image is unknown.
    [[nodiscard]] Result<CudaModule*> module_of(Core& core, CUfunction function);

private:
    struct ForeignModule {
        std::shared_ptr<const Bytes> image; ///< from the tracker; another image there means that the handle was reused
        std::vector<std::string> kernels;
        std::unique_ptr<CudaModule> module;
    };
    [[nodiscard]] Result<CudaModule*> foreign_module(Core& core, CUmodule handle, const std::string& kernel);

    std::atomic<std::uint64_t> m_registrations = 0;
    std::mutex m_mutex; // guards the members below
    std::map<CUmodule, CudaModule*> m_modules;
    std::map<CUmodule, std::shared_ptr<CudaModule>> m_registered;
    std::map<CUmodule, ForeignModule> m_foreign;
    std::vector<std::shared_ptr<CudaModule>> m_gone; // their handles were reused; graphs may use these modules
};

} // namespace warmgraph::backends::cuda
