// Restoring many entries ahead of their first calls.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "warmgraph/export.hpp"
#include "warmgraph/spec.hpp"

namespace warmgraph {

struct OpenProgress {
    std::size_t opened = 0;
    std::size_t failed = 0; ///< damaged, or refused by the driver
    /// Entries whose facts hold here, and those whose header cannot be read. 1 while the rest is not planned yet
    /// (OpenOptions::first).
    std::size_t total = 0;
    std::string function; ///< of the last one
    double elapsed_ms = 0;
};

enum class OpenWait : std::uint8_t { first, all };

struct OpenOptions {
    /// The function whose last used entry is restored before anything else is looked at: headers of many others take
    /// milliseconds. open_all returns then, and the rest is planned and restored behind it, after the first call of that
    /// function or 10 ms later. That call enqueues the nodes one by one where that does the same; its graph is instantiated
    /// after it (not with OpenWait::all). Empty, or no function that has an entry which fits: the most urgent of all.
    std::string first{};
    /// Higher is restored first; among equals, and without it, the most recently used. `inputs` as recorded. It is
    /// asked before open_all returns, in its thread; what it throws passes through. Where `first` was restored it is asked
    /// afterwards, in a thread of the opening's own, and what it throws is logged: all are equal then.
    std::function<int(std::string_view function, std::span<const TensorDecl> inputs)> urgency{};
    /// After each entry, in the thread that restored it, never two at a time. What it throws is logged. It may exit the
    /// process; what is restored while the Opening goes away is not told.
    std::function<void(const OpenProgress&)> progress{};
    OpenWait wait = OpenWait::first;
    std::uint32_t threads = 0; ///< that restore at once; 0: eight, or the machine's if it has fewer
};

/// A running Cache::open_all. Move-only. Its destructor stops after the entries that are being restored; what was
/// restored stays with its function, and is uploaded by its first launch where that was not done yet. It may outlive
/// the Cache.
class WARMGRAPH_API Opening {
public:
    Opening(Opening&&) noexcept;
    Opening& operator=(Opening&&) noexcept;
    ~Opening();

    /// Blocks until all are restored and what their first launches need is on the device. From one thread at a time,
    /// and not from the progress callback.
    void wait();
    [[nodiscard]] OpenProgress progress() const; ///< thread-safe

    struct Impl; ///< opaque

private:
    friend class Cache;
    explicit Opening(std::unique_ptr<Impl> impl) noexcept;
    std::unique_ptr<Impl> m_impl;
};

} // namespace warmgraph
