// What a program's source includes: found without a compiler, so that a look-up needs none.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "warmgraph/base/sha256.hpp"

namespace warmgraph::precompile {

/// A header that was found: its name as the source spells it, and the digest of its contents. Never its path.
struct Header {
    std::string name;
    Digest digest;
    auto operator<=>(const Header&) const = default;
};

struct Headers {
    std::vector<Header> found{}; ///< sorted
    /// Which of them each #include means: of every text that is read, for every name in it, the files that are there in the
    /// order of the search, by contents. All zero where no header is found. Files of one name that changed places, or
    /// folders that did, change it; an installation that moved does not.
    Digest search{};
    std::string why_unknown{}; ///< empty; else what names a file that cannot be known without the compiler
    bool operator==(const Headers&) const = default;
};

/// The words of a compiler's options: at blanks; '...' and "..." keep blanks within a word.
struct Options {
    /// An option that names a folder, as "-I": compilers search some kinds before others.
    struct Folder {
        std::string option, path;
        bool operator==(const Folder&) const = default;
    };
    std::vector<std::string> words{}; ///< without those that say where headers lie
    std::vector<Folder> folders{};    ///< of -I, -isystem and their like, in their order
    std::vector<std::string> files{}; ///< of -include and --pre-include
    std::string why_unknown{};        ///< empty; else which option names files that are not read here
    bool operator==(const Options&) const = default;
};
[[nodiscard]] Options parse_options(std::string_view options);

/// All headers that are found, and those that they include: through the options' folders, in the working directory, and
/// beside the file that includes them. Where several files fit a name, all of them count, in their order: which of them is
/// meant depends on the compiler, on quotes and on #include_next. What is not found is the compiler's own, or is not there. Conditions of the preprocessor are not looked at: more headers count than are used,
/// never fewer. Reads files; throws nothing.
[[nodiscard]] Headers headers_of(const std::string& source, const Options& options);

} // namespace warmgraph::precompile
