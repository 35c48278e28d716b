#include "tiers/local/commit.hpp"

#include "tiers/local/temporary.hpp"
#include "warmgraph/base/log.hpp"

namespace warmgraph::store {
namespace {

Result<void> try_commit(FileSystem& files, const Path& target, ByteView bytes, Modes modes, Durability durability)
{
    const Path folder = target.parent_path();
    const Path temporary = folder / temporary_name();
    if (auto made = files.make_directories(folder, modes.folder); !made) return made;
    auto done = files.write_new(temporary, bytes, modes.file, durability);
    if (done) done = files.rename(temporary, target, durability);
    if (!done) {
        // If this fails too, the next writer in this folder removes the file after this process has ended.
        if (const auto removed = files.remove(temporary); !removed)
            log().debug("cannot remove a left-over file: {}", removed.error().message);
    }
    return done;
}

} // namespace

Result<void> commit(FileSystem& files, const Path& target, ByteView bytes, Modes modes, Durability durability)
{
    auto done = try_commit(files, target, bytes, modes, durability);
    // `warmgraph clear` may remove the empty folder between make_directories() and the write.
    for (int again = 0; again < 3 && !done && done.error().code == ErrorCode::not_found; ++again) {
        done = try_commit(files, target, bytes, modes, durability);
    }
    return done;
}

} // namespace warmgraph::store
