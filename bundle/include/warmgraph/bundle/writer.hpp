// Writes a bundle, member by member.
#pragma once

#include <filesystem>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "warmgraph/base/clock.hpp"
#include "warmgraph/base/signing_key.hpp"
#include "warmgraph/bundle/bundle.hpp"

namespace warmgraph::bundle {

/// The destination of a bundle's bytes.
class Sink {
public:
    Sink() = default;
    Sink(const Sink&) = delete;
    Sink& operator=(const Sink&) = delete;
    virtual ~Sink() = default; ///< without finish() no bundle is left
    [[nodiscard]] virtual Result<void> append(ByteView bytes) = 0;
    /// Writes the bundle's first bytes, which are known last, and so completes the bundle.
    [[nodiscard]] virtual Result<void> finish(ByteView first) = 0;
};

/// Returns a sink that writes a file with warmgraph/base/output_file.hpp: all or nothing, also to links, devices and
/// pipes. The file's mode is 0600.
[[nodiscard]] Result<std::unique_ptr<Sink>> into_file(const std::filesystem::path& path);
/// Returns a sink that writes to `bytes`, which must outlive it.
[[nodiscard]] std::unique_ptr<Sink> into_bytes(Bytes& bytes);

struct WriteOptions {
    int zstd_level = 3;
    std::uint64_t compress_above = 4096;   ///< in bytes; smaller members are not compressed
    const SigningKey* sign_with = nullptr; ///< null: the bundle is not signed
};

/// Writes one bundle. Not thread-safe. The same members in the same order give the same bytes, except for the time of
/// creation.
class Writer {
public:
    explicit Writer(std::unique_ptr<Sink> sink, const WriteOptions& options = {}, Clock& clock = system_clock());

    /// Adds an object in the form that a cache folder has. Verifies the object first; after `corrupt`, `stale` or
    /// `unsupported` nothing was written. Returns false if the bundle already has a member of this name.
    /// invalid_argument: the kind needs a signed bundle, and no key was given.
    [[nodiscard]] Result<bool> add(ArtifactKind kind, const store::Name& name, ByteView object);
    /// Copies a member of another bundle without recompressing it.
    [[nodiscard]] Result<bool> copy(const Bundle& from, const Member& member);
    [[nodiscard]] bool is_signed() const noexcept { return m_options.sign_with != nullptr; }
    [[nodiscard]] bool has(std::string_view name) const { return m_names.contains(name); }
    [[nodiscard]] std::size_t members() const noexcept { return m_records.size(); }
    /// Writes index and header, and so completes the bundle.
    [[nodiscard]] Result<void> finish();

private:
    struct Record {
        Member member; ///< the member without its name and head
        std::string name;
        Bytes head;
    };
    [[nodiscard]] Result<void> put(Record record, ByteView stored);

    std::unique_ptr<Sink> m_sink;
    WriteOptions m_options;
    Clock& m_clock;
    std::uint64_t m_end; ///< position of the end of the written bytes
    std::vector<Record> m_records;
    std::set<std::string, std::less<>> m_names;
};

} // namespace warmgraph::bundle
