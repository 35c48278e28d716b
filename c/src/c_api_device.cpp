// The C interface: devices, memory, programs, streams and the work in them.
#include <memory>
#include <vector>

#include "c_api.hpp"

using namespace warmgraph;        // NOLINT: the functions of the C interface are in no namespace
using namespace warmgraph::c_api; // NOLINT

namespace {

const wg_buffer& need_buffer(const wg_buffer* buffer) { return need(buffer, "buffer", "one from wg_buffer_create"); }
const wg_program& need_program(const wg_program* program)
{
    return need(program, "program", "one from wg_program_create");
}

KernelArg to_kernel_arg(const wg_kernel_arg& arg, std::size_t index)
{
    switch (arg.kind) {
    case wg_kernel_arg_memory: return to_address(arg.address);
    case wg_kernel_arg_local: return LocalMemory{arg.bytes};
    case wg_kernel_arg_value: {
        const auto* value = static_cast<const std::byte*>(arg.value);
        return KernelArg{need_array(value, arg.bytes, fmt::format("the value of kernel argument {}", index))};
    }
    default: refuse("kernel argument {} has the kind {}, expected a wg_kernel_arg_kind", index, arg.kind);
    }
}

std::vector<KernelArg> to_kernel_args(const wg_kernel_arg* args, std::uint64_t count)
{
    std::vector<KernelArg> list;
    for (const wg_kernel_arg& arg : need_array(args, count, "kernel arguments"))
        list.push_back(to_kernel_arg(arg, list.size()));
    return list;
}

Extent to_extent(const std::uint32_t* extent, std::string_view what)
{
    const std::uint32_t* first = &need(extent, what, "3 numbers");
    return {first[0], first[1], first[2]};
}

} // namespace

// --- devices

wg_status wg_device_open(const char* id, wg_device** out)
{
    return guarded_handle(out, [&] {
        const Device device{need_text(id, "device id")};
        return new wg_device{device, {wg_stream::Owner::device, device.default_stream()}, device.id(), device.name()};
    });
}

wg_status wg_device_close(wg_device* device)
{
    return guarded([&] { delete device; });
}

wg_status wg_device_warm_up(wg_device* device)
{
    return guarded([&] { need_device(device).device.warm_up(); });
}

wg_status wg_prepare_recording(wg_device* device)
{
    return guarded([&] { need_device(device).device.prepare_recording(); });
}

wg_status wg_prepare_recording_early(void)
{
    return guarded([] { Device::prepare_recording("cuda"); });
}

wg_status wg_register_module(wg_device* device, void* module, const void* image, uint64_t bytes)
{
    return guarded([&] {
        const auto& owner = need_device(device).device;
        owner.register_module(module,
                              {&need(static_cast<const std::byte*>(image), "image", "the module's cubin"), bytes});
    });
}

wg_status wg_register_host_function(const char* name, void (*function)(void*), void* data)
{
    return guarded([&] { register_host_function(need_text(name, "host function name"), function, data); });
}

wg_status wg_device_synchronize(wg_device* device)
{
    return guarded([&] { need_device(device).device.synchronize(); });
}

const char* wg_device_id(const wg_device* device)
{
    return guarded_get<const char*>(nullptr, [&] { return need_device(device).id.c_str(); });
}

const char* wg_device_name(const wg_device* device)
{
    return guarded_get<const char*>(nullptr, [&] { return need_device(device).name.c_str(); });
}

wg_stream* wg_device_stream(wg_device* device)
{
    return guarded_get<wg_stream*>(nullptr, [&] { return &need_device(device).default_stream; });
}

// --- memory

wg_status wg_buffer_create(wg_device* device, uint64_t bytes, wg_buffer** out)
{
    return guarded_handle(out, [&] { return new wg_buffer{need_device(device).device.allocate(bytes)}; });
}

wg_status wg_buffer_create_host(wg_device* device, uint64_t bytes, wg_buffer** out)
{
    return guarded_handle(out, [&] { return new wg_buffer{need_device(device).device.allocate_host(bytes)}; });
}

wg_status wg_buffer_destroy(wg_buffer* buffer)
{
    return guarded([&] { delete buffer; });
}

wg_status wg_buffer_upload(wg_buffer* buffer, const void* from, uint64_t bytes, uint64_t offset)
{
    return guarded([&] {
        need_buffer(buffer);
        buffer->buffer.upload(need_array(static_cast<const std::byte*>(from), bytes, "from"), offset);
    });
}

wg_status wg_buffer_download(const wg_buffer* buffer, void* to, uint64_t bytes, uint64_t offset)
{
    return guarded([&] {
        const auto& source = need_buffer(buffer).buffer;
        need_array(static_cast<const std::byte*>(to), bytes, "to");
        source.download({static_cast<std::byte*>(to), static_cast<std::size_t>(bytes)}, offset);
    });
}

wg_memory wg_buffer_memory(const wg_buffer* buffer)
{
    return guarded_get<wg_memory>({}, [&] {
        const MemoryRef memory = need_buffer(buffer).buffer.memory();
        return wg_memory{from_address(memory.address), memory.size};
    });
}

