// The C interface: the recorder of a callback.
#include <algorithm>
#include <cstring>

#include "c_api.hpp"

using namespace warmgraph;        // NOLINT: the functions of the C interface are in no namespace
using namespace warmgraph::c_api; // NOLINT

namespace {

wg_recorder& need_recorder(wg_recorder* recorder)
{
    return need(recorder, "recorder", "the one that the callback received");
}

template <class T>
T& need_result(T* out)
{
    return need(out, "out", "a variable for the result");
}

template <class T>
void write_scalar(const Recorder& recorder, const char* name, void* out)
{
    const T value = recorder.scalar<T>(name);
    std::memcpy(out, &value, sizeof value);
}

void write_scalar_of(DType dtype, const Recorder& recorder, const char* name, void* out)
{
    switch (dtype) {
    case DType::i32: return write_scalar<std::int32_t>(recorder, name, out);
    case DType::u32: return write_scalar<std::uint32_t>(recorder, name, out);
    case DType::i64: return write_scalar<std::int64_t>(recorder, name, out);
    case DType::u64: return write_scalar<std::uint64_t>(recorder, name, out);
    case DType::f32: return write_scalar<float>(recorder, name, out);
    case DType::f64: return write_scalar<double>(recorder, name, out);
    default: refuse("scalar '{}' is requested as {}, expected i32, u32, i64, u64, f32 or f64", name, to_string(dtype));
    }
}

} // namespace

wg_stream* wg_recorder_stream(wg_recorder* recorder)
{
    return guarded_get<wg_stream*>(nullptr, [&] { return &need_recorder(recorder).main; });
}

wg_status wg_recorder_fork(wg_recorder* recorder, wg_stream** out)
{
    return guarded_handle(out, [&] {
        auto& run = need_recorder(recorder);
        return &run.forks.emplace_back(run.recorder.fork());
    });
}

wg_status wg_recorder_join(wg_recorder* recorder, wg_stream* forked)
{
    return guarded([&] {
        auto& run = need_recorder(recorder);
        run.recorder.join(need(forked, "forked", "the stream from wg_recorder_fork").stream);
    });
}

wg_status wg_recorder_address(wg_recorder* recorder, const char* name, wg_address* out)
{
    return guarded([&] {
        auto& result = need_result(out);
        result = from_address(need_recorder(recorder).recorder.address(need_text(name, "name")));
    });
}

wg_status wg_recorder_alloc(wg_recorder* recorder, const char* name, uint64_t bytes, wg_address* out)
{
    return guarded([&] {
        auto& result = need_result(out);
        result = from_address(need_recorder(recorder).recorder.alloc(need_text(name, "scratch name"), bytes));
    });
}

wg_status wg_recorder_scalar(wg_recorder* recorder, const char* name, wg_dtype dtype, void* out)
{
    return guarded([&] {
        auto& run = need_recorder(recorder);
        need_text(name, "scalar name");
        need(static_cast<std::byte*>(out), "out", "a variable for the value");
        write_scalar_of(to_dtype(dtype, name), run.recorder, name, out);
    });
}

wg_status wg_recorder_sizes(wg_recorder* recorder, const char* name, const int64_t** sizes, uint64_t* rank)
{
    return guarded([&] {
        auto& first = need(sizes, "sizes", "a variable for the sizes");
        auto& count = need(rank, "rank", "a variable for their number");
        const auto& found = need_recorder(recorder).recorder.sizes(need_text(name, "name"));
        first = found.data();
        count = found.size();
    });
}

wg_status wg_recorder_dtype(wg_recorder* recorder, const char* name, wg_dtype* out)
{
    return guarded([&] {
        auto& result = need_result(out);
        result = static_cast<wg_dtype>(need_recorder(recorder).recorder.dtype(need_text(name, "name")));
    });
}

wg_status wg_recorder_fail(wg_recorder* recorder, wg_status status, const char* reason)
{
    // A failure in the callback fails the run (to_callable).
    return guarded([&] {
        need_recorder(recorder);
        if (status < wg_invalid_argument || status > wg_untrusted)
            refuse("status is {}, expected {} to {}", status, static_cast<int>(wg_invalid_argument),
                   static_cast<int>(wg_untrusted));
        throw Exception(static_cast<ErrorCode>(status), need_text(reason, "reason"));
    });
}
