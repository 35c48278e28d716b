#include "entry_file.hpp"

#include "warmgraph/cachefmt/codec.hpp"

namespace warmgraph::tool {

std::filesystem::path path_of(const std::filesystem::path& root, const cachefmt::EntryKey& key)
{
    const cachefmt::FunctionKey& function = key.function;
    return root / function.model_info / function.rank / function.function / (to_hex(key.guards_digest) + ".wg");
}

Result<cachefmt::Entry> read_entry(const Context& context, const std::filesystem::path& path,
                                   const cachefmt::EntryKey& key)
{
    const cachefmt::Limits limits;
    const std::uint64_t most = cachefmt::k_envelope_bytes + limits.header_bytes + limits.payload_stored_bytes;
    const auto content = context.files.read(path, most + 1);
    if (!content) return within(path.string(), content.error());
    if (!*content) return fail(ErrorCode::not_found, "{} does not exist", path.string());
    auto entry = cachefmt::decode((*content)->bytes, key, limits);
    if (!entry) return within(path.string(), entry.error());
    return entry;
}

} // namespace warmgraph::tool
