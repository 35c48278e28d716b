#include "device/device.hpp"

#include "code/module.hpp"
#include "device/facts.hpp"
#include "device/stream.hpp"
#include "graph/graph_builder.hpp"
#include "warmgraph/base/log.hpp"

namespace warmgraph::backends::cuda {

namespace {

/// The compiler of a library that only replays: it refuses everything.
class NoCompiler final : public Compiler {
public:
    [[nodiscard]] Result<std::unique_ptr<Module>> compile(std::string_view source, std::string_view) override
    {
        return fail(
            ErrorCode::unsupported,
            "this library only replays, and has no compiler for {} bytes of source: compile them with libwarmgraph",
            source.size());
    }
};

} // namespace

CudaDevice::CudaDevice(const FoundDevice& found) : m_found(found), m_core(std::make_unique<Core>()) {}

Result<std::shared_ptr<Device>> CudaDevice::open(std::shared_ptr<const Driver> driver, const CudaOptions& options,
                                                 const RecordingSide* side, const FoundDevice& found)
{
    std::shared_ptr<CudaDevice> device(new CudaDevice(found));
    Core& core = *device->m_core;
    core.driver = std::move(driver);
    core.options = options;
    core.recording_side = side;
    core.device = found.device;
    if (side != nullptr) side->before_context(core.driver, options);
    if (auto read = device->read_limits(); !read) return within(fmt::format("open {}", found.info.id), read.error());
    if (auto retained = device->retain_context(); !retained)
        return within(fmt::format("open {}", found.info.id), retained.error());
    device->m_memory = std::make_unique<Memory>(core);
    device->m_staging = std::make_unique<Staging>(core);
    device->m_bulk = std::make_unique<CudaBulkMemory>(*device, core, *device->m_memory);
    if (side != nullptr) device->m_recording = side->make_recording(*device, core, *device->m_memory);
    device->m_warm_up = std::make_unique<WarmUp>(core, device->m_bulk->launcher());
    if (side != nullptr)
        device->m_compiler = side->make_compiler(core, *device->m_warm_up);
    else
        device->m_compiler = std::make_unique<NoCompiler>();
    return device;
}

CudaDevice::~CudaDevice()
{
    m_compiler.reset();
    m_warm_up.reset();
    m_recording.reset();
    m_bulk.reset();
    m_staging.reset();
    m_memory.reset();
    const Driver& driver = *m_core->driver;
    const auto warn = [&](Result<void> done) {
        if (!done) log().warn("close {}: {}", id(), done.error().message);
    };
    if (m_core->transfers != nullptr) {
        const CurrentContext context(*m_core);
        warn(driver.call("cuStreamDestroy", driver.cuStreamDestroy, m_core->transfers));
    }
    if (m_core->context != nullptr)
        warn(driver.call("cuDevicePrimaryCtxRelease", driver.cuDevicePrimaryCtxRelease, m_core->device));
}

Result<void> CudaDevice::retain_context()
{
    Core& core = *m_core;
    const Driver& driver = *core.driver;
    auto retained =
        driver.call("cuDevicePrimaryCtxRetain", driver.cuDevicePrimaryCtxRetain, &core.context, core.device);
    if (!retained) {
        core.context = nullptr;
        return retained;
    }
    const CurrentContext context(core);
    const OutsideCapture outside(core);
    constexpr unsigned k_flags = CU_STREAM_NON_BLOCKING;
    auto made = driver.call("cuStreamCreate", driver.cuStreamCreate, &core.transfers, k_flags);
    if (!made) return made;
    return driver.call("cuCtxGetLimit", driver.cuCtxGetLimit, &core.malloc_heap, CU_LIMIT_MALLOC_HEAP_SIZE);
}

Result<void> CudaDevice::read_limits()
{
    Core& core = *m_core;
    const Driver& driver = *core.driver;
    Result<void> read;
    const auto ask = [&](CUdevice_attribute what) {
        int value = 0;
        if (read) read = driver.call("cuDeviceGetAttribute", driver.cuDeviceGetAttribute, &value, what, core.device);
        return value;
    };
    core.compute_major = ask(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
    core.compute_minor = ask(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
    core.reads_host_memory = ask(CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS) != 0;
    core.limits.flat_addresses = true;
    core.limits.keeps_running_execs = true; // cuGraphExecDestroy delays the destruction of a running exec
    core.limits.memory_alignment = 1;
    core.limits.max_block = static_cast<std::uint64_t>(ask(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK));
    core.limits.local_memory = static_cast<std::uint64_t>(ask(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN));
    if (!read) return read;
    std::size_t memory = 0;
    auto total = driver.call("cuDeviceTotalMem", driver.cuDeviceTotalMem, &memory, core.device);
    core.limits.memory = memory;
    return total;
}

std::vector<cachefmt::Fact> CudaDevice::facts() const
{
    {
        const std::scoped_lock lock{m_facts_mutex};
        if (!m_facts.empty()) return m_facts;
    }
    // Ask outside the lock: a child that is forked meanwhile would keep the lock for ever.
    auto facts = device_facts(*m_core);
    const std::scoped_lock lock{m_facts_mutex};
    if (m_facts.empty()) m_facts = std::move(facts);
    return m_facts;
}

/// Also reads the facts on that thread, because they take time: the driver's version is in a file, and each attribute
/// is a driver call.
void CudaDevice::begin_warm_up() noexcept
{
    m_warm_up->begin([this] { static_cast<void>(facts()); });
}

std::string CudaDevice::replay_mode() const
{
    return fmt::format("CUDA graphs (driver {}, cuGraphLaunch)", version_text(m_core->driver->version));
}

std::shared_ptr<void> CudaDevice::enter() const { return std::make_shared<CurrentContext>(*m_core); }

std::uint64_t CudaDevice::free_memory() const
{
    const CurrentContext context(*m_core);
    const OutsideCapture outside(*m_core);
    const Driver& driver = *m_core->driver;
    std::size_t available = 0, total = 0;
    const CUresult asked = driver.status("cuMemGetInfo", driver.cuMemGetInfo, &available, &total);
    return asked == CUDA_SUCCESS ? available : limits().memory;
}

Result<void> CudaDevice::upload(const Address& to, ByteView bytes)
{
    if (auto checked = m_memory->check("upload", to, bytes.size(), Touch::run); !checked) return checked;
    if (bytes.empty()) return {};
    return m_staging->upload(to.flat(), bytes);
}

Result<void> CudaDevice::download(std::span<std::byte> to, const Address& from)
{
    if (auto checked = m_memory->check("download", from, to.size(), Touch::run); !checked) return checked;
    if (to.empty()) return {};
    return transfer(*m_core, reinterpret_cast<CUdeviceptr>(to.data()), from.flat(), to.size());
}

Result<std::unique_ptr<Module>> CudaDevice::load(ByteView image)
{
    m_warm_up->wait();
    return CudaModule::load(*m_core, image, Digest{});
}

Result<void> CudaDevice::register_module(void* module, ByteView image)
{
    return m_core->modules.register_module(*m_core, static_cast<CUmodule>(module), image);
}

Result<std::unique_ptr<Stream>> CudaDevice::create_stream() { return CudaStream::make(*m_core, *m_memory); }

Result<std::unique_ptr<Stream>> CudaDevice::view_stream(void* native)
{
    return CudaStream::view(*m_core, *m_memory, static_cast<CUstream>(native));
}

Result<std::unique_ptr<GraphBuilder>> CudaDevice::graph_builder(std::size_t nodes)
{
    m_warm_up->wait();
    return CudaGraphBuilder::begin(*m_core, nodes);
}

Result<std::shared_ptr<Event>> CudaDevice::create_event()
{
    return CudaEvent::make(*m_core, CudaEvent::Kind::external);
}

std::vector<std::string> CudaDevice::exposed_variables(ByteView image)
{
    return m_core->modules.exposed_variables(*m_core, image);
}

std::uint64_t CudaDevice::exposures() const noexcept
{
    return m_core->recording_side != nullptr ? m_core->recording_side->variables().count() : 0;
}

} // namespace warmgraph::backends::cuda
