#include "facts.hpp"

#include <array>
#include <iterator>
#include <sstream>

#include "warmgraph/backends/compiler_variables.hpp"
#include "warmgraph/base/process.hpp"
#include "warmgraph/base/sha256.hpp"

namespace warmgraph::backends::opencl {
namespace {

using cachefmt::Fact;
using cachefmt::Role;

std::string text_of(const Result<std::string>& found) { return found ? *found : cachefmt::k_unknown; }

std::string device_text(cl_device_id device, cl_device_info what)
{
    return text_of(query_text("clGetDeviceInfo", driver().clGetDeviceInfo, device, what));
}

template <class T>
std::string device_number(cl_device_id device, cl_device_info what)
{
    const auto found = query<T>("clGetDeviceInfo", driver().clGetDeviceInfo, device, what);
    return found ? fmt::format("{}", *found) : cachefmt::k_unknown;
}

/// Returns PoCL's target CPU, from "OpenCL 3.0 PoCL HSTR: pthread-x86_64-pc-linux-gnu-skylake-avx512"; for other
/// drivers the device's name.
std::string architecture(cl_device_id device)
{
    const std::string version = device_text(device, CL_DEVICE_VERSION);
    constexpr std::string_view k_pocl_target = "HSTR: ";
    if (const auto at = version.find(k_pocl_target); at != std::string::npos)
        return version.substr(at + k_pocl_target.size());
    const std::string name = device_text(device, CL_DEVICE_NAME);
    if (version == cachefmt::k_unknown || name == cachefmt::k_unknown) return cachefmt::k_unknown;
    return fmt::format(
        "{:#x} {} {}",
        query<cl_uint>("clGetDeviceInfo", driver().clGetDeviceInfo, device, cl_device_info{CL_DEVICE_VENDOR_ID})
            .value_or(0),
        name, version);
}

std::string partition(cl_device_id device)
{
    const auto parent = query<cl_device_id>("clGetDeviceInfo", driver().clGetDeviceInfo, device,
                                            cl_device_info{CL_DEVICE_PARENT_DEVICE});
    if (!parent) return cachefmt::k_unknown;
    if (*parent == nullptr) return "none";
    const auto how = query_list<cl_device_partition_property>("clGetDeviceInfo", driver().clGetDeviceInfo, device,
                                                              cl_device_info{CL_DEVICE_PARTITION_TYPE});
    if (!how) return cachefmt::k_unknown;
    std::string text = "sub-device";
    for (const auto property : *how) text += fmt::format(" {:#x}", property);
    return text;
}

/// The digest of the sorted list, because drivers list extensions in any order.
std::string extensions_digest(cl_device_id device)
{
    const auto all =
        query_text("clGetDeviceInfo", driver().clGetDeviceInfo, device, cl_device_info{CL_DEVICE_EXTENSIONS});
    if (!all) return cachefmt::k_unknown;
    std::istringstream words(*all);
    std::vector<std::string> list{std::istream_iterator<std::string>(words), {}};
    std::ranges::sort(list);
    Sha256 hash;
    for (const std::string& name : list) hash.update_field(name);
    return short_hex(hash.finish());
}

/// Environment variables that change the code that PoCL generates.
constexpr std::array k_compiler_variables{
    "POCL_WORK_GROUP_METHOD",        "POCL_WORK_GROUP_SPECIALIZATION",  "POCL_LLVM_CPU_NAME",
    "POCL_WILOOPS_MAX_UNROLL_COUNT", "POCL_FULL_REPLICATION_THRESHOLD", "POCL_FORCE_PARALLEL_OUTER_LOOP",
    "POCL_BINARY_SPECIALIZE_WG",     "POCL_MAX_WORK_GROUP_SIZE",        "POCL_KERNELLIB_NAME"};
constexpr const char* k_build_flags = "POCL_EXTRA_BUILD_FLAGS";

} // namespace

std::vector<Fact> device_facts(cl_platform_id platform, cl_device_id device)
{
    std::vector<Fact> facts{
        {"backend", "opencl", Role::must_match},
        {"device.address_bits", device_number<cl_uint>(device, CL_DEVICE_ADDRESS_BITS), Role::must_match},
        {"device.architecture", architecture(device), Role::must_match},
        {"device.extensions", extensions_digest(device), Role::must_match},
        {"device.local_memory", device_number<cl_ulong>(device, CL_DEVICE_LOCAL_MEM_SIZE), Role::must_match},
        {"device.max_group", device_number<std::size_t>(device, CL_DEVICE_MAX_WORK_GROUP_SIZE), Role::must_match},
        {"device.memory_alignment", device_number<cl_uint>(device, CL_DEVICE_MEM_BASE_ADDR_ALIGN), Role::must_match},
        {"device.name", device_text(device, CL_DEVICE_NAME), Role::advisory},
        {"device.partition", partition(device), Role::must_match},
        {"device.units", device_number<cl_uint>(device, CL_DEVICE_MAX_COMPUTE_UNITS), Role::must_match},
        {"driver.version", device_text(device, CL_DRIVER_VERSION), Role::must_match},
        {"runtime.version",
         text_of(query_text("clGetPlatformInfo", driver().clGetPlatformInfo, platform,
                            cl_platform_info{CL_PLATFORM_VERSION})),
         Role::must_match},
    };
    add_compiler_variables(facts, k_compiler_variables);
    add_compiler_variables(facts, std::array{k_build_flags});
    return facts;
}

std::string compiler_identity(cl_platform_id platform, cl_device_id device)
{
    return fmt::format("{}|{}|{}", architecture(device), device_text(device, CL_DRIVER_VERSION),
                       text_of(query_text("clGetPlatformInfo", driver().clGetPlatformInfo, platform,
                                          cl_platform_info{CL_PLATFORM_VERSION})));
}

Result<CompilerIdentity> compiled_by(cl_platform_id platform, cl_device_id device)
{
    if (environment(k_build_flags))
        return fail(ErrorCode::unsupported, "{} is set, which may name files that only the compiler reads",
                    k_build_flags);
    const std::string driver = device_text(device, CL_DRIVER_VERSION);
    const std::string version = text_of(query_text("clGetPlatformInfo", opencl::driver().clGetPlatformInfo, platform,
                                                   cl_platform_info{CL_PLATFORM_VERSION}));
    const std::string target = architecture(device);
    for (const std::string& each : {driver, version, target})
        if (each == cachefmt::k_unknown)
            return fail(ErrorCode::unsupported, "the OpenCL driver does not report its version or its device");
    std::string compiler = fmt::format("{}, driver {}", version, driver);
    for (const char* variable : k_compiler_variables)
        if (const auto value = environment(variable)) compiler += fmt::format(", {}={}", variable, *value);
    return CompilerIdentity{std::move(compiler), target};
}

} // namespace warmgraph::backends::opencl
