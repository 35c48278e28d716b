// Preloading: restores entries before the calls that need them.
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
    std::size_t loaded = 0; ///< restored entries
    std::size_t failed = 0; ///< entries that are damaged, or that the driver refused
    std::size_t total = 0;  ///< entries that are planned so far
    std::string function;   ///< the function of the last entry
    double elapsed_ms = 0;  ///< since Cache::preload was called
};

/// When Cache::preload returns.
enum class PreloadWait : std::uint8_t {
    first, ///< once the most urgent entry is restored, in the caller's thread
    all,   ///< once all entries are restored
    none,  ///< at once
};

struct PreloadOptions {
    /// The functions whose entries are restored. Empty: all functions that exist now, with all their entries whose
    /// facts hold here. Otherwise names of functions, which need not be wrapped yet: of each function, the last used
    /// entry that fits `device`. A name that ends in '*' stands for all functions of the model whose names begin with
    /// the text before it. Graphs that are restored by name need memory until their first call. All of them together
    /// use at most a hundredth of the device's memory, or 256 MiB if that is more. For an entry that does not fit into
    /// this limit, only the device code is loaded. For an entry with events, semaphores, host functions or code that
    /// keeps state, also only the device code is loaded.
    std::vector<std::string> functions{};
    const Device* device = nullptr; ///< the device of the functions that are named
    /// The function whose last used entry is restored first, before other headers are read, which takes milliseconds
    /// for many entries. With PreloadWait::first Cache::preload returns after this entry, and the rest is planned in
    /// the background. The first call of this function enqueues the graph's nodes one by one where that gives the
    /// same result, and the graph is instantiated after that call. Empty, or a function without an entry that fits: the
    /// most urgent entry of all comes first.
    std::string first{};
    /// Returns how urgent an entry is; entries with a higher number are restored first. Among entries of the same
    /// urgency, and without this function, the most recently used entry comes first. Functions that are given by name
    /// come in the other order, the least recently used first, because a program calls its functions in the same order
    /// again. `inputs` are the recorded inputs. With PreloadWait::first and without PreloadOptions::first it is called
    /// in the thread of Cache::preload, and its exceptions pass through. Otherwise it is called in a thread of the
    /// cache; an exception is logged, and all entries then have the same urgency.
    std::function<int(std::string_view function, std::span<const TensorDecl> inputs)> urgency{};
    /// Called after each entry, in the thread that restored it, one call at a time. Exceptions are logged. The callback
    /// may exit the process. It is not called for entries that are restored while the Preload is destroyed.
    std::function<void(const PreloadProgress&)> progress{};
    PreloadWait wait = PreloadWait::first;
    std::uint32_t threads = 0; ///< threads that restore at once, eight at most; 0: eight, or as many as the machine has
};

/// A running Cache::preload. Move-only. The destructor stops it after the entries that are being restored; restored
/// entries stay for their calls. It may outlive the Cache.
class WARMGRAPH_API Preload {
public:
    Preload(Preload&&) noexcept;
    Preload& operator=(Preload&&) noexcept;
    ~Preload();

    /// Blocks until all entries are restored and the device has everything that their first launches need. Must not be
    /// called from the progress callback.
    void wait();
    [[nodiscard]] PreloadProgress progress() const; ///< thread-safe
    /// Lets the preload go on by itself, until its cache is destroyed at the latest. This object is then empty.
    void detach() noexcept;

    struct Impl; ///< opaque

private:
    friend class Cache;
    explicit Preload(std::unique_ptr<Impl> impl) noexcept;
    std::unique_ptr<Impl> m_impl;
};

} // namespace warmgraph
