// A cache folder in a process that only replays.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "warmgraph/backends/device.hpp"
#include "warmgraph/cachefmt/entry.hpp"
#include "warmgraph/guards/evaluate.hpp"
#include "warmgraph/guards/interface_text.hpp"
#include "warmgraph/replay/executable.hpp"
#include "warmgraph/replay/module_cache.hpp"
#include "warmgraph/store/local_store.hpp"
#include "warmgraph/store/signing.hpp"

namespace warmgraph::replayer {

/// An open device, and its own stream for backends that do not take the caller's streams.
struct Device {
    std::shared_ptr<backends::Device> device;
    std::shared_ptr<backends::Stream> own_stream;
    std::mutex own_stream_mutex; ///< one thread at a time may use the stream, which all functions share
    store::LoadTarget target;    ///< the target for which code is loaded

    [[nodiscard]] static Result<std::shared_ptr<Device>> open(std::string_view id);
    [[nodiscard]] bool takes_streams() const noexcept { return device->limits().flat_addresses; }
};

struct CacheSettings {
    std::string model;
    std::map<std::string, std::string> config{};
    std::string directory{};
    bool is_dynamic = false;
    std::optional<int> world_size{}, global_rank{}, tp_rank{}, pp_rank{};
    guards::Relaxation relaxation{};
    store::StoreMode access = store::StoreMode::read_write;
    store::SigningSource signing{};
    std::vector<std::uint32_t> trusted_owners{};
    std::uint64_t max_constant_bytes = 64ULL << 20;
};

/// One element of the list that wgr_entries_list makes.
struct ListedEntry {
    Digest digest;
    std::string recorded, code;
    std::string misfit; ///< why the entry does not fit; "" if it fits
};

/// An entry that fits this process, verified, with its code loaded.
struct LoadedEntry {
    cachefmt::Entry entry;
    guards::DeclaredInterface interface;
    std::uint64_t function = 0; ///< number of the function in this process, for replay::ModuleUser
};

/// Thread-safe.
class Cache {
public:
    [[nodiscard]] static Result<std::shared_ptr<Cache>> open(CacheSettings settings);

    [[nodiscard]] Result<std::vector<ListedEntry>> entries(const std::string& function, const Device& device) const;
    /// Loads an entry. `digest`: the digest of its guards; nullopt selects the only entry that fits.
    [[nodiscard]] Result<LoadedEntry> load(const std::string& function, const Device& device,
                                           std::optional<Digest> digest);

    [[nodiscard]] store::LocalStore& store() noexcept { return *m_store; }
    [[nodiscard]] replay::ModuleCache& modules() noexcept { return m_modules; }
    /// Returns the source of stored code and constants. It is valid as long as the cache.
    [[nodiscard]] replay::ImageSource images() const;

private:
    explicit Cache(CacheSettings settings) : m_settings(std::move(settings)) {}
    [[nodiscard]] cachefmt::FunctionKey key(const std::string& function, const Device& device) const;
    /// Checks that the entry's facts hold here and that this library can replay its kind. Returns the entry's
    /// declaration.
    [[nodiscard]] Result<guards::DeclaredInterface> judge(const cachefmt::EntryHeader& header,
                                                          const Device& device) const;
    [[nodiscard]] Result<Digest> only_fitting(const std::string& function, const Device& device) const;
    [[nodiscard]] Result<void> check_graph(const cachefmt::Entry& entry, const guards::DeclaredInterface& interface,
                                           const Device& device) const;
    [[nodiscard]] Result<void> load_code(const cachefmt::Entry& entry, const Device& device);

    CacheSettings m_settings;
    std::string m_rank; ///< name of the rank's folder
    std::unique_ptr<store::LocalStore> m_store;
    replay::ModuleCache m_modules;
};

} // namespace warmgraph::replayer
