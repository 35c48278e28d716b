#include "code/cupti.hpp"

#include <array>
#include <cstdlib>
#include <filesystem>
#include <string_view>
#include <vector>

#include <dlfcn.h>
#include <link.h>

namespace warmgraph::backends::cuda {

namespace {

constexpr std::array k_names = {"libcupti.so.13", "libcupti.so.12", "libcupti.so"};

// Folders of the CUDA libraries that this process uses: pip packages put CUPTI beside them or two folders away.
std::vector<std::filesystem::path> cuda_folders()
{
    std::vector<std::filesystem::path> folders;
    const auto look = [](dl_phdr_info* info, std::size_t, void* list) {
        const std::filesystem::path path = info->dlpi_name != nullptr ? info->dlpi_name : "";
        const std::string name = path.filename().string();
        for (const std::string_view prefix : {"libcudart.so", "libnvrtc.so", "libcublas.so", "libcublasLt.so"})
            if (name.starts_with(prefix))
                static_cast<std::vector<std::filesystem::path>*>(list)->push_back(path.parent_path());
        return 0;
    };
    ::dl_iterate_phdr(look, &folders);
    return folders;
}

std::vector<std::string> usual_places()
{
    std::vector<std::string> places(k_names.begin(), k_names.end());
    std::vector<std::filesystem::path> folders;
    for (const auto& folder : cuda_folders()) {
        folders.push_back(folder);
        folders.push_back(folder / "../../cupti/lib");
    }
    for (const char* folder : {"/usr/local/cuda/extras/CUPTI/lib64", "/usr/local/cuda/lib64"})
        folders.emplace_back(folder);
    for (const auto& folder : folders)
        for (const char* name : k_names) places.push_back((folder / name).string());
    return places;
}

void* open_library(const std::string& chosen)
{
    if (!chosen.empty()) return ::dlopen(chosen.c_str(), RTLD_NOW | RTLD_LOCAL);
    for (const char* name : k_names)
        if (void* const loaded = ::dlopen(name, RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD)) return loaded;
    for (const std::string& place : usual_places())
        if (void* const loaded = ::dlopen(place.c_str(), RTLD_NOW | RTLD_LOCAL)) return loaded;
    return nullptr;
}

constexpr const char* k_cure = "install it (pip install nvidia-cuda-cupti) or name the library in WARMGRAPH_CUPTI; "
                               "replay works without it";

} // namespace

Result<std::shared_ptr<const Cupti>> Cupti::load(const std::string& library)
{
    const char* const named = std::getenv("WARMGRAPH_CUPTI");
    const std::string chosen = !library.empty() ? library : named != nullptr ? named : "";
    void* const handle = open_library(chosen);
    if (handle == nullptr) {
        const char* const why = ::dlerror();
        return fail(ErrorCode::not_recordable,
                    "recording on CUDA needs CUPTI to keep a copy of device code, but {}: {}",
                    why != nullptr ? why : "it was not found", k_cure);
    }
    auto cupti = std::make_shared<Cupti>();
    const char* missing = nullptr;
    const auto resolve = [&](const char* name, auto& target) {
        target = reinterpret_cast<std::remove_reference_t<decltype(target)>>(::dlsym(handle, name));
        if (target == nullptr) missing = name;
    };
#define WARMGRAPH_CUPTI_RESOLVE(name) resolve(#name, cupti->name);
    WARMGRAPH_CUPTI_FUNCTIONS(WARMGRAPH_CUPTI_RESOLVE)
#undef WARMGRAPH_CUPTI_RESOLVE
    if (missing != nullptr)
        return fail(ErrorCode::not_recordable, "the CUPTI library {} has no {}: {}", chosen, missing, k_cure);
    return cupti;
}

Error Cupti::error(const char* function, CUptiResult status) const
{
    const char* text = nullptr;
    if (cuptiGetResultString(status, &text) != CUPTI_SUCCESS) text = nullptr;
    std::string message = fmt::format("{} failed: {}", function, text != nullptr ? text : std::to_string(status));
    switch (status) {
    case CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED:
    case CUPTI_ERROR_MAX_LIMIT_REACHED:
    case CUPTI_ERROR_HARDWARE_BUSY:
        message += "; another CUPTI subscriber (a profiler) is attached: detach it to record; replay works without it";
        break;
    default: message += "; recording needs it to keep a copy of device code; replay works without it";
    }
    return {ErrorCode::not_recordable, std::move(message)};
}

} // namespace warmgraph::backends::cuda
