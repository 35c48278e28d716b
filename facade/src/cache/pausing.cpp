// When a cache stops keeping device code.
#include <algorithm>
#include <array>
#include <exception>

#include "cache/cache_impl.hpp"
#include "warmgraph/base/log.hpp"
#include "warmgraph/base/process.hpp"

namespace warmgraph {

namespace {

/// Whether a profiler started with the process, as environment variables show that profilers set. A pause would lose
/// the profiler's records.
bool is_profiled()
{
    return std::ranges::any_of(std::array{"CUDA_INJECTION64_PATH", "NVTX_INJECTION64_PATH", "WARMGRAPH_TRACK_IMAGES"},
                               [](const char* name) {
                                   const auto value = environment(name);
                                   return value && !value->empty() && *value != "0";
                               });
}

} // namespace

std::string Cache::Impl::why_not_paused()
{
    if (modules.keeps_state())
        return "loaded code keeps state in its variables, so requests for their addresses must be watched";
    const auto living = functions.living();
    for (const auto& function : living)
        if (!function->is_settled()) return fmt::format("'{}' was not called yet", function->declaration().name);
    const auto lost = [&]() -> std::string {
        for (const auto& function : living)
            if (store && keeps_code_for(*store, function->declaration().key))
                return fmt::format("an earlier process could not record '{}' because device code was not kept",
                                   function->declaration().name);
        return {};
    }();
    return pause.keep_code(lost);
}

namespace {

std::string pause_for(std::span<Cache::Impl* const> caches)
{
    if (is_profiled()) return "a profiler is attached, or WARMGRAPH_TRACK_IMAGES is set";
    for (Cache::Impl* cache : caches)
        if (auto why = cache->why_not_paused(); !why.empty()) return why;
    for (Cache::Impl* cache : caches)
        for (const auto& function : cache->functions.living())
            if (function->declaration().backend()->recording().pause_recording()) {
                log().info("device code is not kept any more, because nothing is recorded: launches cost less, and the "
                           "next miss keeps it again");
                return {};
            }
    return "no device code is kept, or something is being recorded";
}

} // namespace

std::string CacheAccess::pause_recording(std::span<const Cache* const> caches)
{
    std::vector<Cache::Impl*> impls;
    for (const Cache* cache : caches) impls.push_back(impl(*cache).get());
    return pause_for(impls);
}

void Cache::Impl::note_replay() noexcept
try {
    if (!pause.note_replay() || !settings.options.pauses_recording) return;
    Impl* const self = this;
    if (const auto why = pause_for({&self, 1}); !why.empty()) log().debug("device code is still kept: {}", why);
} catch (const std::exception&) { // NOLINT(bugprone-empty-catch): memory; it is tried again
}

} // namespace warmgraph
