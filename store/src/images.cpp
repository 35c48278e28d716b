#include "commit.hpp"
#include "disk.hpp"
#include "temporary.hpp"

namespace warmgraph::store {

Result<std::optional<Bytes>> LocalStore::image(const Digest& digest, std::uint64_t size)
{
    const Disk& disk = m_impl->disk;
    auto found = disk.read_image(digest, size);
    if (!found) return std::unexpected(found.error());
    if (!*found) return std::nullopt;
    if (!(*found)->content) {
        disk.refuse(disk.layout.image(digest), **found);
        return std::nullopt;
    }
    return std::move(*(*found)->content);
}

Result<bool> LocalStore::publish_image(ByteView image)
{
    const Disk& disk = m_impl->disk;
    if (auto ok = disk.may_make("publish an image"); !ok) return std::unexpected(ok.error());
    if (image.size() > disk.options.image_bytes) {
        return fail(ErrorCode::unsupported,
                    "image has {} bytes, at most {} are cached: split the program into smaller modules", image.size(),
                    disk.options.image_bytes);
    }
    const Digest digest = sha256(image);
    const Path path = disk.layout.image(digest);
    // A damaged one must be replaced, and only reading it tells. Where reading fails, writing decides.
    if (auto present = disk.read_image(digest); present && *present) {
        if (!(*present)->content) {
            disk.refuse(path, **present);
        } else if (disk.files.touch(path)) { // else it was removed as unused just now
            return false;
        }
    }
    if (auto done = commit(disk.files, path, image, disk.modes); !done) {
        return within(fmt::format("publish image {}", short_hex(digest)), done.error());
    }
    remove_abandoned(disk.files, disk.clock, path.parent_path());
    return true;
}

Result<std::vector<std::pair<Digest, std::uint64_t>>> LocalStore::images() const { return m_impl->disk.images(); }

} // namespace warmgraph::store
