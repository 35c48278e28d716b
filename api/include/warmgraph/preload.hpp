// Restoring entries before the calls that need them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "warmgraph/export.hpp"
#include "warmgraph/spec.hpp"

namespace warmgraph {

class Device;

struct PreloadProgress {
    std::size_t loaded = 0;
    std::size_t failed = 0; ///< damaged, or refused by the driver
    std::size_t total = 0;  ///< what is planned by now
    std::string function;   ///< of the last one
    double elapsed_ms = 0;
};

/// Cache::preload returns when this is done.
enum class PreloadWait : std::uint8_t {
    first, ///< the most urgent entry is restored, in the caller's thread
    all,   ///< all entries are restored
    none,  ///< nothing is restored yet
};

struct PreloadOptions {
    /// Whose entries. Empty: all those of functions that exist now whose facts hold here. Names of functions, which need not be
    /// wrapped yet: the last used entry of each that `device` fits; a name that ends in '*' stands for all functions of the
    /// model that begin so, for a program that has a table of them. Graphs by name take of the device, besides their callers'
    /// memory, at most a hundredth of its memory, or 256 MiB where that is more, until calls take them; where there is no room,
    /// and of an entry that has events, semaphores, host functions or code that keeps state, the device code alone is loaded.
    std::vector<std::string> functions{};
    const Device* device = nullptr; ///< of the functions that are named
    /// The function whose last used entry is restored before anything else is looked at: headers of many others take
    /// milliseconds. preload returns then (not with PreloadWait::all), and the rest is planned behind it. That call enqueues the
    /// nodes one by one where that does the same, and its graph is instantiated after it. Empty, or no function that has an
    /// entry which fits: the most urgent of all.
    std::string first{};
    /// Higher is restored first; among equals, and without it, the most recently used (of functions that are named: in the order
    /// of their last use, as a program calls a table of them again). `inputs` as recorded. With PreloadWait::first it is called
    /// before preload returns, in its thread, and what it throws passes through. Else, and behind `first`, it is called in a
    /// thread of the cache, and what it throws is logged: all are equal then.
    std::function<int(std::string_view function, std::span<const TensorDecl> inputs)> urgency{};
    /// Called after each entry, in the thread that restored it, never two at a time. What it throws is logged. It may exit the
    /// process; entries that are restored while the Preload is destroyed are not told.
    std::function<void(const PreloadProgress&)> progress{};
    PreloadWait wait = PreloadWait::first;
    std::uint32_t threads = 0; ///< that restore at once, eight at most; 0: eight, or the machine's if it has fewer
};

/// A running Cache::preload. Move-only. Its destructor stops after the entries that are being restored; those that were
/// restored stay for their calls. It may outlive the Cache.
class WARMGRAPH_API Preload {
public:
    Preload(Preload&&) noexcept;
    Preload& operator=(Preload&&) noexcept;
    ~Preload();

    /// Blocks until all are restored and what their first launches need is on the device. Not from the progress callback.
    void wait();
    [[nodiscard]] PreloadProgress progress() const; ///< thread-safe
    /// It goes on by itself, to the end of its cache at most, and this object is empty.
    void detach() noexcept;

    struct Impl; ///< opaque

private:
    friend class Cache;
    explicit Preload(std::unique_ptr<Impl> impl) noexcept;
    std::unique_ptr<Impl> m_impl;
};

} // namespace warmgraph
