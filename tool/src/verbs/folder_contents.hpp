// What a cache folder holds, as far as names and the headers of entries tell: for `check` and `doctor`.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "context.hpp"
#include "verbs/environment.hpp"

namespace warmgraph::tool {

/// An object that can be signed.
struct Signature {
    std::filesystem::path path; ///< relative to the folder
    std::string signed_by;      ///< the id of the accepted key that did; empty: none
};

struct FolderContents {
    std::uint64_t functions = 0, entries = 0, images = 0, image_bytes = 0;
    Result<std::uint64_t> quarantined = 0; ///< files; an Error where the folder lost its mark
    std::vector<Signature> signatures{};   ///< of the entries that can be used
    std::vector<store::Damage> unusable{}; ///< entries whose header is damaged, or not trusted
    Environments environments{};           ///< of the entries
};

/// `functions`: whose entries count. Images and quarantine are the whole folder's.
[[nodiscard]] Result<FolderContents> contents_of(const store::LocalStore& store,
                                                 const std::vector<cachefmt::FunctionKey>& functions);
[[nodiscard]] Json to_json(const FolderContents& contents);

} // namespace warmgraph::tool
