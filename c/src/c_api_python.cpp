// The C interface: what bindings of Python look at before each call.
#include <algorithm>
#include <bit>
#include <cstdint>
#include <utility>

#include "c_api.hpp"
#include "python/api.hpp"
#include "python/dl_tensor.hpp"
#include "python/held_modules.hpp"
#include "python/module_reader.hpp"
#include "warmgraph/python.h"

struct wg_modules {
    explicit wg_modules(const warmgraph::python::Api& its) : api(its), held(its) {}
    const warmgraph::python::Api& api;
    warmgraph::python::HeldModules held;
};

namespace {

using warmgraph::python::DlTensor;

bool looks_as_it_did(const DlTensor& tensor, const wg_tensor_look& look)
{
    return tensor.device_type == look.device_type && tensor.device_id == look.device_id && tensor.rank == look.rank &&
           tensor.code == look.code && tensor.bits == look.bits && tensor.lanes == look.lanes &&
           (tensor.rank == 0 ||
            (tensor.strides != nullptr && std::equal(tensor.sizes, tensor.sizes + tensor.rank, look.sizes) &&
             std::equal(tensor.strides, tensor.strides + tensor.rank, look.strides)));
}

} // namespace

std::int64_t wg_look_at_tensors(wg_dltensor_reader read, void* const* tensors, std::uint64_t count,
                                wg_tensor_look* looks, std::uint64_t* own, std::int64_t* numbers, std::uint64_t room)
{
    std::uint64_t needed = 0;
    for (std::uint64_t i = 0; i < count; ++i) {
        DlTensor tensor{};
        if (read(tensors[i], &tensor) != 0 || (tensor.rank != 0 && tensor.strides == nullptr)) return -1;
        const auto rank = static_cast<std::uint64_t>(tensor.rank);
        const std::uint64_t first = std::exchange(needed, needed + 2 * rank);
        if (needed > room) continue;
        std::copy_n(tensor.sizes, rank, numbers + first);
        std::copy_n(tensor.strides, rank, numbers + first + rank);
        looks[i] = {numbers + first,
                    numbers + first + rank,
                    tensor.rank,
                    tensor.device_type,
                    tensor.device_id,
                    tensor.code,
                    tensor.bits,
                    tensor.lanes,
                    0,
                    own + i};
    }
    return static_cast<std::int64_t>(needed);
}

std::uint64_t wg_read_tensors(wg_dltensor_reader read, void* const* tensors, const wg_tensor_look* looks,
                              std::uint64_t count, std::uint64_t base, std::int32_t* moved)
{
    std::int32_t has_moved = 0;
    std::uint64_t i = 0;
    for (; i < count; ++i) {
        DlTensor tensor{};
        if (read(tensors[i], &tensor) != 0 || !looks_as_it_did(tensor, looks[i])) break;
        const std::uint64_t address = std::bit_cast<std::uint64_t>(tensor.data) + tensor.byte_offset;
        if (looks[i].alignment != 0 && address % looks[i].alignment != 0) break;
        has_moved |= static_cast<std::int32_t>(*looks[i].address != address - base);
        *looks[i].address = address - base;
    }
    if (moved != nullptr) *moved = has_moved;
    return i;
}

std::uint64_t wg_compare_dicts(wg_dict_reader read, const wg_dict_look* looks, std::uint64_t count)
{
    std::uint64_t i = 0;
    while (i < count && warmgraph::python::holds_the_same(read, looks[i].dict, looks[i].pairs, looks[i].count)) ++i;
    return i;
}

namespace {

std::uint64_t dict_events = 0; // under Python's lock

} // namespace

int wg_note_dict_event(int /*event*/, void* /*dict*/, void* /*key*/, void* /*new_value*/)
{
    ++dict_events;
    return 0;
}

const std::uint64_t* wg_dict_events(void) { return &dict_events; }

std::uint64_t wg_compare_attributes(wg_attributes_reader read, wg_object_releaser release,
                                    const wg_attributes_look* looks, std::uint64_t count)
{
    for (std::uint64_t i = 0; i < count; ++i) {
        void* const dict = read(looks[i].object, nullptr);
        if (dict != nullptr) release(dict); // whoever looks holds the one that it was
        if (dict != looks[i].dict) return i;
    }
    return count;
}

std::uint64_t wg_compare_dict_items(wg_dict_item_reader read, const wg_dict_item_look* looks, std::uint64_t count)
{
    std::uint64_t i = 0;
    while (i < count && read(looks[i].dict, looks[i].key) == looks[i].value) ++i;
    return i;
}

wg_status wg_modules_create(std::uint64_t walk_size, wg_modules** modules)
{
    return warmgraph::c_api::guarded([&] {
        wg_modules*& handle = warmgraph::c_api::need_out(modules);
        const auto* const api = warmgraph::python::Api::of_process();
        const std::string_view why = api == nullptr                        ? "the process exports no Python"
                                     : walk_size != sizeof(wg_module_walk) ? "the Python package is another version's"
                                                                           : "";
        if (!why.empty())
            throw warmgraph::Exception(warmgraph::ErrorCode::unsupported,
                                       fmt::format("modules are not read natively: {}", why));
        handle = new wg_modules(*api);
    });
}

void wg_modules_destroy(wg_modules* modules) { delete modules; }

int wg_modules_read(wg_modules* modules, const wg_module_walk* walk, void* path, void* module)
{
    try {
        warmgraph::python::ModuleReader(modules->api, *walk, modules->held).read(path, module);
        return 0;
    } catch (const warmgraph::python::Raised&) {
    } catch (const std::bad_alloc&) {
        static_cast<void>(modules->api.no_memory());
    }
    return -1;
}

int wg_modules_hold_the_same(const wg_modules* modules) { return modules->held.are_dicts_same() ? 1 : 0; }

int wg_modules_are_the_same(const wg_modules* modules) { return modules->held.are_objects_same() ? 1 : 0; }

int wg_modules_watch(const wg_modules* modules, wg_dict_watch watch, int32_t watcher)
{
    return modules->held.watch(watch, watcher);
}
