// What must still happen when a process exits while objects live: std::exit in the middle of something, handles of the C
// interface that nobody closes. Their threads go on while static objects are destroyed, OpenSSL's and the drivers' among them.
#pragma once

#include <functional>
#include <memory>

namespace warmgraph {

/// Runs `hook` when the process exits while this object lives: once, on the thread that exits, later hooks first, before
/// whatever was registered with std::atexit earlier. Never in a forked child. Thread-safe.
class ExitHook {
public:
    /// `hook` must not throw, and ends the threads that it is for; it must not destroy this object.
    explicit ExitHook(std::function<void()> hook);
    ExitHook(const ExitHook&) = delete;
    ExitHook& operator=(const ExitHook&) = delete;
    /// Waits where the hook runs just now.
    ~ExitHook();

private:
    struct Entry;
    friend struct ExitHooks;
    std::shared_ptr<Entry> m_entry;
};

} // namespace warmgraph
