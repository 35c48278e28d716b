// Makes a bundle, member by member.
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

/// Where a bundle's bytes go.
class Sink {
public:
    Sink() = default;
    Sink(const Sink&) = delete;
    Sink& operator=(const Sink&) = delete;
    virtual ~Sink() = default; ///< without finish(): nothing is left
    [[nodiscard]] virtual Result<void> append(ByteView bytes) = 0;
    /// The first bytes, which are known last; then the whole is there.
    [[nodiscard]] virtual Result<void> finish(ByteView first) = 0;
};

/// As warmgraph/base/output_file.hpp writes it: whole or not at all, through links, into devices and pipes. Its mode is 0600.
[[nodiscard]] Result<std::unique_ptr<Sink>> into_file(const std::filesystem::path& path);
/// `bytes` must outlive it.
[[nodiscard]] std::unique_ptr<Sink> into_bytes(Bytes& bytes);

struct WriteOptions {
    int zstd_level = 3;
    std::uint64_t compress_above = 4096;   ///< bytes; smaller members are stored as they are
    const SigningKey* sign_with = nullptr; ///< null: unsigned
};

/// Use once. Not thread-safe. Equal members in an equal order give equal bytes, but for the time.
class Writer {
public:
    explicit Writer(std::unique_ptr<Sink> sink, const WriteOptions& options = {}, Clock& clock = system_clock());

    /// An object as it lies in a cache folder; held to its kind first: `corrupt`, `stale`, `unsupported` and nothing is
    /// written. False: a member of this name is in it already. invalid_argument: a kind that needs a signed bundle, and
    /// there is no key.
    [[nodiscard]] Result<bool> add(ArtifactKind kind, const store::Name& name, ByteView object);
    /// A member of another bundle, as it is stored there.
    [[nodiscard]] Result<bool> copy(const Bundle& from, const Member& member);
    [[nodiscard]] bool is_signed() const noexcept { return m_options.sign_with != nullptr; }
    [[nodiscard]] bool has(std::string_view name) const { return m_names.contains(name); }
    [[nodiscard]] std::size_t members() const noexcept { return m_records.size(); }
    /// Index and header.
    [[nodiscard]] Result<void> finish();

private:
    struct Record {
        Member member; ///< without name and head
        std::string name;
        Bytes head;
    };
    [[nodiscard]] Result<void> put(Record record, ByteView stored);

    std::unique_ptr<Sink> m_sink;
    WriteOptions m_options;
    Clock& m_clock;
    std::uint64_t m_end; ///< of what was written
    std::vector<Record> m_records;
    std::set<std::string, std::less<>> m_names;
};

} // namespace warmgraph::bundle
