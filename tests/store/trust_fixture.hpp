// A fixture for files that seem to belong to another user. It works for any user, root or not.
#pragma once

#include <functional>

#include <grp.h>
#include <sys/stat.h>
#include <unistd.h>

#include "child_process.hpp"
#include "lacking.hpp"
#include "store_fixture.hpp"

namespace warmgraph::test {

/// Runs `body` as a user who is not root and is in no other group, because root may do anything.
template <class Body>
testing::AssertionResult as_ordinary_user(Body body)
{
    constexpr uid_t k_nobody = 65534;
    ChildProcess child([&] {
        if (::geteuid() == 0 && (::setgroups(0, nullptr) != 0 || ::setegid(k_nobody) != 0 || ::seteuid(k_nobody) != 0))
            return 2;
        return body() ? 0 : 1;
    });
    const int status = child.wait();
    return status == 0 ? testing::AssertionSuccess() : testing::AssertionFailure() << "the child ended with " << status;
}

inline constexpr std::uint32_t k_stranger = 4'000'000'001; ///< an id that no user or group of this process has

/// A file system that reports wrong owners and modes for some files and folders.
class LyingFiles final : public ForwardingFileSystem {
public:
    /// The function that changes the reported facts about an absolute path.
    std::function<void(FileInfo&, const Path&)> lie = [](FileInfo&, const Path&) {};
    Path root; ///< the root of the cache, because names in an opened folder are relative to it

private:
    FileInfo told(FileInfo info, const Path& path) const
    {
        lie(info, path.is_absolute() ? path : path.empty() ? root : root / path);
        return info;
    }
    Result<std::unique_ptr<FileSystem>> open_folder_in(FileSystem& inner, const Path& path, Admission admits) override
    {
        return ForwardingFileSystem::open_folder_in(
            inner, path, [this, admits = std::move(admits)](const FileInfo& info, const Path& of) {
                return admits ? admits(told(info, of), of) : Result<void>{};
            });
    }
    Result<std::optional<FileContent>> read_in(FileSystem& inner, const Path& path, std::uint64_t limit) override
    {
        auto content = inner.read(path, limit);
        if (content && *content) (*content)->info = told((*content)->info, path);
        return content;
    }
    Result<std::optional<FileInfo>> info_in(FileSystem& inner, const Path& path) override
    {
        auto info = inner.info(path);
        if (info && *info) *info = told(**info, path);
        return info;
    }
};

} // namespace warmgraph::test
