// Finds the headers that a program's source includes, without a compiler, so that a look-up needs no compiler.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "warmgraph/base/sha256.hpp"

namespace warmgraph::precompile {

/// A header: its name in the source and the digest of its contents. It never has the header's path.
struct Header {
    std::string name;
    Digest digest;
    auto operator<=>(const Header&) const = default;
};

struct Headers {
    std::vector<Header> found{}; ///< the headers, sorted by name
    /// A digest that shows which file each #include means. It covers, for each name in each text that was read, the
    /// contents of all files with this name in search order. All zero if no header was found. It changes if files of
    /// one name or search folders change places, but not if an installation moves.
    Digest search{};
    std::string why_unknown{}; ///< names the file that only the compiler can find; empty if there is no such file
    bool operator==(const Headers&) const = default;
};

/// The words of a compiler's options, separated by blanks; '...' and "..." keep blanks within a word.
struct Options {
    /// An option with a folder, e.g. "-I". The option is kept because compilers search some kinds of folders first.
    struct Folder {
        std::string option, path;
        bool operator==(const Folder&) const = default;
    };
    std::vector<std::string> words{}; ///< all words except the options for header folders and files
    std::vector<Folder> folders{};    ///< the folders of -I, -isystem and similar options, in order
    std::vector<std::string> files{}; ///< the files of -include and --pre-include
    std::string why_unknown{}; ///< names an option whose files are not read here; empty if there is no such option
    bool operator==(const Options&) const = default;
};
[[nodiscard]] Options parse_options(std::string_view options);

/// Finds all headers, also the headers that headers include. Searches in the options' folders, in the working
/// directory, and beside the including file. If several files have a name, all of them count, in order, because the
/// compiler's choice depends on quotes and #include_next. A name without a file is a header of the compiler itself, or
/// is missing. Ignores preprocessor conditions, so more headers may count than are used, never fewer. Reads files;
/// throws nothing.
[[nodiscard]] Headers headers_of(const std::string& source, const Options& options);

} // namespace warmgraph::precompile
