// An entry's code is given to a driver, which may die of it: a file beside the entry says so as long as that lasts.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "warmgraph/base/error.hpp"
#include "warmgraph/cachefmt/guard_data.hpp"

namespace warmgraph::store {

/// Who is given the code. Deaths count for the same driver and device alone.
struct LoadTarget {
    std::string driver; ///< its version
    std::string device; ///< its name and architecture
};
/// Of a device with this name that tells these facts.
[[nodiscard]] LoadTarget load_target(const std::string& name, const std::vector<cachefmt::Fact>& facts);

/// The load goes on as long as this lives. Its file stays behind where the process dies meanwhile; that is a death. One that
/// just ends is neither a death nor a success.
class LoadMark {
public:
    LoadMark() = default;
    LoadMark(const LoadMark&) = delete;
    LoadMark& operator=(const LoadMark&) = delete;
    virtual ~LoadMark() = default;
    /// The code was loaded, and it ran: earlier deaths of the same driver and device count no more.
    virtual void succeed() noexcept = 0;
    /// It broke what the process has of the device. The file stays, as where the process dies.
    virtual void fail() noexcept = 0;
};

/// Whether the work behind which a load ends is done; an error: it failed. Any thread asks; it must not block.
using IsDone = std::function<Result<bool>()>;

} // namespace warmgraph::store
