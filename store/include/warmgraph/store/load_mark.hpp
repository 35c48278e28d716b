// An entry's code is given to a driver, which may die of it: a file beside the entry says so as long as that lasts.
#pragma once

#include <string>

namespace warmgraph::store {

/// Who is given the code. Deaths count for the same driver and device alone.
struct LoadTarget {
    std::string driver; ///< its version
    std::string device; ///< its name and architecture
};

/// The load goes on as long as this lives. Its file stays behind where the process dies meanwhile; that is a death.
class LoadMark {
public:
    LoadMark() = default;
    LoadMark(const LoadMark&) = delete;
    LoadMark& operator=(const LoadMark&) = delete;
    virtual ~LoadMark() = default;
    /// The code is loaded: earlier deaths of the same driver and device count no more.
    virtual void succeed() noexcept = 0;
};

} // namespace warmgraph::store
