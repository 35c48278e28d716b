// Loaded device code: compiled or loaded here, or loaded by other code in this process.
#pragma once

#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <cuda.h>

#include "cubin/cubin.hpp"
#include "warmgraph/backends/compiler.hpp"

namespace warmgraph::backends::cuda {

struct Core;

/// Data for checking launches.
struct KernelInfo {
    struct Param {
        std::size_t offset = 0, size = 0; ///< bytes, in the parameter buffer
    };
    CUfunction function = nullptr;
    std::vector<Param> params;
    std::uint32_t max_block = 0;     ///< threads
    std::uint32_t static_shared = 0; ///< bytes
};

/// Thread-safe. Destroying it unloads a module that was made here (the device must be idle or the driver must keep the
/// code of running work: the executables' lifetimes ensure this), but never a foreign module.
class CudaModule final : public Module {
public:
    /// Loads a cubin (or PTX) and registers it in core.modules.
    [[nodiscard]] static Result<std::unique_ptr<CudaModule>> load(Core& core, ByteView image, const Digest& origin);
    /// NVRTC compiles source to a cubin for the device's architecture, which is loaded. compile_failed carries the log.
    [[nodiscard]] static Result<std::unique_ptr<CudaModule>> compile(Core& core, std::string_view source,
                                                                     std::string_view options);
    /// The identity for compile() with these options: NVRTC and the target architecture.
    [[nodiscard]] static Result<CompilerIdentity> compiler_identity(const Core& core, std::string_view options);
    /// Wraps a module of other code, whose image the tracker kept. Called by ModuleRegistry.
    [[nodiscard]] static std::unique_ptr<CudaModule> foreign(Core& core, CUmodule module, Bytes image);
    CudaModule(const CudaModule&) = delete;
    CudaModule& operator=(const CudaModule&) = delete;
    ~CudaModule() override;

    [[nodiscard]] Result<Bytes> image() override;
    [[nodiscard]] Result<Bytes> image_of(std::span<const std::string> kernels) override; ///< cuts (cubin/cut.hpp)
    [[nodiscard]] Digest origin() const noexcept override { return m_origin; }
    [[nodiscard]] Result<std::uint32_t> param_count(const std::string& kernel) override;
    [[nodiscard]] Result<std::vector<cachefmt::ModuleVariable>> changed_variables() override;
    [[nodiscard]] bool has_variables() const override; ///< true if unknown
    [[nodiscard]] bool keeps_state() const override;
    [[nodiscard]] bool may_be_function(std::uint64_t word) const override;
    [[nodiscard]] bool is_library_constant(const std::string& variable) const override;
    [[nodiscard]] Result<void> restore_variables(std::span<const cachefmt::ModuleVariable> before,
                                                 std::span<const cachefmt::ModuleVariable> now) override;
    [[nodiscard]] Result<void> write_variables(std::span<const cachefmt::ModuleVariable> variables) override;

    [[nodiscard]] CUmodule handle() const noexcept { return m_module; }
    /// Returns a kernel's properties, which are looked up once and stay valid while the module exists. not_found lists
    /// the module's kernels.
    [[nodiscard]] Result<const KernelInfo*> info(const std::string& kernel);

private:
    enum class Owner : std::uint8_t { here, elsewhere };
    CudaModule(Core& core, CUmodule module, Owner owner, Bytes image, const Digest& origin);
    [[nodiscard]] const CodeTraits& traits() const;
    [[nodiscard]] Result<KernelInfo> ask(const std::string& kernel) const;
    [[nodiscard]] std::string kernel_names() const;
    [[nodiscard]] Result<std::pair<CUdeviceptr, std::size_t>> variable(const std::string& name) const;
    /// Returns the variable's contents if they differ from the image's.
    [[nodiscard]] Result<std::optional<Bytes>> changed(const CubinVariable& known) const;

    Core& m_core;
    CUmodule m_module = nullptr;
    Owner m_owner = Owner::here;
    Bytes m_image;
    Digest m_origin;
    std::mutex m_mutex; // guards m_kernels
    std::map<std::string, KernelInfo> m_kernels;
    mutable std::once_flag m_traits_read;
    mutable CodeTraits m_traits; // set by m_traits_read
};

} // namespace warmgraph::backends::cuda
