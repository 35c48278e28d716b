#include "faults.hpp"

#include <mutex>
#include <string>
#include <vector>

#include "driver_state.hpp"
#include "fake_cuda.h"

namespace fake_cuda {
namespace {

struct Fault {
    std::string entry;
    long first = 0, times = 0; ///< `first` is counted down to 0
    int status = 0;
    bool is_hit = false;
};

struct Log {
    std::mutex mutex;
    std::vector<const char*> calls;
    std::optional<Fault> fault;
};

Log& the_log()
{
    static Log log;
    return log;
}

} // namespace

std::optional<int> enter(const char* entry)
{
    Log& log = the_log();
    const std::scoped_lock lock(log.mutex);
    log.calls.push_back(entry);
    if (!log.fault || (!log.fault->entry.empty() && log.fault->entry != entry)) return std::nullopt;
    Fault& fault = *log.fault;
    const long age = 1 - --fault.first; // 1 for the first call that fails, 2 for the next
    if (age < 1 || (fault.times != 0 && age > fault.times)) return std::nullopt;
    fault.is_hit = true;
    return fault.status;
}

} // namespace fake_cuda

using namespace fake_cuda;

FAKE_CUDA_EXPORT void fake_cuda_fail(const char* entry, long first, long times, int status)
{
    const std::scoped_lock lock(the_log().mutex);
    the_log().fault = Fault{entry, first, times, status, false};
}

FAKE_CUDA_EXPORT void fake_cuda_fail_at(long call, int status) { fake_cuda_fail("", call, 1, status); }

FAKE_CUDA_EXPORT int fake_cuda_was_hit(void)
{
    const std::scoped_lock lock(the_log().mutex);
    return the_log().fault && the_log().fault->is_hit ? 1 : 0;
}

FAKE_CUDA_EXPORT long fake_cuda_calls(void)
{
    const std::scoped_lock lock(the_log().mutex);
    return static_cast<long>(the_log().calls.size());
}

FAKE_CUDA_EXPORT const char* fake_cuda_call(long index)
{
    const std::scoped_lock lock(the_log().mutex);
    const auto& calls = the_log().calls;
    return index >= 0 && static_cast<std::size_t>(index) < calls.size() ? calls[static_cast<std::size_t>(index)]
                                                                        : nullptr;
}

FAKE_CUDA_EXPORT long fake_cuda_live_objects(void)
{
    long count = 0;
    for (const auto& [kind, live] : live_objects()) count += live;
    return count;
}

FAKE_CUDA_EXPORT const char* fake_cuda_live_text(void)
{
    static thread_local std::string text;
    text.clear();
    for (const auto& [kind, live] : live_objects()) text += std::string(kind) + " " + std::to_string(live) + ", ";
    return text.c_str();
}

FAKE_CUDA_EXPORT void fake_cuda_reset(void)
{
    {
        const std::scoped_lock lock(the_log().mutex);
        the_log().calls.clear();
        the_log().fault.reset();
    }
    forget_state();
}
