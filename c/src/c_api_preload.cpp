// The C interface: preloading.
#include <vector>

#include "c_api.hpp"

using namespace warmgraph;        // NOLINT: the functions of the C interface are in no namespace
using namespace warmgraph::c_api; // NOLINT

namespace {

wg_preload_progress from_progress(const PreloadProgress& progress) noexcept
{
    return {sizeof(wg_preload_progress), progress.loaded, progress.failed, progress.total, progress.elapsed_ms};
}

PreloadWait to_wait(wg_preload_wait_for wait)
{
    switch (wait) {
    case wg_preload_first: return PreloadWait::first;
    case wg_preload_all: return PreloadWait::all;
    case wg_preload_none: return PreloadWait::none;
    default: refuse("wait is {}, expected a wg_preload_wait_for, 0 to 2", wait);
    }
}

PreloadOptions to_options(const wg_preload_options* given)
{
    PreloadOptions result;
    if (given == nullptr) return result;
    wg_preload_options from{};
    copy_versioned(&from, sizeof from, given, k_least_preload_options, "wg_preload_options");
    if (from.urgency != nullptr)
        result.urgency = [from](std::string_view function, std::span<const TensorDecl> inputs) -> int {
            std::vector<wg_tensor_decl> list;
            for (const TensorDecl& input : inputs)
                list.push_back({input.name.c_str(), static_cast<wg_dtype>(input.dtype),
                                static_cast<std::uint32_t>(input.sizes.size()), input.sizes.data()});
            return from.urgency(std::string{function}.c_str(), list.data(), list.size(), from.user);
        };
    if (from.progress != nullptr)
        result.progress = [from](const PreloadProgress& progress) {
            const wg_preload_progress now = from_progress(progress);
            from.progress(&now, progress.function.c_str(), from.user);
        };
    result.wait = to_wait(from.wait);
    result.threads = from.threads;
    if (from.first != nullptr) result.first = from.first;
    for (const char* name : need_array(from.functions, from.function_count, "functions"))
        result.functions.emplace_back(need_text(name, "a name in functions"));
    if (from.device != nullptr) result.device = &need_device(from.device).device;
    return result;
}

} // namespace

wg_status wg_cache_preload(wg_cache* cache, const wg_preload_options* options, wg_preload** out)
{
    return guarded([&] {
        if (out != nullptr) *out = nullptr;
        auto& owner = need(cache, "cache", "one from wg_cache_open").cache;
        Preload preload = owner.preload(to_options(options));
        if (out != nullptr)
            *out = new wg_preload{std::move(preload)};
        else
            preload.detach();
    });
}

wg_status wg_preload_wait(wg_preload* preload)
{
    return guarded([&] { need(preload, "preload", "one from wg_cache_preload").preload.wait(); });
}

wg_status wg_preload_progress_of(const wg_preload* preload, wg_preload_progress* out)
{
    return guarded([&] {
        const PreloadProgress from = need(preload, "preload", "one from wg_cache_preload").preload.progress();
        const std::uint64_t size = need(out, "out", "a variable for the progress").size;
        check_size(size, k_least_preload_progress, "wg_preload_progress");
        wg_preload_progress known = from_progress(from);
        known.size = size;
        write_versioned(out, size, &known, sizeof known);
    });
}

wg_status wg_preload_destroy(wg_preload* preload)
{
    return guarded([&] { delete preload; });
}
