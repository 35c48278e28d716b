// NVRTC for programs of the fake driver (source.hpp). One library is both the fake driver and NVRTC.
#include <charconv>
#include <cstring>
#include <memory>
#include <string>

#include <nvrtc.h>

#include "driver_state.hpp"
#include "faults.hpp"
#include "source.hpp"

struct _nvrtcProgram {
    std::string source, log;
    std::vector<std::byte> image;
};

namespace fake_cuda {
namespace {

Handles<_nvrtcProgram>& programs()
{
    static Handles<_nvrtcProgram> all;
    return all;
}

/// The architecture that an option names ("--gpu-architecture=sm_90" or "-arch=sm_90a"). If no option names one, this
/// is the architecture of the device.
int architecture_of(int count, const char* const* options)
{
    int architecture = k_architecture;
    for (int i = 0; i < count; ++i) {
        const std::string_view option = options[i];
        const std::size_t at = option.find("sm_");
        if (at != option.npos) std::from_chars(option.data() + at + 3, option.data() + option.size(), architecture);
    }
    return architecture;
}

} // namespace
} // namespace fake_cuda

using namespace fake_cuda;

#define FAKE_NVRTC_ENTER(name)                                                                                         \
    if (const auto injected = enter(name))                                                                             \
        return *injected == CUDA_ERROR_OUT_OF_MEMORY ? NVRTC_ERROR_OUT_OF_MEMORY : NVRTC_ERROR_INTERNAL_ERROR;         \
    const std::scoped_lock lock(driver_mutex())
#define FAKE_NVRTC_ENTER_WITH(program, name)                                                                           \
    FAKE_NVRTC_ENTER(name);                                                                                            \
    if (!programs().has(program)) return NVRTC_ERROR_INVALID_PROGRAM

FAKE_CUDA_EXPORT nvrtcResult nvrtcVersion(int* major, int* minor)
{
    FAKE_NVRTC_ENTER("nvrtcVersion");
    *major = CUDA_VERSION / 1000;
    *minor = CUDA_VERSION % 1000 / 10;
    return NVRTC_SUCCESS;
}

FAKE_CUDA_EXPORT const char* nvrtcGetErrorString(nvrtcResult result)
{
    switch (result) {
    case NVRTC_SUCCESS: return "NVRTC_SUCCESS";
    case NVRTC_ERROR_OUT_OF_MEMORY: return "NVRTC_ERROR_OUT_OF_MEMORY";
    case NVRTC_ERROR_COMPILATION: return "NVRTC_ERROR_COMPILATION";
    default: return "NVRTC_ERROR_OF_THE_FAKE";
    }
}

FAKE_CUDA_EXPORT nvrtcResult nvrtcCreateProgram(nvrtcProgram* program, const char* source, const char*, int,
                                                const char* const*, const char* const*)
{
    FAKE_NVRTC_ENTER("nvrtcCreateProgram");
    *program = programs().add(std::make_unique<_nvrtcProgram>(_nvrtcProgram{source, "", {}}));
    return NVRTC_SUCCESS;
}

FAKE_CUDA_EXPORT nvrtcResult nvrtcDestroyProgram(nvrtcProgram* program)
{
    const auto injected = enter("nvrtcDestroyProgram");
    const std::scoped_lock lock(driver_mutex());
    if (!programs().erase(*program)) return NVRTC_ERROR_INVALID_PROGRAM;
    *program = nullptr;
    return injected ? NVRTC_ERROR_INTERNAL_ERROR : NVRTC_SUCCESS;
}

FAKE_CUDA_EXPORT nvrtcResult nvrtcCompileProgram(nvrtcProgram program, int count, const char* const* options)
{
    FAKE_NVRTC_ENTER_WITH(program, "nvrtcCompileProgram");
    const CompiledSource compiled = compile_source(program->source, architecture_of(count, options));
    program->log = compiled.log;
    if (!compiled.log.empty()) return NVRTC_ERROR_COMPILATION;
    program->image = write_image(compiled.image);
    return NVRTC_SUCCESS;
}

FAKE_CUDA_EXPORT nvrtcResult nvrtcGetProgramLogSize(nvrtcProgram program, std::size_t* size)
{
    FAKE_NVRTC_ENTER_WITH(program, "nvrtcGetProgramLogSize");
    *size = program->log.size() + 1;
    return NVRTC_SUCCESS;
}

FAKE_CUDA_EXPORT nvrtcResult nvrtcGetProgramLog(nvrtcProgram program, char* log)
{
    FAKE_NVRTC_ENTER_WITH(program, "nvrtcGetProgramLog");
    std::memcpy(log, program->log.c_str(), program->log.size() + 1);
    return NVRTC_SUCCESS;
}

FAKE_CUDA_EXPORT nvrtcResult nvrtcGetCUBINSize(nvrtcProgram program, std::size_t* size)
{
    FAKE_NVRTC_ENTER_WITH(program, "nvrtcGetCUBINSize");
    *size = program->image.size();
    return NVRTC_SUCCESS;
}

FAKE_CUDA_EXPORT nvrtcResult nvrtcGetCUBIN(nvrtcProgram program, char* image)
{
    FAKE_NVRTC_ENTER_WITH(program, "nvrtcGetCUBIN");
    std::memcpy(image, program->image.data(), program->image.size());
    return NVRTC_SUCCESS;
}
