#include "warmgraph/replay/module_cache.hpp"

namespace warmgraph::replay {

namespace {

Digest digest_of(const std::vector<cachefmt::ModuleVariable>& variables)
{
    if (variables.empty()) return {};
    Bytes all;
    for (const auto& variable : variables) {
        append(all, static_cast<std::uint64_t>(variable.name.size()));
        for (const char c : variable.name) append(all, c);
        append(all, static_cast<std::uint64_t>(variable.contents.size()));
        all.insert(all.end(), variable.contents.begin(), variable.contents.end());
    }
    return sha256(all);
}

/// One image of the process.
struct Slot {
    std::mutex mutex; ///< held while it is loaded: who wants the same image must wait for it anyway
    std::weak_ptr<backends::Module> module;
};

struct SlotKey {
    const backends::Device* device = nullptr; ///< its modules go before it: a slot never meets another one
    Digest image;
    Digest variables;
    auto operator<=>(const SlotKey&) const = default;
};

/// Every ModuleCache's images.
class Process {
public:
    [[nodiscard]] static Process& instance()
    {
        static Process* const all = new Process; // never destroyed: a cache may go away while the process exits
        return *all;
    }
    [[nodiscard]] std::shared_ptr<Slot> slot(const SlotKey& key)
    {
        const std::scoped_lock lock{m_mutex};
        auto& slot = m_slots[key];
        if (!slot) slot = std::make_shared<Slot>();
        return slot;
    }
    void forget_unused() noexcept
    {
        const std::scoped_lock lock{m_mutex};
        std::erase_if(m_slots, [](const auto& known) {
            if (known.second.use_count() != 1) return false;
            const std::scoped_lock after_its_last_user{known.second->mutex}; // free: only this table has it
            return known.second->module.expired();
        });
    }
    [[nodiscard]] static Result<std::shared_ptr<backends::Module>> load(backends::Device& device,
                                                                        const cachefmt::ImageRef& image, ByteView bytes)
    {
        // Drivers load no faster from several threads (design 6.7: slower).
        static std::mutex one_at_a_time;
        const std::scoped_lock lock{one_at_a_time};
        auto module = device.load(bytes);
        if (!module) return std::unexpected(module.error());
        if (auto written = (*module)->write_variables(image.variables); !written)
            return std::unexpected(written.error());
        return std::move(*module);
    }

private:
    std::mutex m_mutex;
    std::map<SlotKey, std::shared_ptr<Slot>> m_slots;
};

} // namespace

ModuleCache::~ModuleCache()
{
    m_modules.clear();
    Process::instance().forget_unused();
}

Result<std::shared_ptr<backends::Module>> ModuleCache::load(const std::shared_ptr<backends::Device>& device,
                                                            const cachefmt::ImageRef& image,
                                                            const std::function<Result<Bytes>()>& bytes)
{
    Key key{device, image.digest, digest_of(image.variables)};
    {
        const std::scoped_lock lock{m_mutex};
        if (const auto known = m_modules.find(key); known != m_modules.end()) return known->second;
    }
    const auto slot = Process::instance().slot({device.get(), key.image, key.variables});
    const std::scoped_lock loading{slot->mutex};
    auto module = slot->module.lock();
    if (!module) {
        auto contents = bytes();
        if (!contents) return std::unexpected(contents.error());
        auto loaded = Process::load(*device, image, *contents);
        if (!loaded) return std::unexpected(loaded.error());
        module = std::move(*loaded);
        slot->module = module;
    }
    const std::scoped_lock lock{m_mutex};
    return m_modules.try_emplace(std::move(key), std::move(module)).first->second;
}

std::size_t ModuleCache::count() const noexcept
{
    const std::scoped_lock lock{m_mutex};
    return m_modules.size();
}

} // namespace warmgraph::replay
