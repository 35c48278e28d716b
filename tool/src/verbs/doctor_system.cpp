// The sections for version, platform, libraries and devices.
#include <algorithm>
#include <cctype>

#include <CLI/CLI.hpp>
#include <flatbuffers/flatbuffers.h>
#include <openssl/crypto.h>
#include <spdlog/version.h>
#include <zstd.h>

#include <sys/utsname.h>

#include "doctor_report.hpp"
#include "warmgraph/backends/built.hpp"
#include "warmgraph/base/process.hpp"
#include "warmgraph/cachefmt/codec.hpp"
#include "warmgraph/cachefmt/fact_names.hpp"

namespace warmgraph::tool {

namespace {

std::string platform_text()
{
    utsname name{};
    if (::uname(&name) != 0) return "unknown";
    return fmt::format("{} {} {}", name.sysname, name.release, name.machine);
}

std::string fact_of(const backends::Device& device, std::string_view name)
{
    for (const cachefmt::Fact& fact : device.facts())
        if (fact.name == name) return fact.value == cachefmt::k_unknown ? "unknown" : fact.value;
    return "unknown";
}

void report_device(Report& report, const Context& context, backends::Backend& backend, const backends::DeviceInfo& info,
                   std::size_t index, Json& list)
{
    const auto start = context.clock.steady();
    const auto device = backend.open(std::to_string(index));
    const double open_ms = Milliseconds{context.clock.steady() - start}.count();
    auto& lines = report.section("device " + info.id);
    lines.emplace_back("name", info.name);
    lines.emplace_back("platform", info.detail);
    if (!device) {
        lines.emplace_back("open", device.error().message);
        list.push_back(
            {{"id", info.id}, {"name", info.name}, {"platform", info.detail}, {"error", device.error().message}});
        report.problems.emplace_back(fmt::format("device {} cannot be opened: {}", info.id, device.error().message),
                                     "repair or reinstall its driver");
        return;
    }
    auto facts = (*device)->facts();
    guards::canonicalize(facts);
    report.environment_keys.emplace_back(info.id, guards::environment_key(facts));
    report.machine.note_device(info.id, std::move(facts));
    const std::string driver = fact_of(**device, cachefmt::fact::k_driver_version);
    lines.emplace_back("driver", driver);
    lines.emplace_back("replay", (*device)->replay_mode());
    lines.emplace_back("opened in", time_text(open_ms));
    list.push_back({{"id", info.id},
                    {"name", info.name},
                    {"platform", info.detail},
                    {"driver", driver},
                    {"environment_key", report.environment_keys.back().second},
                    {"replay", (*device)->replay_mode()},
                    {"open_ms", open_ms}});
}

std::string lower_case(std::string text)
{
    std::ranges::transform(text, text.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    return text;
}

void report_devices_of(Report& report, const Context& context, backends::Backend& backend,
                       const std::vector<backends::DeviceInfo>& devices, Json& list)
{
    for (std::size_t index = 0; index < devices.size(); ++index)
        report_device(report, context, backend, devices[index], index, list);
}

std::shared_ptr<backends::Backend> built_backend(std::string_view name)
{
    for (auto& backend : backends::make_built_backends())
        if (backend->name() == name) return backend;
    return nullptr;
}

/// Reports CUDA's devices and libraries. Their absence is not a problem: most machines have no NVIDIA GPU.
void report_cuda(Report& report, const Context& context, Json& list)
{
    const auto backend = built_backend("cuda");
    if (!backend) {
        report.section("CUDA") = {
            {"CUDA driver", "not checked: this build has no CUDA backend; build with -DWARMGRAPH_CUDA=ON"}};
        report.document["cuda_driver"] = false;
        return;
    }
    const auto devices = backend->devices();
    std::string driver = devices ? "found" : devices.error().message;
    if (devices && devices->empty()) driver = "found, but there is no device";
    auto& lines = report.section("CUDA");
    lines = {{"CUDA driver", driver}};
    Json found{{"driver", driver}};
    for (const backends::Library& library : backend->libraries()) {
        lines.emplace_back(fmt::format("{} ({})", library.name, library.use), library.found);
        found[lower_case(library.name)] = library.found;
    }
    report.document["cuda"] = std::move(found);
    report.document["cuda_driver"] = devices.has_value();
    if (!devices) {
        if (devices.error().code != ErrorCode::not_found)
            report.problems.emplace_back(fmt::format("CUDA cannot be used: {}", driver), "repair the NVIDIA driver");
        return;
    }
    report_devices_of(report, context, *backend, *devices, list);
}

void note_pocl(Report& report, const std::vector<backends::DeviceInfo>& devices)
{
    const bool pocl = std::ranges::any_of(devices, [](const backends::DeviceInfo& info) {
        return info.detail.find("Portable Computing Language") != std::string::npos ||
               info.detail.find("PoCL") != std::string::npos || info.detail.find("pocl") != std::string::npos;
    });
    if (!pocl) return;
    const bool off = environment("POCL_KERNEL_CACHE") == "0";
    const std::string note = off ? "off (POCL_KERNEL_CACHE=0): PoCL 3.1 sometimes aborts in this state; give it an "
                                   "empty POCL_CACHE_DIR instead"
                                 : "on: PoCL has its own cache of compiled kernels; give each process an empty "
                                   "POCL_CACHE_DIR to compare cold and warm starts";
    report.document["pocl_kernel_cache"] = off ? "off" : "on";
    report.section("PoCL").emplace_back("kernel cache", note);
}

} // namespace

void report_system(Report& report)
{
    const std::vector<std::pair<std::string, std::string>> libraries{
        {"OpenSSL", OpenSSL_version(OPENSSL_VERSION)},
        {"flatbuffers",
         fmt::format("{}.{}.{}", FLATBUFFERS_VERSION_MAJOR, FLATBUFFERS_VERSION_MINOR, FLATBUFFERS_VERSION_REVISION)},
        {"spdlog", fmt::format("{}.{}.{}", SPDLOG_VER_MAJOR, SPDLOG_VER_MINOR, SPDLOG_VER_PATCH)},
        {"zstd", ZSTD_versionString()},
        {"fmt", fmt::format("{}.{}.{}", FMT_VERSION / 10000, FMT_VERSION / 100 % 100, FMT_VERSION % 100)},
        {"CLI11", CLI11_VERSION}};
    auto& lines = report.section("warmgraph");
    lines = {{"version", WARMGRAPH_VERSION},
             {"backends", std::string(backends::built_backend_names())},
             {"format", std::to_string(cachefmt::k_format_version)},
             {"platform", platform_text()}};
    lines.insert(lines.end(), libraries.begin(), libraries.end());
    Json versions = Json::object();
    for (const auto& [name, version] : libraries) versions[name] = version;
    report.document.update(Json{{"version", WARMGRAPH_VERSION},
                                {"backends", backends::built_backend_names()},
                                {"format", cachefmt::k_format_version},
                                {"platform", platform_text()},
                                {"libraries", versions}});
}

void report_devices(Report& report, const Context& context)
{
    Json list = Json::array();
    const auto backend = built_backend("opencl");
    const auto devices = backend->devices();
    const std::string cure = "install an OpenCL runtime (Debian, Ubuntu: apt install pocl-opencl-icd); see `clinfo -l`";
    if (devices) {
        report_devices_of(report, context, *backend, *devices, list);
        note_pocl(report, *devices);
    }
    report_cuda(report, context, list);
    // OpenCL is a problem only when there is no other device.
    if (list.empty() && !devices)
        report.problems.emplace_back(fmt::format("OpenCL cannot be used: {}", devices.error().message), cure);
    if (list.empty() && devices && devices->empty()) report.problems.emplace_back("there is no OpenCL device", cure);
    report.document["devices"] = list;
}

} // namespace warmgraph::tool
