// Stops threads when a process exits while their owners still exist, e.g. after std::exit, or when C code never closes
// its handles. Otherwise these threads would run on while static objects (of OpenSSL, of drivers) are destroyed.
#pragma once

#include <functional>
#include <memory>

namespace warmgraph {

/// Runs `hook` once, on the exiting thread, if the process exits while this object lives. Newer hooks run first, and
/// all run before functions that were registered with std::atexit earlier. A forked child does not run it. Thread-safe.
class ExitHook {
public:
    /// `hook` must end its threads. It must not throw, and must not destroy this object.
    explicit ExitHook(std::function<void()> hook);
    ExitHook(const ExitHook&) = delete;
    ExitHook& operator=(const ExitHook&) = delete;
    /// Waits until the hook has returned, if it is running.
    ~ExitHook();

private:
    struct Entry;
    friend struct ExitHooks;
    std::shared_ptr<Entry> m_entry;
};

} // namespace warmgraph