uint64_t wg_buffer_pointer(const wg_buffer* buffer)
{
    return guarded_get<std::uint64_t>(0, [&] {
        const Address address = need_buffer(buffer).buffer.memory().address;
        return address.base == k_flat_base ? address.flat() : 0;
    });
}

wg_memory wg_memory_from_pointer(uint64_t pointer, uint64_t size)
{
    return {from_address(Address::from_flat(pointer)), size};
}

// --- programs

wg_status wg_program_create(wg_device* device, const char* name, const char* source, const char* options,
                            wg_program** out)
{
    return guarded_handle(out, [&] {
        return new wg_program{need_device(device).device.program(
            need_text(name, "program name"), need_text(source, "program source"), options != nullptr ? options : "")};
    });
}

wg_status wg_program_destroy(wg_program* program)
{
    return guarded([&] { delete program; });
}

// --- streams

wg_status wg_stream_create(wg_device* device, wg_stream** out)
{
    return guarded_handle(out,
                          [&] { return new wg_stream{wg_stream::Owner::user, need_device(device).device.stream()}; });
}

wg_status wg_stream_view(wg_device* device, void* native, wg_stream** out)
{
    return guarded_handle(
        out, [&] { return new wg_stream{wg_stream::Owner::user, need_device(device).device.view_stream(native)}; });
}

wg_status wg_stream_destroy(wg_stream* stream)
{
    return guarded([&] {
        if (stream != nullptr && stream->owner != wg_stream::Owner::user)
            refuse("the stream belongs to a {}: destroy only streams from wg_stream_create",
                   stream->owner == wg_stream::Owner::device ? "device" : "recorder");
        delete stream;
    });
}

int wg_stream_is_capturing(const wg_stream* stream)
{
    return stream != nullptr && stream->stream.is_capturing() ? 1 : 0;
}

wg_status wg_stream_watch(wg_stream* stream, wg_watch** out)
{
    return guarded_handle(out, [&] { return new wg_watch{StreamWatch{need_stream(stream).stream}}; });
}

wg_status wg_watch_stray(const wg_watch* watch, char* text, uint64_t capacity, uint64_t* length)
{
    return guarded(
        [&] { write_text(need(watch, "watch", "one from wg_stream_watch").watch.stray(), text, capacity, length); });
}

wg_status wg_watch_destroy(wg_watch* watch)
{
    return guarded([&] { delete watch; });
}

wg_status wg_stream_synchronize(wg_stream* stream)
{
    return guarded([&] { need_stream(stream).stream.synchronize(); });
}

void* wg_stream_native(const wg_stream* stream)
{
    return guarded_get<void*>(nullptr, [&] {
        return need(stream, "stream", "wg_device_stream(device) for the default one").stream.native();
    });
}

wg_status wg_stream_record(wg_stream* stream, wg_event** out)
{
    return guarded_handle(out, [&] { return new wg_event{need_stream(stream).stream.record()}; });
}

wg_status wg_stream_wait(wg_stream* stream, const wg_event* event)
{
    return guarded([&] { need_stream(stream).stream.wait(need(event, "event", "one from wg_stream_record").event); });
}

wg_status wg_event_destroy(wg_event* event)
{
    return guarded([&] { delete event; });
}

wg_status wg_launch(wg_stream* stream, const wg_program* program, const char* kernel, const uint32_t grid[3],
                    const uint32_t block[3], const wg_kernel_arg* args, uint64_t count)
{
    return guarded([&] {
        auto& target = need_stream(stream).stream;
        const auto& code = need_program(program).program;
        const char* name = need_text(kernel, "kernel name");
        const Launch geometry{to_extent(grid, "grid"), to_extent(block, "block")};
        target.launch_list(code, name, geometry, to_kernel_args(args, count));
    });
}

wg_status wg_launch_with(wg_stream* stream, const wg_program* program, const char* kernel,
                         const wg_launch_options* options, const wg_kernel_arg* args, uint64_t count)
{
    return guarded([&] {
        auto& target = need_stream(stream).stream;
        const auto& code = need_program(program).program;
        const char* name = need_text(kernel, "kernel name");
        wg_launch_options known{};
        copy_versioned(&known, sizeof known, &need(options, "options", "a wg_launch_options"), k_least_launch_options,
                       "wg_launch_options");
        Launch geometry{to_extent(known.grid, "grid"), to_extent(known.block, "block")};
        geometry.cluster = to_extent(known.cluster, "cluster");
        geometry.shared_bytes = known.shared_bytes;
        geometry.cooperation = known.cooperative != 0 ? Cooperation::grid : Cooperation::none;
        geometry.start = known.dependent != 0 ? Start::dependent : Start::after_previous;
        target.launch_list(code, name, geometry, to_kernel_args(args, count));
    });
}

wg_status wg_copy(wg_stream* stream, wg_address to, wg_address from, uint64_t bytes)
{
    return guarded([&] { need_stream(stream).stream.copy(to_address(to), to_address(from), bytes); });
}

wg_status wg_fill(wg_stream* stream, wg_address to, const void* pattern, uint64_t pattern_bytes, uint64_t bytes)
{
    return guarded([&] {
        auto& target = need_stream(stream).stream;
        target.fill(to_address(to), need_array(static_cast<const std::byte*>(pattern), pattern_bytes, "pattern"),
                    bytes);
    });
}
