#include "modules.hpp"

#include <algorithm>
#include <cstring>

#include "cupti.hpp"
#include "memory.hpp"

namespace fake_cuda {
namespace {

Handles<CUmod_st>& modules()
{
    static Handles<CUmod_st> all;
    return all;
}

std::unique_ptr<CUfunc_st> make_function(CUmodule module, const Image::Entry& entry)
{
    auto function = std::make_unique<CUfunc_st>();
    function->module = module;
    function->name = entry.name;
    function->kernel = find_kernel(entry.name);
    std::size_t at = 0;
    for (const ArgumentKind kind : entry.arguments) {
        if (kind == ArgumentKind::local) continue;
        const std::size_t size = kind == ArgumentKind::memory ? sizeof(CUdeviceptr) : sizeof(std::int32_t);
        at = (at + size - 1) / size * size;
        function->arguments.push_back({kind, at, size});
        at += size;
    }
    function->attributes = {{CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, static_cast<int>(k_max_block)},
                            {CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, 0},
                            {CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, k_default_shared},
                            {CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, -1}};
    return function;
}

void release_variables(const CUmod_st& module)
{
    for (const auto& [name, range] : module.variables) memory().free(range.start, MemoryKind::inner);
}

} // namespace

long live_modules() { return modules().size(); }

bool is_function(CUfunction function)
{
    return std::ranges::any_of(modules().objects(), [&](const auto& module) {
        return std::ranges::any_of(module.second->functions,
                                   [&](const auto& item) { return item.second.get() == function; });
    });
}

} // namespace fake_cuda

using namespace fake_cuda;

CUresult cuModuleLoadData(CUmodule* loaded, const void* data)
{
    FAKE_CUDA_CHECK(require_context());
    if (auto bulk = make_bulk_module(data)) {
        *loaded = modules().add(std::move(bulk));
        announce_module(loaded, data);
        return CUDA_SUCCESS;
    }
    const auto image = read_image(data);
    if (!image) return CUDA_ERROR_INVALID_IMAGE;
    if (image->architecture != device_architecture()) return CUDA_ERROR_NO_BINARY_FOR_GPU;
    auto module = std::make_unique<CUmod_st>();
    const auto* const bytes = static_cast<const std::byte*>(data);
    module->image.assign(bytes, bytes + size_of_image(data));
    for (const auto& entry : image->kernels) {
        if (find_kernel(entry.name) == nullptr) return CUDA_ERROR_INVALID_IMAGE;
        module->functions.emplace(entry.name, make_function(module.get(), entry));
    }
    for (const auto& [name, initial] : image->variables) {
        const CUdeviceptr start = memory().allocate(initial.size(), MemoryKind::inner);
        if (start == 0) {
            release_variables(*module);
            return CUDA_ERROR_OUT_OF_MEMORY;
        }
        module->variables.emplace(name, CUmod_st::Range{start, initial.size()});
        std::memcpy(pointer_to<void>(start), initial.data(), initial.size());
    }
    *loaded = modules().add(std::move(module));
    announce_module(loaded, data);
    return CUDA_SUCCESS;
}

CUresult cuModuleUnload(CUmodule module)
{
    FAKE_CUDA_CHECK(require_context());
    if (!modules().has(module)) return CUDA_ERROR_INVALID_HANDLE;
    release_variables(*module);
    modules().erase(module);
    return CUDA_SUCCESS;
}

CUresult cuModuleGetFunction(CUfunction* function, CUmodule module, const char* name)
{
    FAKE_CUDA_CHECK(require_context());
    if (!modules().has(module)) return CUDA_ERROR_INVALID_HANDLE;
    const auto found = module->functions.find(name);
    if (found == module->functions.end()) return CUDA_ERROR_NOT_FOUND;
    *function = found->second.get();
    return CUDA_SUCCESS;
}

CUresult cuModuleGetFunctionCount(unsigned int* count, CUmodule module)
{
    if (!modules().has(module)) return CUDA_ERROR_INVALID_HANDLE;
    *count = static_cast<unsigned>(module->functions.size());
    return CUDA_SUCCESS;
}

CUresult cuModuleEnumerateFunctions(CUfunction* functions, unsigned int count, CUmodule module)
{
    if (!modules().has(module)) return CUDA_ERROR_INVALID_HANDLE;
    unsigned int at = 0;
    for (const auto& [name, function] : module->functions) {
        if (at == count) break;
        functions[at++] = function.get();
    }
    return CUDA_SUCCESS;
}

CUresult cuModuleGetGlobal(CUdeviceptr* address, std::size_t* size, CUmodule module, const char* name)
{
    FAKE_CUDA_CHECK(require_context());
    if (!modules().has(module)) return CUDA_ERROR_INVALID_HANDLE;
    const auto found = module->variables.find(name);
    if (found == module->variables.end()) return CUDA_ERROR_NOT_FOUND;
    if (address != nullptr) *address = found->second.start;
    if (size != nullptr) *size = found->second.size;
    return CUDA_SUCCESS;
}

CUresult cuFuncGetAttribute(int* value, CUfunction_attribute attribute, CUfunction function)
{
    if (!is_function(function)) return CUDA_ERROR_INVALID_HANDLE;
    const auto found = function->attributes.find(attribute);
    *value = found == function->attributes.end() ? 0 : found->second;
    return attribute < CU_FUNC_ATTRIBUTE_MAX ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuFuncSetAttribute(CUfunction function, CUfunction_attribute attribute, int value)
{
    if (!is_function(function)) return CUDA_ERROR_INVALID_HANDLE;
    if (attribute < CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES || attribute >= CU_FUNC_ATTRIBUTE_MAX)
        return CUDA_ERROR_INVALID_VALUE; // all other attributes are read-only
    if (attribute == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES && (value < 0 || value > k_largest_shared))
        return CUDA_ERROR_INVALID_VALUE;
    function->attributes[attribute] = value;
    return CUDA_SUCCESS;
}

CUresult cuFuncGetModule(CUmodule* module, CUfunction function)
{
    if (!is_function(function)) return CUDA_ERROR_INVALID_HANDLE;
    *module = function->module;
    return CUDA_SUCCESS;
}

CUresult cuFuncGetName(const char** name, CUfunction function)
{
    if (!is_function(function)) return CUDA_ERROR_INVALID_HANDLE;
    *name = function->name.c_str();
    return CUDA_SUCCESS;
}

CUresult cuFuncGetParamInfo(CUfunction function, std::size_t index, std::size_t* offset, std::size_t* size)
{
    if (!is_function(function)) return CUDA_ERROR_INVALID_HANDLE;
    if (index >= function->arguments.size()) return CUDA_ERROR_INVALID_VALUE;
    *offset = function->arguments[index].offset;
    if (size != nullptr) *size = function->arguments[index].size;
    return CUDA_SUCCESS;
}

// There are no libraries in the fake driver, so a CUkernel is never valid.
CUresult cuKernelGetFunction(CUfunction*, CUkernel) { return CUDA_ERROR_INVALID_HANDLE; }
CUresult cuLibraryGetModule(CUmodule*, CUlibrary) { return CUDA_ERROR_INVALID_HANDLE; }
CUresult cuKernelGetLibrary(CUlibrary*, CUkernel) { return CUDA_ERROR_INVALID_HANDLE; }
