#include "warmgraph/store/packing.hpp"

#include <algorithm>
#include <charconv>
#include <optional>

#include "warmgraph/base/printable.hpp"
#include "warmgraph/cachefmt/compression.hpp"
#include "warmgraph/store/settings.hpp"

namespace warmgraph::store {
namespace {

constexpr std::size_t k_shown_of_compression = 64; // bytes of a bad setting in a message
constexpr int k_highest_level = 19;                // higher levels make zstd use more memory for reading

Packing* packing_of(Packings& packings, std::string_view kind)
{
    if (kind == "payloads") return &packings.payloads;
    if (kind == "images") return &packings.images;
    if (kind == "constants") return &packings.constants;
    return nullptr;
}

std::optional<int> level_of(std::string_view text)
{
    int level = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), level);
    if (error != std::errc{} || end != text.data() + text.size() || level < 0 || level > k_highest_level)
        return std::nullopt;
    return level;
}

/// Applies one setting, e.g. "images=3@4K".
bool apply(Packings& packings, std::string_view setting)
{
    const std::size_t equals = std::min(setting.find('='), setting.size());
    Packing* const packing = packing_of(packings, setting.substr(0, equals));
    if (packing == nullptr || equals == setting.size()) return false;
    const std::string_view value = setting.substr(equals + 1);
    const std::size_t at = std::min(value.find('@'), value.size());
    const auto level = level_of(value.substr(0, at));
    if (!level) return false;
    packing->level = *level;
    if (at == value.size()) return true;
    const auto above = parse_bytes("threshold", value.substr(at + 1));
    if (above) packing->above = *above;
    return above.has_value();
}

Result<Bytes> frame_contents(ByteView object, std::uint64_t most)
{
    const auto size = cachefmt::frame_content_size(object);
    if (!size) return fail(ErrorCode::corrupt, "it is not a zstd frame that states its size");
    const std::uint64_t limit = std::min<std::uint64_t>(most, object.size() * k_most_packed);
    if (*size > limit)
        return fail(ErrorCode::corrupt, "its zstd frame of {} bytes holds {}, at most {} are read", object.size(),
                    *size, limit);
    const auto raw = cachefmt::decompress(object, *size);
    if (!raw) return std::unexpected(raw.error());
    const ByteView view = raw->view();
    return Bytes(view.begin(), view.end());
}

} // namespace

Result<Packings> parse_packings(std::string_view what, std::string_view text)
{
    Packings packings;
    std::string_view rest = text;
    while (!rest.empty()) {
        const std::size_t comma = std::min(rest.find(','), rest.size());
        if (!apply(packings, rest.substr(0, comma)) || comma + 1 == rest.size())
            return fail(ErrorCode::invalid_argument,
                        "{} is '{}', expected payloads=, images= or constants= with zstd's level (0: not compressed, "
                        "to {}) and optionally a threshold, such as payloads=9,images=3@64K",
                        what, printable(text, k_shown_of_compression), k_highest_level);
        rest.remove_prefix(std::min(comma + 1, rest.size()));
    }
    return packings;
}

Result<void> set_packing(Packings& packings, std::string_view what, ArtifactKind kind, const Packing& packing)
{
    const bool is_entries = kind == ArtifactKind::entries;
    Packing* const place = packing_of(packings, is_entries ? "payloads" : to_string(kind));
    if (place == nullptr)
        return fail(ErrorCode::invalid_argument, "{} has the kind '{}': expected entries, images or constants", what,
                    to_string(kind));
    if (packing.level < 0 || packing.level > k_highest_level)
        return fail(ErrorCode::invalid_argument, "{} of {} has the level {}: expected 0 (not compressed) to {}", what,
                    to_string(kind), packing.level, k_highest_level);
    *place = packing;
    return {};
}

Result<Bytes> pack(ByteView blob, const Packing& packing)
{
    if (packing.level == 0 || blob.size() <= packing.above) return Bytes{};
    auto frame = cachefmt::compress(blob, packing.level, blob.size() / k_most_packed + 1);
    if (frame && frame->size() >= blob.size()) frame->clear();
    return frame;
}

Result<Bytes> unpack(Bytes object, const Digest& digest, std::uint64_t most)
{
    // A blob may look like a frame without being one, or be a frame itself.
    const bool may_be_frame = cachefmt::frame_content_size(object).has_value();
    if (may_be_frame)
        if (auto contents = frame_contents(object, most); contents && sha256(*contents) == digest) return contents;
    if (const Digest is = sha256(object); is != digest)
        return fail(ErrorCode::corrupt, "image has SHA-256 {}, its name says {}{}", to_hex(is), to_hex(digest),
                    may_be_frame ? ", and the contents of its zstd frame differ as well" : "");
    if (object.size() > most)
        return fail(ErrorCode::corrupt, "image has {} bytes, at most {} are read", object.size(), most);
    return object;
}

} // namespace warmgraph::store
