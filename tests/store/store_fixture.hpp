// A fixture with a new cache folder, and functions that make entries for it.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <fstream>
#include <map>
#include <string>

#include "expect_error.hpp"
#include "faulty_file_system.hpp"
#include "matchers.hpp"
#include "temp_dir.hpp"
#include "warmgraph/base/clock.hpp"
#include "warmgraph/base/file_system.hpp"
#include "warmgraph/base/log.hpp"
#include "warmgraph/store/local_store.hpp"

namespace warmgraph::test {

namespace fs = std::filesystem;
using store::Entry;
using store::EntryHeader;
using store::EntryKey;
using store::FunctionKey;
using store::LocalStore;
using store::StoreOptions;

inline const FunctionKey k_decode{"tiny_static_clgraphcache_0123456789ab", "world1global_rank0", "decode"};
inline const FunctionKey k_prompt{"tiny_static_clgraphcache_0123456789ab", "world1global_rank0", "prompt"};

/// A device image with these bytes. An entry refers to it by its digest.
inline Bytes image_of(std::string_view text) { return Bytes(as_bytes(text).begin(), as_bytes(text).end()); }

/// An entry of a graph that fills a buffer. It names `images`. Entries with different values of `variant` have
/// different guards. `mark` is stored in the entry, and changes its bytes but not its key.
inline Entry make_entry(const FunctionKey& function, int variant = 0, const std::string& mark = "",
                        const std::vector<Bytes>& images = {})
{
    Entry entry;
    entry.header.guards.facts = {{"config.variant", std::to_string(variant), cachefmt::Role::must_match}};
    entry.header.key = {function, cachefmt::guards_digest(entry.header.guards)};
    entry.header.info.created = "2026-11-20T10:11:12Z";
    entry.header.info.verification = mark;
    entry.header.info.node_count = 1;
    entry.header.info.image_count = static_cast<std::uint32_t>(images.size());
    entry.graph.regions = {{"logits", cachefmt::RegionKind::output, 1024, 16, {}}};
    for (const Bytes& image : images) entry.graph.images.push_back({sha256(image), image.size(), {}, "kernels"});
    entry.graph.nodes = {cachefmt::FillNode{{}, Bytes(4), 1024}};
    return entry;
}

/// All files below a folder, with their contents, by their path relative to the folder. For a folder the content is
/// "(folder)".
inline std::map<std::string, std::string> snapshot(const fs::path& root)
{
    std::map<std::string, std::string> files;
    for (const auto& item : fs::recursive_directory_iterator(root)) {
        std::string& text = files[item.path().lexically_relative(root).string()];
        if (item.is_directory()) {
            text = "(folder)";
        } else if (item.is_regular_file()) {
            std::ifstream file(item.path(), std::ios::binary);
            text.assign(std::istreambuf_iterator<char>(file), {});
        } else {
            text = "(other)";
        }
    }
    return files;
}

/// The sorted names in a folder. The tag and the leases are left out, because they have their own tests.
inline std::vector<std::string> names_in(const fs::path& folder)
{
    std::vector<std::string> names;
    if (!fs::exists(folder)) return names;
    for (const auto& item : fs::directory_iterator(folder)) names.push_back(item.path().filename().string());
    std::erase(names, "CACHEDIR.TAG");
    std::erase(names, ".leases");
    std::sort(names.begin(), names.end());
    return names;
}

/// A clock on which time passes only when a test adds some. So no time limit is reached.
class SetClock final : public Clock {
public:
    [[nodiscard]] std::chrono::steady_clock::time_point steady() const noexcept override
    {
        return std::chrono::steady_clock::time_point{} + std::chrono::microseconds(since_start.load());
    }
    [[nodiscard]] std::chrono::system_clock::time_point wall() const noexcept override { return system_clock().wall(); }
    void sleep_for(std::chrono::nanoseconds time) override
    {
        since_start += std::chrono::duration_cast<std::chrono::microseconds>(time).count();
    }
    std::atomic<std::int64_t> since_start = 0; ///< microseconds
};

class StoreTest : public testing::Test {
protected:
    /// These tests damage hundreds of files on purpose. The warnings about them would hide a test's own message.
    StoreTest() { log().set_level(spdlog::level::off); }
    std::unique_ptr<LocalStore> open(const StoreOptions& options = {}, FileSystem& files = posix_file_system(),
                                     Clock& clock = system_clock())
    {
        return take(LocalStore::open(m_root, options, files, clock));
    }
    fs::path folder(const FunctionKey& key = k_decode) const
    {
        return m_root / key.model_info / key.rank / key.function;
    }
    fs::path path_of(const EntryKey& key) const { return folder(key.function) / (to_hex(key.guards_digest) + ".wg"); }
    fs::path path_of(const Bytes& image) const
    {
        const std::string hex = to_hex(sha256(image));
        return m_root / "images" / hex.substr(0, 2) / hex;
    }
    /// Inverts one bit of the byte.
    static void flip(const fs::path& path, std::uint64_t byte)
    {
        std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
        file.seekg(static_cast<std::streamoff>(byte));
        const int old = file.get();
        file.seekp(static_cast<std::streamoff>(byte));
        file.put(static_cast<char>(old ^ 1));
    }
    static void write(const fs::path& path, std::string_view text)
    {
        fs::create_directories(path.parent_path());
        std::ofstream(path, std::ios::binary) << text;
    }
    static std::string text_of(const fs::path& path)
    {
        std::ifstream file(path, std::ios::binary);
        return {std::istreambuf_iterator<char>(file), {}};
    }
    static void make_older(const fs::path& path, std::chrono::minutes age)
    {
        fs::last_write_time(path, fs::file_time_type::clock::now() - age);
    }
    /// The names in quarantine, without the .reason files.
    std::vector<std::string> quarantined() const
    {
        std::vector<std::string> names = names_in(m_root / "quarantine");
        std::erase_if(names, [](const std::string& name) { return name.ends_with(".reason"); });
        return names;
    }

    TempDir m_dir;
    fs::path m_root = m_dir.path() / "cache";
    SetClock m_set_clock; ///< the clock for operations that have a time limit
};

} // namespace warmgraph::test
