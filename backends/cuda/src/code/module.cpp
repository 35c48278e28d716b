#include "code/module.hpp"

#include <algorithm>

#include <elf.h>

#include "cubin/cubin.hpp"
#include "cubin/cut.hpp"
#include "cubin/elf.hpp"
#include "device/core.hpp"
#include "warmgraph/base/log.hpp"

namespace warmgraph::backends::cuda {
namespace {

constexpr std::uint32_t k_fatbin_magic = 0xBA55ED50; // fatbinary_section.h

struct FatbinHeader {
    std::uint32_t magic = 0;
    std::uint16_t version = 0, header_size = 0;
    std::uint64_t size = 0; ///< bytes after the header
};

enum class ImageKind : std::uint8_t { cubin, fatbin, ptx, none };

/// Returns the kind of an image that is safe to load: cuModuleLoadData gets no size, so the driver must not read beyond
/// the bytes.
ImageKind kind_of(ByteView image)
{
    if (image.size() > sizeof(Elf64_Ehdr) && as_text(image.first(SELFMAG)) == ELFMAG) {
        // parse() checks every offset against the size. Variables are not decoded, to save time in a restore.
        return elf::File::parse(image) ? ImageKind::cubin : ImageKind::none;
    }
    if (image.size() > sizeof(FatbinHeader)) {
        const auto header = load<FatbinHeader>(image);
        if (header.magic == k_fatbin_magic)
            return header.size <= image.size() - std::min<std::size_t>(header.header_size, image.size())
                       ? ImageKind::fatbin
                       : ImageKind::none;
    }
    return as_text(image).find(".version") != std::string_view::npos ? ImageKind::ptx : ImageKind::none;
}

/// Returns "sm_90" for a cubin of sm_90; "unknown" for other images.
std::string architecture_of(ByteView image)
{
    const auto cubin = Cubin::parse(image);
    return cubin ? fmt::format("sm_{}", cubin->sm()) : "unknown";
}

std::unexpected<Error> refused(const Core& core, ByteView image, CUresult status)
{
    const Error error = core.driver->error("cuModuleLoadData", status);
    const auto refusal = [&](ErrorCode code) {
        return fail(code, "the driver refuses an image of {} bytes for {} (the device is {}): {}", image.size(),
                    architecture_of(image), core.architecture(), error.message);
    };
    switch (status) {
    case CUDA_ERROR_NO_BINARY_FOR_GPU:
        return fail(ErrorCode::stale, "the image is for architecture {}, the device is {}; {}", architecture_of(image),
                    core.architecture(), error.message);
    case CUDA_ERROR_INVALID_IMAGE:
    case CUDA_ERROR_INVALID_PTX:
    case CUDA_ERROR_INVALID_SOURCE:
    case CUDA_ERROR_UNSUPPORTED_PTX_VERSION: return refusal(ErrorCode::stale);
    // The image is good, but this machine cannot compile it.
    case CUDA_ERROR_JIT_COMPILER_NOT_FOUND:
    case CUDA_ERROR_JIT_COMPILATION_DISABLED: return refusal(ErrorCode::unsupported);
    case CUDA_ERROR_SHARED_OBJECT_INIT_FAILED:
    case CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND: return refusal(ErrorCode::driver_failed);
    default: return within(fmt::format("load an image of {} bytes", image.size()), error);
    }
}

} // namespace

CudaModule::CudaModule(Core& core, CUmodule module, Owner owner, Bytes image, const Digest& origin)
    : m_core(core), m_module(module), m_owner(owner), m_image(std::move(image)), m_origin(origin)
{
}

CudaModule::~CudaModule()
{
    if (m_owner == Owner::elsewhere) return;
    m_core.modules.remove(m_module);
    const CurrentContext context(m_core);
    const OutsideCapture outside(m_core);
    if (auto unloaded = m_core.driver->call("cuModuleUnload", m_core.driver->cuModuleUnload, m_module); !unloaded)
        log().warn("unload a module: {}", unloaded.error().message);
}

Result<std::unique_ptr<CudaModule>> CudaModule::load(Core& core, ByteView image, const Digest& origin)
{
    const ImageKind kind = kind_of(image);
    if (kind == ImageKind::none) {
        return fail(ErrorCode::stale,
                    "{} bytes are not a CUDA image, expected a whole cubin, fatbin or PTX text; record again",
                    image.size());
    }
    Bytes copy(image.begin(), image.end());
    if (kind == ImageKind::ptx) copy.push_back(std::byte{0}); // the driver reads PTX up to a zero byte
    CUmodule handle = nullptr;
    {
        const CurrentContext context(core);
        const OutsideCapture outside(core);
        const CUresult status = core.driver->status("cuModuleLoadData", core.driver->cuModuleLoadData, &handle,
                                                    static_cast<const void*>(copy.data()));
        if (status != CUDA_SUCCESS) return refused(core, image, status);
    }
    copy.resize(image.size());
    std::unique_ptr<CudaModule> module(new CudaModule(core, handle, Owner::here, std::move(copy), origin));
    core.modules.add(handle, module.get());
    return module;
}

std::unique_ptr<CudaModule> CudaModule::foreign(Core& core, CUmodule module, Bytes image)
{
    return std::unique_ptr<CudaModule>(new CudaModule(core, module, Owner::elsewhere, std::move(image), Digest{}));
}

Result<Bytes> CudaModule::image() { return m_image; }

Result<Bytes> CudaModule::image_of(std::span<const std::string> kernels)
{
    auto cut = cut_cubin(m_image, kernels);
    if (cut) return cut;
    log().info("the image is stored whole, {} bytes: {}", m_image.size(), cut.error().message);
    return m_image;
}

bool CudaModule::may_be_function(std::uint64_t word) const
{
    // The driver puts code above 4 GiB (an H200: 0x7f8f3b7a0a00), instructions are 16 bytes long, and addresses have at
    // most 57 bits.
    if (word % 16 != 0 || word >> 32 == 0 || word >> 57 != 0) return false;
    return traits().calls_by_address;
}

bool CudaModule::keeps_state() const { return traits().keeps_state; }

const CodeTraits& CudaModule::traits() const
{
    std::call_once(m_traits_read, [this] { m_traits = code_traits(m_image); });
    return m_traits;
}

std::string CudaModule::kernel_names() const
{
    const Driver& driver = *m_core.driver;
    unsigned count = 0;
    std::vector<CUfunction> functions;
    auto asked = driver.call("cuModuleGetFunctionCount", driver.cuModuleGetFunctionCount, &count, m_module);
    if (asked) {
        functions.resize(count);
        asked = driver.call("cuModuleEnumerateFunctions", driver.cuModuleEnumerateFunctions, functions.data(), count,
                            m_module);
    }
    if (!asked) return fmt::format("unknown ({})", asked.error().message);
    std::vector<std::string> names;
    for (const CUfunction function : functions) {
        const char* name = nullptr;
        if (driver.status("cuFuncGetName", driver.cuFuncGetName, &name, function) == CUDA_SUCCESS && name != nullptr)
            names.emplace_back(name);
    }
    std::ranges::sort(names);
    std::string text;
    for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
    return text.empty() ? "none" : text;
}

Result<KernelInfo> CudaModule::ask(const std::string& kernel) const
{
    const CurrentContext context(m_core);
    // Asking for an attribute loads a lazily loaded kernel now: during a capture its launch could not load it.
    const OutsideCapture outside(m_core);
    const Driver& driver = *m_core.driver;
    KernelInfo info;
    const CUresult found =
        driver.status("cuModuleGetFunction", driver.cuModuleGetFunction, &info.function, m_module, kernel.c_str());
    if (found == CUDA_ERROR_NOT_FOUND) {
        return fail(ErrorCode::not_found,
                    "no kernel '{}' in the module; its kernels: {} (a kernel is found by its plain "
                    "name only if it is declared extern \"C\")",
                    kernel, kernel_names());
    }
    if (found != CUDA_SUCCESS)
        return within(fmt::format("kernel '{}'", kernel), driver.error("cuModuleGetFunction", found));
    const auto attribute = [&](CUfunction_attribute what, std::uint32_t& value) -> Result<void> {
        int number = 0;
        auto read = driver.call("cuFuncGetAttribute", driver.cuFuncGetAttribute, &number, what, info.function);
        value = static_cast<std::uint32_t>(number);
        return read;
    };
    if (auto read = attribute(CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, info.max_block); !read)
        return within(fmt::format("kernel '{}'", kernel), read.error());
    if (auto read = attribute(CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, info.static_shared); !read)
        return within(fmt::format("kernel '{}'", kernel), read.error());
    for (std::size_t index = 0;; ++index) {
        KernelInfo::Param param;
        const CUresult asked = driver.status("cuFuncGetParamInfo", driver.cuFuncGetParamInfo, info.function, index,
                                             &param.offset, &param.size);
        if (asked == CUDA_ERROR_INVALID_VALUE) return info; // there are no more parameters
        if (asked != CUDA_SUCCESS)
            return within(fmt::format("kernel '{}', parameter {}", kernel, index),
                          driver.error("cuFuncGetParamInfo", asked));
        info.params.push_back(param);
    }
}

Result<const KernelInfo*> CudaModule::info(const std::string& kernel)
{
    const std::scoped_lock lock(m_mutex);
    if (const auto found = m_kernels.find(kernel); found != m_kernels.end()) return &found->second;
    auto asked = ask(kernel);
    if (!asked) return std::unexpected(asked.error());
    return &m_kernels.emplace(kernel, std::move(*asked)).first->second;
}

Result<std::uint32_t> CudaModule::param_count(const std::string& kernel)
{
    const auto found = info(kernel);
    if (!found) return std::unexpected(found.error());
    return static_cast<std::uint32_t>((*found)->params.size());
}

} // namespace warmgraph::backends::cuda
