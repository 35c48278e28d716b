// The C interface for the Python package (python.h).
#include <algorithm>
#include <bit>
#include <cstdint>
#include <utility>

#include "c_api.hpp"
#include "python/api.hpp"
#include "python/dl_tensor.hpp"
#include "python/fact_folding.hpp"
#include "python/fact_list.hpp"
#include "python/snapshot.hpp"
#include "python/steady_call.hpp"
#include "python/texts.hpp"
#include "python/torch_tensor.hpp"
#include "warmgraph/facade/cache_access.hpp"
#include "warmgraph/python.h"

using warmgraph::python::DlTensor;

std::int64_t wg_look_at_tensors(wg_dltensor_reader read, void* const* tensors, std::uint64_t count,
                                wg_tensor_look* looks, std::uint64_t* own, std::int64_t* numbers, std::uint64_t room)
{
    std::uint64_t needed = 0;
    for (std::uint64_t i = 0; i < count; ++i) {
        DlTensor tensor{};
        if (read(tensors[i], &tensor) != 0 || (tensor.rank != 0 && tensor.strides == nullptr)) return -1;
        const auto rank = static_cast<std::uint64_t>(tensor.rank);
        const std::uint64_t first = std::exchange(needed, needed + 2 * rank);
        own[i] = warmgraph::python::address_of(tensor);
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

int wg_tensors_are_there(wg_dltensor_reader read, void* const* tensors, const wg_tensor_look* looks,
                         std::uint64_t count)
{
    for (std::uint64_t i = 0; i < count; ++i) {
        DlTensor tensor{};
        if (read(tensors[i], &tensor) != 0 || !warmgraph::python::is_there(tensor, looks[i])) return 0;
    }
    return 1;
}

int wg_use_torch_tensors(const wg_torch_tensors* tensors)
{
    warmgraph::python::TorchTensors::of_process().use(*tensors);
    return 0;
}

int wg_read_torch_tensor(void* object, void* dltensor)
{
    return warmgraph::python::TorchTensors::of_process().read(object, *static_cast<DlTensor*>(dltensor));
}

int wg_snapshot_is_same(wg_snapshot* snapshot)
{
    const auto* const api = warmgraph::python::Api::of_process();
    return api == nullptr ? -1 : static_cast<int>(warmgraph::python::is_as_it_was(*api, *snapshot));
}

int wg_note_dict_event(int /*event*/, void* /*dict*/, void* /*key*/, void* /*new_value*/)
{
    ++warmgraph::python::dict_events();
    return 0;
}

const std::uint64_t* wg_dict_events(void) { return &warmgraph::python::dict_events(); }

namespace {

/// Runs `work` and returns its result, or `failed` if an exception of Python is set. REQUIRES: the process exports
/// Python.
template <class T, class Work>
T with_python(T failed, const Work& work)
{
    const auto& python = *warmgraph::python::Api::of_process();
    try {
        return work(python);
    } catch (const warmgraph::python::PythonError&) {
    } catch (const std::bad_alloc&) {
        static_cast<void>(python.no_memory());
    }
    return failed;
}

} // namespace

void* wg_list_facts(void* facts, void* known, const char* beginning, void* apart)
{
    return with_python(static_cast<void*>(nullptr), [&](const auto& python) {
        return warmgraph::python::fact_list(python, facts, known, beginning, apart).leave();
    });
}

int wg_fold_facts(void* facts, std::uint64_t most, std::uint64_t deepest, void* into)
{
    return with_python(-1, [&](const auto& python) {
        warmgraph::python::fold_facts(python, facts, most, deepest, into);
        return 0;
    });
}

int wg_text_addresses(void* texts, std::uint64_t* addresses)
{
    return with_python(-1, [&](const auto& python) {
        for (std::ptrdiff_t i = 0; i < python.list_size(texts); ++i)
            addresses[i] =
                std::bit_cast<std::uint64_t>(warmgraph::python::view_of(python, python.list_get(texts, i)).data());
        return 0;
    });
}

wg_status wg_pause_recording(const wg_cache* const* caches, std::uint64_t count)
{
    return warmgraph::c_api::guarded([&] {
        std::vector<const warmgraph::Cache*> given;
        for (const wg_cache* cache : warmgraph::c_api::need_array(caches, count, "caches"))
            given.push_back(&warmgraph::c_api::need(cache, "cache", "one from wg_cache_open").cache);
        if (const auto why = warmgraph::CacheAccess::pause_recording(given); !why.empty())
            throw warmgraph::Exception(warmgraph::ErrorCode::unsupported, "recording is not paused: " + why);
    });
}

wg_status wg_steady_call_create(std::uint64_t call_size, const wg_steady_call* call, void** callable)
{
    return warmgraph::c_api::guarded([&] {
        const auto* const api = warmgraph::python::Api::of_process();
        const std::string_view why = api == nullptr ? "the process does not export Python's functions"
                                     : call_size != sizeof(wg_steady_call)
                                         ? "the Python package has another version than the library"
                                         : "";
        if (!why.empty())
            throw warmgraph::Exception(warmgraph::ErrorCode::unsupported,
                                       fmt::format("later calls are not checked in native code: {}", why));
        try {
            *callable = warmgraph::python::callable_of(*api, *call).leave();
        } catch (const warmgraph::python::PythonError&) {
            api->clear_error();
            throw warmgraph::Exception(warmgraph::ErrorCode::internal, "Python could not make the callable");
        }
    });
}
