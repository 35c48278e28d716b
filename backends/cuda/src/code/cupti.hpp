// CUPTI, which reports the device code that the driver loads. It is found at run time, and only for recording.
#pragma once

#include <memory>
#include <string>

#include <cupti.h>

#include "warmgraph/base/error.hpp"

namespace warmgraph::backends::cuda {

#define WARMGRAPH_CUPTI_FUNCTIONS(X)                                                                                   \
    X(cuptiSubscribe)                                                                                                  \
    X(cuptiUnsubscribe)                                                                                                \
    X(cuptiEnableCallback)                                                                                             \
    X(cuptiFinalize)                                                                                                   \
    X(cuptiGetResultString)

/// Immutable after load. Never closed, because its threads and exit handlers need its code.
class Cupti {
public:
    /// `library` is a name or path. Empty means: $WARMGRAPH_CUPTI, else the copy that the process has already loaded (a
    /// second copy would not see the first one's subscriber), the usual names and places, or beside the CUDA libraries
    /// in use (pip). Error: not_recordable with the cure.
    [[nodiscard]] static Result<std::shared_ptr<const Cupti>> load(const std::string& library);

    template <class... Params, class... Args>
    [[nodiscard]] Result<void> call(const char* name, CUptiResult (*function)(Params...), Args... args) const
    {
        const CUptiResult status = function(args...);
        if (status == CUPTI_SUCCESS) return {};
        return std::unexpected(error(name, status));
    }
    /// Makes an error, always with the code not_recordable. The message says if the reason is another subscriber.
    [[nodiscard]] Error error(const char* function, CUptiResult status) const;

    // NOLINTBEGIN(bugprone-macro-parentheses,readability-identifier-naming): CUPTI's names
#define WARMGRAPH_CUPTI_MEMBER(name) decltype(&::name) name = nullptr;
    WARMGRAPH_CUPTI_FUNCTIONS(WARMGRAPH_CUPTI_MEMBER)
#undef WARMGRAPH_CUPTI_MEMBER
    // NOLINTEND(bugprone-macro-parentheses,readability-identifier-naming)
};

} // namespace warmgraph::backends::cuda
