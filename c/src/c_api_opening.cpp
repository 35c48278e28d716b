// The C interface: restoring many entries ahead.
#include <vector>

#include "c_api.hpp"

using namespace warmgraph;        // NOLINT: the functions of the C interface are in no namespace
using namespace warmgraph::c_api; // NOLINT

namespace {

wg_open_progress from_progress(const OpenProgress& progress) noexcept
{
    return {sizeof(wg_open_progress), progress.opened, progress.failed, progress.total, progress.elapsed_ms};
}

OpenWait to_wait(wg_open_wait wait)
{
    switch (wait) {
    case wg_open_wait_first: return OpenWait::first;
    case wg_open_wait_all: return OpenWait::all;
    default: refuse("wait is {}, expected a wg_open_wait, 0 or 1", wait);
    }
}

OpenOptions to_options(const wg_open_options* given)
{
    OpenOptions result;
    if (given == nullptr) return result;
    wg_open_options from{};
    copy_versioned(&from, sizeof from, given, k_least_open_options, "wg_open_options");
    if (from.urgency != nullptr)
        result.urgency = [from](std::string_view function, std::span<const TensorDecl> inputs) -> int {
            std::vector<wg_tensor_decl> list;
            for (const TensorDecl& input : inputs)
                list.push_back({input.name.c_str(), static_cast<wg_dtype>(input.dtype),
                                static_cast<std::uint32_t>(input.sizes.size()), input.sizes.data()});
            return from.urgency(std::string{function}.c_str(), list.data(), list.size(), from.user);
        };
    if (from.progress != nullptr)
        result.progress = [from](const OpenProgress& progress) {
            const wg_open_progress now = from_progress(progress);
            from.progress(&now, progress.function.c_str(), from.user);
        };
    result.wait = to_wait(from.wait);
    result.threads = from.threads;
    if (from.first != nullptr) result.first = from.first;
    return result;
}

} // namespace

wg_status wg_open_all(wg_cache* cache, const wg_open_options* options, wg_opening** out)
{
    return guarded([&] {
        wg_opening*& handle = need_out(out);
        auto& owner = need(cache, "cache", "one from wg_cache_open").cache;
        handle = new wg_opening{owner.open_all(to_options(options))};
    });
}

wg_status wg_opening_wait(wg_opening* opening)
{
    return guarded([&] { need(opening, "opening", "one from wg_open_all").opening.wait(); });
}

wg_status wg_opening_progress(const wg_opening* opening, wg_open_progress* out)
{
    return guarded([&] {
        const OpenProgress from = need(opening, "opening", "one from wg_open_all").opening.progress();
        const std::uint64_t size = need(out, "out", "where to put the progress").size;
        check_size(size, k_least_open_progress, "wg_open_progress");
        wg_open_progress known = from_progress(from);
        known.size = size;
        write_versioned(out, size, &known, sizeof known);
    });
}

wg_status wg_opening_destroy(wg_opening* opening)
{
    return guarded([&] { delete opening; });
}
