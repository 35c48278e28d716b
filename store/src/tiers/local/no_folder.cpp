#include "tiers/local/no_folder.hpp"

namespace warmgraph::store {
namespace {

std::unexpected<Error> not_there() { return fail(ErrorCode::permission_denied, "there is no cache folder to write"); }

class NoFolder final : public FileSystem {
public:
    Result<std::unique_ptr<FileSystem>> open_folder(const Path&, Admission) override
    {
        return fail(ErrorCode::not_found, "there is no cache folder");
    }
    Result<std::optional<FileContent>> read(const Path&, std::uint64_t) override { return std::nullopt; }
    Result<void> write_new(const Path&, ByteView, std::uint32_t, Durability) override { return not_there(); }
    Result<void> rename(const Path&, const Path&, Durability) override { return not_there(); }
    Result<void> remove(const Path&) override { return {}; }
    Result<void> make_directories(const Path&, std::uint32_t) override { return not_there(); }
    Result<std::vector<DirectoryItem>> list(const Path&) override { return std::vector<DirectoryItem>{}; }
    Result<std::optional<FileInfo>> info(const Path&) override { return std::nullopt; }
    Result<void> touch(const Path&) override { return not_there(); }
    Result<std::unique_ptr<FileLock>> try_lock(const Path&, std::uint32_t) override { return not_there(); }
    Result<std::unique_ptr<ByteLocks>> open_byte_locks(const Path&, std::optional<std::uint32_t>) override
    {
        return not_there();
    }
    Result<std::uint64_t> disk_bytes(const Path&) override { return not_there(); }
};

} // namespace

std::unique_ptr<FileSystem> no_folder() { return std::make_unique<NoFolder>(); }

} // namespace warmgraph::store
