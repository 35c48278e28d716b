// A summary of a cache folder, from names and entry headers: for `check` and `doctor`.
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
    std::string signed_by;      ///< the id of the accepted key that signed it; empty: no accepted signature
};

struct FolderContents {
    std::uint64_t functions = 0, entries = 0, images = 0, image_bytes = 0;
    Result<std::uint64_t> quarantined = 0; ///< number of files; an Error when the folder lost its mark
    std::vector<Signature> signatures{};   ///< signatures of the usable entries
    std::vector<store::Damage> unusable{}; ///< entries with a damaged or untrusted header
    Environments environments{};           ///< the entries' environments
};

/// `functions`: the functions whose entries count. Images and quarantine are those of the whole folder.
[[nodiscard]] Result<FolderContents> contents_of(const store::LocalStore& store,
                                                 const std::vector<cachefmt::FunctionKey>& functions);
[[nodiscard]] Json to_json(const FolderContents& contents);

} // namespace warmgraph::tool
