#include "module.hpp"

#include <cstdlib>

#include "live_queues.hpp"
#include "warmgraph/base/log.hpp"
#include "warmgraph/base/process.hpp"

namespace warmgraph::backends::opencl {
namespace {

std::string build_log(cl_program program, cl_device_id device)
{
    return query_text("clGetProgramBuildInfo", driver().clGetProgramBuildInfo, program, device,
                      cl_program_build_info{CL_PROGRAM_BUILD_LOG})
        .value_or("(the driver gives no log)");
}

Result<Program> build_source(const Target& target, const std::string& source, const std::string& options)
{
    const char* text = source.data();
    const std::size_t size = source.size();
    auto program = create<Program>("clCreateProgramWithSource", driver().clCreateProgramWithSource, target.context,
                                   cl_uint{1}, &text, &size);
    if (!program) return program;
    const auto built = call("clBuildProgram", driver().clBuildProgram, program->get(), cl_uint{1}, &target.device,
                            options.c_str(), nullptr, nullptr);
    const std::string log_text = build_log(program->get(), target.device);
    if (!built) {
        return fail(ErrorCode::compile_failed, "kernel source does not compile: {}; the compiler's log:\n{}",
                    built.error().message, log_text);
    }
    if (!log_text.empty()) log().debug("the OpenCL compiler's log: {}", log_text);
    return program;
}

Result<Bytes> binary_of(cl_program program)
{
    const auto sizes = query_list<std::size_t>("clGetProgramInfo", driver().clGetProgramInfo, program,
                                               cl_program_info{CL_PROGRAM_BINARY_SIZES});
    if (!sizes) return std::unexpected(sizes.error());
    if (sizes->size() != 1 || sizes->front() == 0)
        return fail(ErrorCode::unsupported, "the driver gives no binary of the program");
    Bytes bytes(sizes->front());
    std::byte* data = bytes.data();
    auto taken = call("clGetProgramInfo", driver().clGetProgramInfo, program, cl_program_info{CL_PROGRAM_BINARIES},
                      sizeof data, &data, nullptr);
    if (!taken) return std::unexpected(taken.error());
    return bytes;
}

/// Probes the kind with null values, which set nothing: drivers accept any size for local memory, sizeof(cl_mem) for
/// memory, and no null for a value. (PoCL has no argument information for loaded binaries.)
ParamKind probe_kind(cl_kernel kernel, cl_uint index)
{
    constexpr std::size_t k_odd_size = 3;
    const auto takes_null_of = [&](std::size_t size) {
        return call("clSetKernelArg", driver().clSetKernelArg, kernel, index, size, nullptr).has_value();
    };
    if (takes_null_of(k_odd_size)) return ParamKind::local;
    return takes_null_of(sizeof(cl_mem)) ? ParamKind::memory : ParamKind::value;
}

Result<KernelInfo> ask(cl_kernel kernel, cl_device_id device)
{
    const auto count =
        query<cl_uint>("clGetKernelInfo", driver().clGetKernelInfo, kernel, cl_kernel_info{CL_KERNEL_NUM_ARGS});
    if (!count) return std::unexpected(count.error());
    KernelInfo info;
    const auto group = [&]<class T>(cl_kernel_work_group_info name, T& value) -> Result<void> {
        const auto found =
            query<T>("clGetKernelWorkGroupInfo", driver().clGetKernelWorkGroupInfo, kernel, device, name);
        if (!found) return std::unexpected(found.error());
        value = *found;
        return {};
    };
    std::size_t max_block = 0;
    cl_ulong local = 0;
    for (const auto& asked :
         {group(CL_KERNEL_WORK_GROUP_SIZE, max_block), group(CL_KERNEL_COMPILE_WORK_GROUP_SIZE, info.required_block),
          group(CL_KERNEL_LOCAL_MEM_SIZE, local)}) {
        if (!asked) return std::unexpected(asked.error());
    }
    info.max_block = max_block;
    info.own_local_memory = local;
    for (cl_uint index = 0; index < *count; ++index) info.params.push_back(probe_kind(kernel, index));
    return info;
}

} // namespace

Result<std::unique_ptr<Module>> OpenclModule::compile(const Target& target, std::string_view source,
                                                      std::string_view options)
{
    std::string text(source);
    std::string flags(options);
    auto program = build_source(target, text, flags);
    if (!program) return std::unexpected(program.error());
    std::unique_ptr<OpenclModule> module(new OpenclModule(target, std::move(*program)));
    Sha256 hash;
    hash.update_field(source).update_field(options).update_field(target.identity);
    module->m_origin = hash.finish();
    module->m_source = std::move(text);
    module->m_options = std::move(flags);
    return module;
}

Result<std::unique_ptr<Module>> OpenclModule::load(const Target& target, ByteView image)
{
    if (image.empty()) return fail(ErrorCode::corrupt, "an image has 0 bytes, expected a program's binary");
    const std::size_t size = image.size();
    const auto* data = reinterpret_cast<const unsigned char*>(image.data());
    auto program = create<Program>("clCreateProgramWithBinary", driver().clCreateProgramWithBinary, target.context,
                                   cl_uint{1}, &target.device, &size, &data, nullptr);
    if (!program) return within(fmt::format("load an image of {} bytes", size), program.error());
    if (auto built = call("clBuildProgram", driver().clBuildProgram, program->get(), cl_uint{1}, &target.device, "",
                          nullptr, nullptr);
        !built) {
        const Error& error = built.error();
        // A lack of memory, or of a compiler or linker, is not a fault of the image: the image may load later, or
        // elsewhere.
        const bool is_of_image = error.code == ErrorCode::compile_failed || error.code == ErrorCode::stale;
        return fail(is_of_image ? ErrorCode::stale : error.code,
                    "the driver refuses an image of {} bytes: {}; its log:\n{}", size, error.message,
                    build_log(program->get(), target.device));
    }
    std::unique_ptr<OpenclModule> module(new OpenclModule(target, std::move(*program)));
    module->m_image.emplace(image.begin(), image.end());
    module->m_is_loaded = true;
    return module;
}

namespace {

/// Returns e.g. "matmul 16x16x1 small", which identifies a work-group function as PoCL does.
std::string text_of(const std::string& kernel, const Dim3& block, std::string_view grids)
{
    return fmt::format("{} {}x{}x{} {}", kernel, block[0], block[1], block[2], grids);
}

} // namespace

Result<std::unique_ptr<Module>> OpenclModule::load_compiled(const Target& target, std::string_view source,
                                                            std::string_view options, const CompiledImage& compiled,
                                                            Recompile again)
{
    auto loaded = load(target, compiled.image);
    if (!loaded) return loaded;
    auto& module = static_cast<OpenclModule&>(**loaded);
    module.m_origin = compiled.origin;
    module.m_launched = {compiled.ready.begin(), compiled.ready.end()};
    module.m_imaged = module.m_launched.size();
    module.m_source = std::string(source);
    module.m_options = std::string(options);
    module.m_is_loaded = again == Recompile::never; // if so, image() returns the given image, whatever is launched
    return loaded;
}

std::optional<CompiledImage> OpenclModule::compiled()
{
    const std::scoped_lock lock(m_mutex);
    if (!m_image || m_origin == Digest{} || m_imaged != m_launched.size()) return std::nullopt;
    return CompiledImage{*m_image, m_origin, {m_launched.begin(), m_launched.end()}};
}

bool OpenclModule::is_image_current() const
{
    if (m_is_loaded || !m_target.is_pocl || m_imaged == m_launched.size()) return true;
    // Without PoCL's kernel cache a second build would not find the code of the first one (NOTES.md).
    return environment("POCL_KERNEL_CACHE") == "0";
}

Result<Bytes> OpenclModule::image()
{
    const std::scoped_lock lock(m_mutex);
    if (m_image && is_image_current()) return *m_image;
    // Wait for all queues: launches of other threads count too, and may still be compiling.
    if (m_target.is_pocl && !m_is_loaded) LiveQueues::instance().finish_all();
    // PoCL packs its compiled work-group functions at the first request only. For later launches, build the same source
    // again and take that program's image.
    Program again;
    if (m_image) {
        auto built = build_source(m_target, m_source, m_options);
        if (!built) return within("build again for a new image", built.error());
        again = std::move(*built);
    }
    auto bytes = binary_of(again ? again.get() : m_program.get());
    if (!bytes) return bytes;
    m_imaged = m_launched.size();
    m_image = std::move(*bytes);
    return *m_image;
}

Result<OpenclModule::ProbedKernel*> OpenclModule::known(const std::string& kernel)
{
    if (const auto found = m_kernels.find(kernel); found != m_kernels.end()) return &found->second;
    auto probe = create_kernel(kernel);
    if (!probe) return std::unexpected(probe.error());
    auto info = ask(probe->get(), m_target.device);
    if (!info) return std::unexpected(info.error());
    return &m_kernels.emplace(kernel, ProbedKernel{std::move(*info), std::move(*probe)}).first->second;
}

Result<std::uint32_t> OpenclModule::param_count(const std::string& kernel)
{
    const auto found = info(kernel);
    if (!found) return std::unexpected(found.error());
    return static_cast<std::uint32_t>((*found)->params.size());
}

Result<const KernelInfo*> OpenclModule::info(const std::string& kernel)
{
    const std::scoped_lock lock(m_mutex);
    const auto found = known(kernel);
    if (!found) return std::unexpected(found.error());
    return &(*found)->info;
}

Result<void> OpenclModule::check_value(const std::string& kernel, std::uint32_t index, ByteView value)
{
    const std::scoped_lock lock(m_mutex);
    const auto found = known(kernel);
    if (!found) return std::unexpected(found.error());
    return call("clSetKernelArg", driver().clSetKernelArg, (*found)->probe.get(), cl_uint{index}, value.size(),
                static_cast<const void*>(value.data()));
}

Result<Kernel> OpenclModule::create_kernel(const std::string& kernel)
{
    auto made = create<Kernel>("clCreateKernel", driver().clCreateKernel, m_program.get(), kernel.c_str());
    if (made || made.error().code != ErrorCode::not_found) return made;
    auto names = query_text("clGetProgramInfo", driver().clGetProgramInfo, m_program.get(),
                            cl_program_info{CL_PROGRAM_KERNEL_NAMES})
                     .value_or("unknown");
    for (auto at = names.find(';'); at != std::string::npos; at = names.find(';', at)) names.replace(at, 1, ", ");
    return fail(ErrorCode::not_found, "no kernel '{}' in the program; its kernels: {}", kernel, names);
}

void OpenclModule::note_launch(const std::string& kernel, const Dim3& grid, const Dim3& block)
{
    if (!m_target.is_pocl || m_is_loaded) return;
    // PoCL 3.1 has two functions for each local size: for grids below 2^16 groups in every dimension, and for others.
    const bool is_small = std::ranges::all_of(grid, [](std::uint32_t groups) { return groups < 0xffff; });
    const std::scoped_lock lock(m_mutex);
    m_launched.insert(text_of(kernel, block, is_small ? "small" : "large"));
}

} // namespace warmgraph::backends::opencl
