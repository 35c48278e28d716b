#include "device/facts.hpp"

#include <algorithm>
#include <array>
#include <fstream>
#include <sstream>

#include "warmgraph/backends/compiler_variables.hpp"

namespace warmgraph::backends::cuda {
namespace {

using cachefmt::Fact;
using cachefmt::Role;

/// True for digits and dots, at least one of each, with a digit first and last.
bool is_version(std::string_view text)
{
    const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
    return text.size() >= 3 && is_digit(text.front()) && is_digit(text.back()) &&
           text.find('.') != std::string_view::npos &&
           std::ranges::all_of(text, [&](char c) { return is_digit(c) || c == '.'; });
}

std::string first_line(const char* path)
{
    std::ifstream file(path);
    std::string line;
    std::getline(file, line);
    return line;
}

/// The version of the user-mode driver, from the file behind libcuda.so.1, which works in containers too. If unknown,
/// the kernel module's version, else the interface's version, which is less exact.
std::string driver_version(const Driver& driver)
{
    if (auto version = version_in_library_name(driver.path); !version.empty()) return version;
    if (auto version = first_line("/sys/module/nvidia/version"); is_version(version)) return version;
    if (auto version = version_in_kernel_module_text(first_line("/proc/driver/nvidia/version")); !version.empty())
        return version;
    return "CUDA " + version_text(driver.version);
}

std::string attribute(const Core& core, CUdevice_attribute what)
{
    int value = 0;
    auto asked =
        core.driver->call("cuDeviceGetAttribute", core.driver->cuDeviceGetAttribute, &value, what, core.device);
    return asked ? std::to_string(value) : cachefmt::k_unknown;
}

} // namespace

std::string version_text(int version) { return fmt::format("{}.{}", version / 1000, version % 1000 / 10); }

std::string version_in_library_name(std::string_view path)
{
    constexpr std::string_view k_mark = ".so.";
    const auto at = path.rfind(k_mark);
    if (at == std::string_view::npos) return {};
    const std::string_view version = path.substr(at + k_mark.size());
    return is_version(version) ? std::string(version) : std::string{};
}

std::string version_in_kernel_module_text(std::string_view text)
{
    std::istringstream words{std::string(text)};
    for (std::string word; words >> word;)
        if (is_version(word)) return word;
    return {};
}

std::string partition_in_name(std::string_view device_name)
{
    const auto at = device_name.find(" MIG ");
    return at == std::string_view::npos ? "none" : std::string(device_name.substr(at + 1));
}

Result<std::string> device_name(const Driver& driver, CUdevice device)
{
    std::array<char, 256> name{};
    auto asked =
        driver.call("cuDeviceGetName", driver.cuDeviceGetName, name.data(), static_cast<int>(name.size()) - 1, device);
    if (!asked) return std::unexpected(asked.error());
    return std::string(name.data());
}

std::vector<Fact> device_facts(const Core& core)
{
    const auto name = device_name(*core.driver, core.device);
    std::vector<Fact> facts{
        {"backend", "cuda", Role::must_match},
        {"device.architecture", fmt::format("sm_{}{}", core.compute_major, core.compute_minor), Role::must_match},
        {"device.local_memory", attribute(core, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN),
         Role::must_match},
        {"device.malloc_heap", std::to_string(core.malloc_heap), Role::must_match},
        {"device.max_group", attribute(core, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK), Role::must_match},
        {"device.memory", fmt::format("{} GiB", core.limits.memory >> 30), Role::advisory},
        {"device.name", name ? *name : cachefmt::k_unknown, Role::advisory},
        {"device.partition", name ? partition_in_name(*name) : cachefmt::k_unknown, Role::must_match},
        {"device.units", attribute(core, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT), Role::must_match},
        {"driver.version", driver_version(*core.driver), Role::must_match},
        {"runtime.version", version_text(core.driver->version), Role::must_match},
    };
    add_compiler_variables(facts, k_flag_variables); // PyTorch's NVRTC reads them too
    return facts;
}

} // namespace warmgraph::backends::cuda
