// A program: compiled from source, or loaded from an image.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>

#include "driver.hpp"
#include "warmgraph/backends/compiler.hpp"

namespace warmgraph::backends::opencl {

/// A kernel's properties, queried from the driver once.
struct KernelInfo {
    std::vector<ParamKind> params;
    std::uint64_t max_block = 0;                 ///< work-items of a group
    std::array<std::size_t, 3> required_block{}; ///< reqd_work_group_size; zeros if not declared
    std::uint64_t own_local_memory = 0;          ///< bytes that the kernel declares itself
};

/// The environment in which a module is made. It outlives the module.
struct Target {
    cl_context context = nullptr;
    cl_device_id device = nullptr;
    std::string identity; ///< architecture and driver, for the origin digest
    bool is_pocl = false;
};

class OpenclModule final : public Module {
public:
    [[nodiscard]] static Result<std::unique_ptr<Module>> compile(const Target& target, std::string_view source,
                                                                 std::string_view options);
    [[nodiscard]] static Result<std::unique_ptr<Module>> load(const Target& target, ByteView image);
    /// See Compiler::load_compiled.
    [[nodiscard]] static Result<std::unique_ptr<Module>> load_compiled(const Target& target, std::string_view source,
                                                                       std::string_view options,
                                                                       const CompiledImage& compiled, Recompile again);
    /// See Compiler::compiled: returns the latest image if it contains all launches so far.
    [[nodiscard]] std::optional<CompiledImage> compiled();

    [[nodiscard]] Result<Bytes> image() override;
    [[nodiscard]] Digest origin() const noexcept override { return m_origin; }
    [[nodiscard]] Result<std::uint32_t> param_count(const std::string& kernel) override;

    /// Returns a kernel's properties, which are queried at first use and stay valid while the module exists.
    [[nodiscard]] Result<const KernelInfo*> info(const std::string& kernel);
    /// Checks that the driver accepts `value` for that argument.
    [[nodiscard]] Result<void> check_value(const std::string& kernel, std::uint32_t index, ByteView value);
    /// Creates a new kernel object. Arguments belong to the object, so it must not be shared (NOTES.md).
    [[nodiscard]] Result<Kernel> create_kernel(const std::string& kernel);
    [[nodiscard]] cl_program program() const noexcept { return m_program.get(); }
    /// Notes the work-group function that the driver specialises for a launch: the next image must contain it.
    void note_launch(const std::string& kernel, const Dim3& grid, const Dim3& block);

private:
    struct ProbedKernel {
        KernelInfo info;
        Kernel probe; ///< for checks only, never launched
    };

    OpenclModule(const Target& target, Program program) : m_target(target), m_program(std::move(program)) {}
    [[nodiscard]] Result<ProbedKernel*> known(const std::string& kernel);
    [[nodiscard]] bool is_image_current() const;

    Target m_target;
    Program m_program;
    Digest m_origin;
    std::string m_source, m_options;
    std::mutex m_mutex;
    std::map<std::string, ProbedKernel> m_kernels;
    std::optional<Bytes> m_image;
    bool m_is_loaded = false;
    std::set<std::string> m_launched; ///< work-group functions that PoCL specialised for launches
    std::size_t m_imaged = 0;         ///< number of m_launched that the image contains
};

} // namespace warmgraph::backends::opencl
