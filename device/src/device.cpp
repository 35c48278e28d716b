#include <algorithm>
#include <atomic>
#include <exception>
#include <map>
#include <system_error>
#include <thread>

#include "warmgraph/backends/built.hpp"
#include "warmgraph/backends/compiler.hpp"
#include "warmgraph/backends/host_functions.hpp"
#include "warmgraph/backends/recording.hpp"
#include "warmgraph/base/log.hpp"
#include "warmgraph/base/sha256.hpp"
#include "warmgraph/capture/run_context.hpp"
#include "warmgraph/device/device_impl.hpp"
#include "warmgraph/device/programs.hpp"
#include "warmgraph/device/stream_impl.hpp"
#include "warmgraph/throwing.hpp"

namespace warmgraph {

namespace {

/// OpenSSL's first digest takes 1.3 ms (it reads its configuration). A thread computes it while the driver opens, which
/// takes longer, so that no first call waits for it.
std::jthread first_digest()
try {
    static std::atomic_flag done;
    if (done.test_and_set()) return {};
    return std::jthread{[] {
        try {
            static_cast<void>(sha256({}));
        } catch (const std::exception&) { // the next digest will report the error
        }
    }};
} catch (const std::system_error&) { // no thread could start; the first call then takes the time
    return {};
}

/// Keeps one Impl per opened device, so that all its Device objects share the default stream.
std::shared_ptr<Device::Impl> shared_device(std::shared_ptr<backends::Device> device);

} // namespace

// --- Buffer

Buffer::Buffer(std::shared_ptr<backends::Device> device, MemoryRef memory) noexcept
    : m_device(std::move(device)), m_memory(memory)
{
}
Buffer::Buffer(Buffer&& other) noexcept
    : m_device(std::move(other.m_device)), m_memory(std::exchange(other.m_memory, {}))
{
}
Buffer& Buffer::operator=(Buffer&& other) noexcept
{
    std::swap(m_device, other.m_device);
    std::swap(m_memory, other.m_memory);
    return *this;
}
Buffer::~Buffer()
{
    if (m_device && !m_memory.address.is_null()) m_device->release(m_memory);
}

namespace {
void check_range(std::string_view doing, std::uint64_t bytes, std::uint64_t offset, std::uint64_t size)
{
    if (offset <= size && bytes <= size - offset) return;
    raise({ErrorCode::invalid_argument,
           fmt::format("cannot {} {} bytes at offset {}: the buffer has {}", doing, bytes, offset, size)});
}
} // namespace

void Buffer::upload(std::span<const std::byte> bytes, std::uint64_t offset)
{
    value_or_raise(refuse_while_capturing("Buffer::upload", "pass the data as an input, or enqueue a copy"));
    check_range("upload", bytes.size(), offset, size());
    value_or_raise(m_device->upload(m_memory.address + offset, bytes));
}

void Buffer::download(std::span<std::byte> bytes, std::uint64_t offset) const
{
    value_or_raise(refuse_while_capturing("Buffer::download", "read outputs back after the call instead"));
    check_range("download", bytes.size(), offset, size());
    value_or_raise(m_device->download(bytes, m_memory.address + offset));
}

// --- Program

const std::string& Program::name() const noexcept { return m_impl->name; }
const std::string& Program::source() const noexcept { return m_impl->source; }
const std::string& Program::options() const noexcept { return m_impl->options; }

Result<std::shared_ptr<backends::Module>> Program::Impl::compile() const
{
    auto compiled = device->device->compiler().compile(source, options);
    if (!compiled) return std::unexpected(compiled.error());
    return std::shared_ptr(std::move(*compiled));
}

Result<std::shared_ptr<backends::Module>> Program::Impl::compiled()
{
    const std::scoped_lock lock{mutex};
    if (module) return module;
    Phases unmeasured;
    RunContext* run = current_run();
    const auto timer = (run != nullptr && run->phases != nullptr ? *run->phases : unmeasured).measure("compile");
    const ProgramUse* const of_callable = current_programs();
    const ProgramUse use = of_callable != nullptr ? *of_callable : device->programs();
    auto built = use.programs ? use.programs->module(*this, use.policy) : compile();
    if (!built) return within("program '" + name + "'", built.error());
    module = std::move(*built);
    return module;
}

// --- Device

namespace {
std::shared_ptr<Device::Impl> shared_device(std::shared_ptr<backends::Device> device)
{
    // Never destroyed: threads may outlive main().
    static std::mutex& mutex = *new std::mutex;
    static auto& known = *new std::map<backends::Device*, std::weak_ptr<Device::Impl>>;
    const std::scoped_lock lock{mutex};
    auto& entry = known[device.get()];
    if (auto impl = entry.lock()) return impl;
    auto impl = std::make_shared<Device::Impl>();
    impl->default_stream = value_or_raise(device->create_stream());
    impl->device = std::move(device);
    entry = impl;
    return impl;
}
} // namespace

const store::LoadTarget& Device::Impl::load_target()
{
    std::call_once(m_target_asked, [this] { m_target = store::load_target(device->name(), device->facts()); });
    return m_target;
}

void Device::Impl::use_programs(const ProgramUse& use)
{
    const std::scoped_lock lock{m_programs_mutex};
    m_programs = use.programs;
    m_programs_policy = use.policy;
}

ProgramUse Device::Impl::programs() const
{
    const std::scoped_lock lock{m_programs_mutex};
    auto programs = m_programs.lock();
    return programs ? ProgramUse{std::move(programs), m_programs_policy} : ProgramUse{};
}

Device::Device(std::string_view id)
{
    const std::jthread digest = first_digest();
    m_impl = shared_device(value_or_raise(backends::open_built_device(id)));
}

void Device::warm_up() const { m_impl->device->begin_warm_up(); }

std::string Device::id() const { return m_impl->device->id(); }
std::string Device::name() const { return m_impl->device->name(); }

Buffer Device::allocate(std::uint64_t bytes) const
{
    value_or_raise(refuse_while_capturing("Device::allocate",
                                          "use Recorder::alloc for scratch memory, or allocate before the call"));
    return Buffer{m_impl->device, value_or_raise(m_impl->device->allocate(bytes))};
}

Buffer Device::allocate_host(std::uint64_t bytes) const
{
    value_or_raise(refuse_while_capturing("Device::allocate_host", "allocate before the call"));
    return Buffer{m_impl->device, value_or_raise(m_impl->device->allocate_host(bytes))};
}

Program Device::program(std::string name, std::string source, std::string options) const
{
    auto impl = std::make_shared<Program::Impl>();
    impl->device = m_impl;
    impl->name = std::move(name);
    impl->source = std::move(source);
    impl->options = std::move(options);
    impl->digest = Sha256{}.update_field(impl->source).update_field(impl->options).finish();
    return Program{std::move(impl)};
}

Stream Device::stream() const
{
    return StreamAccess::make(m_impl->device, value_or_raise(m_impl->device->create_stream()));
}

Stream Device::view_stream(void* native) const
{
    return StreamAccess::make(m_impl->device, value_or_raise(m_impl->device->view_stream(native)));
}

Stream Device::default_stream() const { return StreamAccess::make(m_impl->device, m_impl->default_stream); }

void Device::synchronize() const
{
    value_or_raise(refuse_while_capturing("Device::synchronize", "synchronise after the call instead"));
    // Does not lock inside a running function: the function's call already holds this mutex, or another thread holds it
    // and waits for that call.
    std::unique_lock lock{m_impl->default_stream_mutex, std::defer_lock};
    if (current_run() == nullptr) lock.lock();
    value_or_raise(m_impl->default_stream->synchronize());
}

void Device::prepare_recording() const { value_or_raise(m_impl->device->recording().prepare_recording()); }

void Device::prepare_recording(std::string_view backend) { value_or_raise(backends::prepare_built_recording(backend)); }

void Device::register_module(void* module, std::span<const std::byte> image) const
{
    value_or_raise(m_impl->device->register_module(module, image));
}

void register_host_function(std::string name, void (*function)(void*), void* data)
{
    value_or_raise(backends::register_host_function(std::move(name), {function, data}));
}

} // namespace warmgraph
