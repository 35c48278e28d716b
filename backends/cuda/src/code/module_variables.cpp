// The part of CudaModule (module.hpp) for the contents of variables.
#include <algorithm>

#include "code/module.hpp"
#include "cubin/cubin.hpp"
#include "device/core.hpp"
#include "device/memory.hpp"

namespace warmgraph::backends::cuda {
namespace {

/// True for string literals and similar data: the host cannot use their names, and no kernel writes them.
bool is_literal(std::string_view name) { return name.starts_with("$str") || name.starts_with("__unnamed_"); }

/// True for tables of the device runtime (libcudadevrt), which is linked to code that launches kernels itself. The
/// tables hold names of errors and addresses of functions. Only the device runtime reads them, and nothing writes them.
bool is_of_device_runtime(const CubinVariable& known)
{
    if (known.name.starts_with("__nv_static_") && known.name.find("_22_cuda_device_runtime_cu_") != std::string::npos)
        return true;
    return (known.name == "cudartErrorTable" || known.name == "cudartErrorCnpMap") && known.relocated.size() == 1 &&
           known.size == sizeof(std::uint64_t);
}

} // namespace

Result<std::pair<CUdeviceptr, std::size_t>> CudaModule::variable(const std::string& name) const
{
    const CurrentContext context(m_core);
    const OutsideCapture outside(m_core);
    const Driver& driver = *m_core.driver;
    CUdeviceptr address = 0;
    std::size_t size = 0;
    const CUresult found =
        driver.status("cuModuleGetGlobal", driver.cuModuleGetGlobal, &address, &size, m_module, name.c_str());
    if (found == CUDA_ERROR_NOT_FOUND) return fail(ErrorCode::not_found, "the module has no variable '{}'", name);
    if (found != CUDA_SUCCESS)
        return within(fmt::format("variable '{}'", name), driver.error("cuModuleGetGlobal", found));
    return std::pair{address, size};
}

Result<std::optional<Bytes>> CudaModule::changed(const CubinVariable& known) const
{
    if (is_of_device_runtime(known)) return std::nullopt;
    const auto place = variable(known.name);
    if (!place && place.error().code == ErrorCode::not_found && is_literal(known.name)) return std::nullopt;
    if (!place) return within("its contents cannot be compared with those in its image", place.error());
    if (place->second != known.size)
        return fail(ErrorCode::not_recordable, "it has {} bytes, but {} bytes in its image", place->second, known.size);
    Bytes now(known.size);
    if (now.empty()) return std::nullopt;
    auto read = transfer(m_core, reinterpret_cast<CUdeviceptr>(now.data()), place->first, now.size());
    if (!read) return std::unexpected(read.error());
    if (known.initial.empty()) {
        const bool is_zero = std::ranges::all_of(now, [](std::byte byte) { return byte == std::byte{0}; });
        return is_zero ? std::nullopt : std::optional(std::move(now));
    }
    if (!known.relocated.empty()) {
        // The contents have addresses of this process. Nothing writes a table of virtual functions (_ZTV); other
        // variables may have been written, which cannot be seen.
        if (known.name.starts_with("_ZTV")) return std::nullopt;
        return fail(ErrorCode::not_recordable,
                    "it holds {} addresses that the loader wrote, and these differ in each process, so that a change "
                    "of its contents cannot be detected; fill it from the host or in the kernel instead",
                    known.relocated.size());
    }
    return std::ranges::equal(now, known.initial) ? std::nullopt : std::optional(std::move(now));
}

Result<std::vector<cachefmt::ModuleVariable>> CudaModule::changed_variables()
{
    std::vector<cachefmt::ModuleVariable> found;
    const auto cubin = Cubin::parse(m_image);
    if (!cubin) {
        return fail(ErrorCode::not_recordable,
                    "the variables of an image that is not a cubin cannot be compared with their initial contents "
                    "({}); load a cubin",
                    cubin.error().message);
    }
    for (const CubinVariable& known : cubin->variables()) {
        auto contents = changed(known);
        if (!contents) {
            const ErrorCode code = contents.error().code;
            return fail(code == ErrorCode::not_found ? ErrorCode::not_recordable : code, "module variable '{}': {}",
                        known.name, contents.error().message);
        }
        if (*contents) found.push_back({known.name, std::move(**contents)});
    }
    std::ranges::sort(found, {}, &cachefmt::ModuleVariable::name);
    return found;
}

bool CudaModule::is_library_constant(const std::string& variable) const
{
    const RecordingSide* const side = m_core.recording_side;
    if (m_owner == Owner::here || side == nullptr || !side->variables().is_of_known_library(m_module)) return false;
    const auto cubin = Cubin::parse(m_image);
    return cubin && std::ranges::any_of(cubin->variables(), [&](const CubinVariable& known) {
               return known.name == variable && known.kind == VariableKind::constant;
           });
}

bool CudaModule::has_variables() const
{
    const auto cubin = Cubin::parse(m_image);
    return !cubin || !cubin->variables().empty();
}

Result<void> CudaModule::restore_variables(std::span<const cachefmt::ModuleVariable> before,
                                           std::span<const cachefmt::ModuleVariable> now)
{
    const auto cubin = Cubin::parse(m_image);
    if (!cubin) return std::unexpected(cubin.error());
    std::vector<cachefmt::ModuleVariable> wanted{before.begin(), before.end()};
    for (const auto& variable : now) {
        if (std::ranges::find(wanted, variable.name, &cachefmt::ModuleVariable::name) != wanted.end()) continue;
        const auto& all = cubin->variables();
        const auto known = std::ranges::find(all, variable.name, &CubinVariable::name);
        if (known == all.end()) return fail(ErrorCode::not_found, "the image has no variable '{}'", variable.name);
        Bytes initial{known->initial.begin(), known->initial.end()};
        initial.resize(known->size); // zeros if the variable has no initial value
        wanted.push_back({variable.name, std::move(initial)});
    }
    return write_variables(wanted);
}

Result<void> CudaModule::write_variables(std::span<const cachefmt::ModuleVariable> variables)
{
    for (const auto& [name, contents, slots] : variables) { // slots already hold their addresses
        const auto place = variable(name);
        if (!place) return std::unexpected(place.error());
        if (place->second != contents.size()) {
            return fail(ErrorCode::invalid_argument, "module variable '{}' has {} bytes, {} are stored for it", name,
                        place->second, contents.size());
        }
        if (contents.empty()) continue;
        auto written = transfer(m_core, place->first, reinterpret_cast<CUdeviceptr>(contents.data()), contents.size());
        if (!written) return within(fmt::format("write module variable '{}'", name), written.error());
    }
    return {};
}

} // namespace warmgraph::backends::cuda
