// A cache folder as a backend: its store's tier, which checks owners, writes whole files and reads no half ones.
#include "warmgraph/remote/backends.hpp"
#include "warmgraph/store/local_store.hpp"

namespace warmgraph::remote {
namespace {

/// Passes all calls to the folder's tier. It opens the folder at its first call, so that a file server that hangs
/// stops no start.
class FileBackend final : public Backend {
public:
    explicit FileBackend(std::unique_ptr<store::LocalStore> folder) : m_folder(std::move(folder)) {}

    Result<std::optional<store::StampedBytes>> get(const store::Name& name, store::ReadLimit extent) override
    {
        return tier().get(name, extent);
    }
    Result<void> put(const store::Name& name, ByteView bytes, store::PutMode mode) override
    {
        return tier().put(name, bytes, mode);
    }
    using Tier::put;
    Result<void> remove(const store::Name& name) override { return tier().remove(name); }
    Result<std::vector<store::Name>> list(const store::Scope& scope) override { return tier().list(scope); }
    Result<std::vector<store::StampedEntry>> get_entries(const store::FunctionKey& function,
                                                         store::ReadLimit extent) override
    {
        return tier().get_entries(function, extent);
    }
    Result<void> note_use(const store::Name& name) override { return tier().note_use(name); }

private:
    [[nodiscard]] store::Tier& tier() { return m_folder->tier(); }

    std::unique_ptr<store::LocalStore> m_folder;
};

} // namespace

Result<std::unique_ptr<store::Tier>> file_backend(const Settings& settings)
{
    store::StoreOptions options;
    options.sharing = store::Sharing::group;
    options.access = settings.read_only ? store::StoreMode::read_only : store::StoreMode::read_write;
    options.falls_back = true;
    auto folder = store::LocalStore::open(std::filesystem::path(settings.path) / settings.name_space, options);
    if (!folder) return within(settings.label, folder.error());
    return std::make_unique<FileBackend>(std::move(*folder));
}

} // namespace warmgraph::remote
