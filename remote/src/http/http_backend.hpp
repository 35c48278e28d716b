// A server with GET, PUT, HEAD and DELETE as a tier: names are paths, and an index beside the objects stands for the listing
// that HTTP lacks (index.hpp).
#pragma once

#include <atomic>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "folder_index.hpp"
#include "objects.hpp"
#include "warmgraph/remote/backends.hpp"
#include "warmgraph/remote/settings.hpp"

namespace warmgraph::remote::http {

/// Thread-safe. After a fork, the child has connections of its own. Stamps have the size and, from the ETag, the version.
class HttpBackend final : public Backend {
public:
    HttpBackend(const CurlLibrary& library, Address address, const Settings& settings);
    HttpBackend(const HttpBackend&) = delete;
    HttpBackend& operator=(const HttpBackend&) = delete;
    ~HttpBackend() override;

    Result<std::optional<store::StampedBytes>> get(const store::Name& name, store::ReadLimit extent) override;
    /// An object that is there and may stay costs a HEAD, and its bytes are not sent. A failure to write the index is no failure.
    Result<void> put(const store::Name& name, ByteView bytes, store::PutMode mode) override;
    using Tier::put;
    Result<void> remove(const store::Name& name) override;
    /// From the index: the latest 4,096 names of a kind or function.
    Result<std::vector<store::Name>> list(const store::Scope& scope) override;
    /// One request where the index has the bytes. From the beginning on, an entry may have fewer bytes than are wanted, but at
    /// least its header. Names that are gone may be among them.
    Result<std::vector<store::StampedEntry>> get_entries(const store::FunctionKey& function,
                                                         store::ReadLimit extent) override;

private:
    /// The parts that belong to one process. A lock or a connection of the parent must not be used by a child.
    struct OfProcess {
        OfProcess(const CurlLibrary& library, const Address& address, const Settings& settings);
        pid_t process;
        HttpClient client;
        Objects objects;
        FolderIndexes indexes;
        std::mutex mutex;                       // guards the rest
        std::set<std::string> listed_functions; ///< those that this process found or put in the index of functions
    };
    [[nodiscard]] OfProcess& own();
    void add_to_index(const store::Name& name, ByteView bytes, const std::string& etag);
    void add_function(const store::FunctionKey& function);
    [[nodiscard]] Result<void> list_into(std::vector<store::Name>& names, const store::Scope& scope);
    [[nodiscard]] std::unexpected<Error> failed(std::string_view doing, std::string_view text, Error error) const;

    const CurlLibrary& m_library;
    const Address m_address;
    const Settings m_settings; ///< without credentials
    std::atomic<OfProcess*> m_own{nullptr};
};

} // namespace warmgraph::remote::http
