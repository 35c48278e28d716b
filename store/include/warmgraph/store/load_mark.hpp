// A file beside the entry while a driver loads the entry's code. It shows later that a process died in the load.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "warmgraph/base/error.hpp"
#include "warmgraph/cachefmt/guard_data.hpp"

namespace warmgraph::store {

/// The driver and device that load the code. Deaths count only for the same driver and device.
struct LoadTarget {
    std::string driver; ///< the driver's version
    std::string device; ///< the device's name and architecture
};
/// The target for a device with this name and these facts.
[[nodiscard]] LoadTarget load_target(const std::string& name, const std::vector<cachefmt::Fact>& facts);

/// The load lasts as long as this object. If the process dies meanwhile, the file stays behind and counts as a death.
/// Destroying the object without succeed() or fail() counts as neither.
class LoadMark {
public:
    LoadMark() = default;
    LoadMark(const LoadMark&) = delete;
    LoadMark& operator=(const LoadMark&) = delete;
    virtual ~LoadMark() = default;
    /// The code was loaded and it ran: earlier deaths on the same driver and device no longer count.
    virtual void succeed() noexcept = 0;
    /// The load broke the process's device context. The file stays, as if the process had died.
    virtual void fail() noexcept = 0;
};

/// Whether the work that ends a load is done; an error: the work failed. Any thread may call it; it must not block.
using IsDone = std::function<Result<bool>()>;

} // namespace warmgraph::store
