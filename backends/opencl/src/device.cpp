#include "device.hpp"

#include "facts.hpp"
#include "graph_builder.hpp"
#include "replay_choice.hpp"
#include "stream.hpp"

namespace warmgraph::backends::opencl {
namespace {

bool is_pocl(cl_platform_id platform)
{
    return query_text("clGetPlatformInfo", driver().clGetPlatformInfo, platform, cl_platform_info{CL_PLATFORM_NAME}) ==
           "Portable Computing Language";
}

template <class T>
Result<T> ask(cl_device_id device, cl_device_info what)
{
    return query<T>("clGetDeviceInfo", driver().clGetDeviceInfo, device, what);
}

} // namespace

Result<std::shared_ptr<Device>> OpenclDevice::open(const FoundDevice& found)
{
    std::shared_ptr<OpenclDevice> device(new OpenclDevice(found));
    device->m_is_pocl = is_pocl(found.platform);
    const CommandBufferSupport support = find_command_buffers(found.platform, found.device);
    auto replay = choose_replay(support, device->m_is_pocl);
    if (!replay) return std::unexpected(replay.error());
    auto context = create<Context>("clCreateContext", driver().clCreateContext, nullptr, cl_uint{1}, &found.device,
                                   nullptr, nullptr);
    if (!context) return within(fmt::format("open {}", found.info.id), context.error());
    const auto alignment_bits = ask<cl_uint>(found.device, CL_DEVICE_MEM_BASE_ADDR_ALIGN);
    if (!alignment_bits) return std::unexpected(alignment_bits.error());
    device->m_limits.memory_alignment = std::max(*alignment_bits / 8, 1U);
    device->m_core = std::make_unique<Core>(found.device, std::move(*context), device->m_limits.memory_alignment);
    device->m_core->command_buffers = support.api;
    device->m_core->replay = std::move(*replay);
    if (auto read = device->read_limits(); !read) return within(fmt::format("open {}", found.info.id), read.error());
    auto queue = device->m_core->create_queue();
    if (!queue) return std::unexpected(queue.error());
    device->m_transfers = std::move(*queue);
    device->m_identity = compiler_identity(found.platform, found.device);
    return device;
}

Result<void> OpenclDevice::read_limits()
{
    const cl_device_id device = m_found.device;
    const auto group = ask<std::size_t>(device, CL_DEVICE_MAX_WORK_GROUP_SIZE);
    if (!group) return std::unexpected(group.error());
    const auto local = ask<cl_ulong>(device, CL_DEVICE_LOCAL_MEM_SIZE);
    if (!local) return std::unexpected(local.error());
    const auto memory = ask<cl_ulong>(device, CL_DEVICE_GLOBAL_MEM_SIZE);
    if (!memory) return std::unexpected(memory.error());
    const auto items = query_list<std::size_t>("clGetDeviceInfo", driver().clGetDeviceInfo, device,
                                               cl_device_info{CL_DEVICE_MAX_WORK_ITEM_SIZES});
    if (!items) return std::unexpected(items.error());
    m_limits.max_block = *group;
    m_limits.local_memory = *local;
    m_limits.memory = *memory;
    m_core->limits = {*group, {1, 1, 1}, *local};
    std::copy_n(items->begin(), std::min<std::size_t>(items->size(), 3), m_core->limits.max_items.begin());
    return {};
}

std::vector<cachefmt::Fact> OpenclDevice::facts() const { return device_facts(m_found.platform, m_found.device); }

Target OpenclDevice::target() const { return {m_core->context.get(), m_found.device, m_identity, m_is_pocl}; }

Result<void> OpenclDevice::upload(const Address& to, ByteView bytes)
{
    const auto object = m_core->memory.object("upload", to, bytes.size());
    if (!object) return std::unexpected(object.error());
    if (bytes.empty()) return {};
    return call("clEnqueueWriteBuffer", driver().clEnqueueWriteBuffer, m_transfers.get(), *object, cl_bool{CL_TRUE},
                to.offset, bytes.size(), static_cast<const void*>(bytes.data()), cl_uint{0}, nullptr, nullptr);
}

Result<void> OpenclDevice::download(std::span<std::byte> to, const Address& from)
{
    const auto object = m_core->memory.object("download", from, to.size());
    if (!object) return std::unexpected(object.error());
    if (to.empty()) return {};
    return call("clEnqueueReadBuffer", driver().clEnqueueReadBuffer, m_transfers.get(), *object, cl_bool{CL_TRUE},
                from.offset, to.size(), static_cast<void*>(to.data()), cl_uint{0}, nullptr, nullptr);
}

Result<std::unique_ptr<Module>> OpenclDevice::compile(std::string_view source, std::string_view options)
{
    return OpenclModule::compile(target(), source, options);
}

Result<CompilerIdentity> OpenclDevice::identity(std::string_view)
{
    return compiled_by(m_found.platform, m_found.device);
}

std::optional<CompiledImage> OpenclDevice::compiled(Module& module)
{
    return static_cast<OpenclModule&>(module).compiled(); // the caller promises a module of this device
}

Result<std::unique_ptr<Module>> OpenclDevice::load_compiled(std::string_view source, std::string_view options,
                                                            const CompiledImage& compiled, Recompile again)
{
    return OpenclModule::load_compiled(target(), source, options, compiled, again);
}

Result<std::unique_ptr<Module>> OpenclDevice::load(ByteView image) { return OpenclModule::load(target(), image); }

Result<std::unique_ptr<Stream>> OpenclDevice::create_stream()
{
    auto queue = m_core->create_queue();
    if (!queue) return std::unexpected(queue.error());
    return std::make_unique<OpenclStream>(*m_core, std::move(*queue));
}

Result<std::unique_ptr<GraphBuilder>> OpenclDevice::graph_builder(std::size_t nodes)
{
    return std::make_unique<OpenclGraphBuilder>(*m_core, nodes);
}

} // namespace warmgraph::backends::opencl
