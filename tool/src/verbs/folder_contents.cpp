#include "verbs/folder_contents.hpp"

#include "entry_file.hpp"

namespace warmgraph::tool {

Result<FolderContents> contents_of(const store::LocalStore& store, const std::vector<cachefmt::FunctionKey>& functions)
{
    FolderContents contents{.functions = functions.size()};
    for (const cachefmt::FunctionKey& key : functions) {
        const auto variants = store.variants(key);
        if (!variants) return std::unexpected(variants.error());
        contents.entries += variants->size();
        for (const store::Variant& variant : *variants) {
            auto path = path_of({}, {key, variant.guards_digest});
            if (!variant.header) {
                contents.unusable.push_back({std::move(path), variant.header.error()});
                continue;
            }
            contents.environments.add(variant.header->guards);
            contents.signatures.push_back({std::move(path), variant.header->signed_by});
        }
    }
    const auto images = store.images();
    if (!images) return std::unexpected(images.error());
    contents.images = images->size();
    for (const auto& [digest, size] : *images) contents.image_bytes += size;
    const auto quarantine = store.plan_clear({.kinds = {}, .quarantine = true});
    if (quarantine)
        contents.quarantined = quarantine->quarantined.files;
    else
        contents.quarantined = std::unexpected(quarantine.error());
    return contents;
}

Json to_json(const FolderContents& contents)
{
    return {{"functions", contents.functions},
            {"entries", contents.entries},
            {"images", contents.images},
            {"image_bytes", contents.image_bytes},
            {"quarantined", contents.quarantined ? Json(*contents.quarantined) : Json()}};
}

} // namespace warmgraph::tool
