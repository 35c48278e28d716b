#include "warmgraph/base/exit_hook.hpp"

#include <cstdlib>
#include <mutex>
#include <utility>
#include <vector>

#include <unistd.h>

#include "warmgraph/base/sha256.hpp"

namespace warmgraph {

struct ExitHook::Entry {
    pid_t process = ::getpid();
    std::mutex mutex; ///< held while the hook runs
    std::function<void()> hook;
};

/// All hooks of the process.
struct ExitHooks {
    using Entry = std::shared_ptr<ExitHook::Entry>;

    std::mutex mutex;
    std::vector<Entry> list;

    static ExitHooks& instance()
    {
        static ExitHooks& hooks = *new ExitHooks; // never destroyed: used until the process ends
        return hooks;
    }
    Entry take_last()
    {
        const std::scoped_lock lock(mutex);
        if (list.empty()) return nullptr;
        Entry last = std::move(list.back());
        list.pop_back();
        return last;
    }
    static void run_all() noexcept
    {
        while (const Entry last = instance().take_last()) {
            const std::scoped_lock running(last->mutex);
            if (last->hook && last->process == ::getpid()) std::exchange(last->hook, nullptr)();
        }
    }
};

ExitHook::ExitHook(std::function<void()> hook) : m_entry(std::make_shared<Entry>())
{
    m_entry->hook = std::move(hook);
    // OpenSSL registers its clean-up at its first use. Use it before our atexit call, so that its clean-up runs later.
    static_cast<void>(sha256({}));
    ExitHooks& all = ExitHooks::instance();
    const std::scoped_lock lock(all.mutex);
    all.list.push_back(m_entry);
    // Once for every hook: a library that was loaded since the last hook may have registered a clean-up.
    static_cast<void>(std::atexit(ExitHooks::run_all));
}

ExitHook::~ExitHook()
{
    {
        ExitHooks& all = ExitHooks::instance();
        const std::scoped_lock lock(all.mutex);
        std::erase(all.list, m_entry);
    }
    const std::scoped_lock running(m_entry->mutex);
    m_entry->hook = nullptr;
}

} // namespace warmgraph
