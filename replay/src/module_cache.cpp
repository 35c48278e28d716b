#include "warmgraph/replay/module_cache.hpp"

#include <algorithm>
#include <optional>

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
struct LoadedImage {
    std::mutex mutex; ///< held during loading: other threads that want the same image must wait anyway
    std::weak_ptr<backends::Module> module;
    ModuleUser user; ///< the user for which the image was loaded
};

/// Whether `user` can use a module that was loaded for `first`.
bool serves(const backends::Module& module, const ModuleUser& first, const ModuleUser& user)
{
    return first == user || !module.keeps_state();
}

struct ImageKey {
    const backends::Device* device = nullptr; ///< the device outlives the row's modules, so its address is not reused
    Digest image;
    Digest variables;
    /// Set if another user's state is in the shared module, so this user needs its own.
    std::optional<ModuleUser> user{};
    auto operator<=>(const ImageKey&) const = default;
};

/// The images of all ModuleCaches.
class Process {
public:
    [[nodiscard]] static Process& instance()
    {
        static Process* const all = new Process; // never destroyed: a cache may be destroyed while the process exits
        return *all;
    }
    [[nodiscard]] std::shared_ptr<LoadedImage> row(const ImageKey& key)
    {
        const std::scoped_lock lock{m_mutex};
        auto& row = m_images[key];
        if (!row) row = std::make_shared<LoadedImage>();
        return row;
    }
    void forget_unused() noexcept
    {
        const std::scoped_lock lock{m_mutex};
        std::erase_if(m_images, [](const auto& known) {
            if (known.second.use_count() != 1) return false;
            // Not locked: only this table has the image. The last user may just have released the mutex.
            const std::scoped_lock after_its_last_user{known.second->mutex};
            return known.second->module.expired();
        });
    }
    [[nodiscard]] static Result<std::shared_ptr<backends::Module>> load(backends::Device& device,
                                                                        const cachefmt::ImageRef& image, ByteView bytes)
    {
        // One thread at a time loads: several threads at once are slower (measured).
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
    std::map<ImageKey, std::shared_ptr<LoadedImage>> m_images;
};

} // namespace

ModuleCache::~ModuleCache()
{
    m_modules.clear();
    Process::instance().forget_unused();
}

Result<std::shared_ptr<backends::Module>> ModuleCache::load(const std::shared_ptr<backends::Device>& device,
                                                            const cachefmt::ImageRef& image, const ModuleUser& user,
                                                            const std::function<Result<Bytes>()>& bytes)
{
    const auto load_into = [&](LoadedImage& row) -> Result<std::shared_ptr<backends::Module>> {
        if (auto loaded = row.module.lock()) return loaded;
        auto contents = bytes();
        if (!contents) return std::unexpected(contents.error());
        auto loaded = Process::load(*device, image, *contents);
        if (!loaded) return loaded;
        row.module = *loaded;
        row.user = user;
        return loaded;
    };
    Key key{device, image.digest, digest_of(image.variables)};
    {
        const std::scoped_lock lock{m_mutex};
        if (const auto known = m_modules.find(key);
            known != m_modules.end() && (user == k_nobody || serves(*known->second.module, known->second.user, user)))
            return known->second.module;
    }
    const ImageKey shared{device.get(), key.image, key.variables};
    {
        const auto row = Process::instance().row(shared);
        const std::scoped_lock loading{row->mutex};
        auto module = load_into(*row);
        if (!module) return module;
        if (row->user == k_nobody) row->user = user; // `user` is the first user that runs the module
        const std::scoped_lock lock{m_mutex};
        const auto known = m_modules.try_emplace(std::move(key), LoadedModule{*module, row->user}).first;
        known->second.user = row->user;
        if (user == k_nobody || serves(**module, row->user, user)) return known->second.module;
    }
    // The module for this user is not stored in this cache: the function's executables own it.
    Process::instance().forget_unused();
    const auto row = Process::instance().row({shared.device, shared.image, shared.variables, user});
    const std::scoped_lock loading{row->mutex};
    return load_into(*row);
}

bool ModuleCache::has(const backends::Device& device, const cachefmt::ImageRef& image) const
{
    const auto row = Process::instance().row({&device, image.digest, digest_of(image.variables)});
    const std::unique_lock free{row->mutex, std::try_to_lock}; // not free: the image is being loaded
    return !free.owns_lock() || !row->module.expired();
}

bool ModuleCache::keeps_state() const
{
    const std::scoped_lock lock{m_mutex};
    return std::ranges::any_of(m_modules, [](const auto& known) { return known.second.module->keeps_state(); });
}

std::size_t ModuleCache::count() const noexcept
{
    const std::scoped_lock lock{m_mutex};
    return m_modules.size();
}

} // namespace warmgraph::replay
