// Finds the headers that a program's source includes, without a compiler, so that a look-up needs none.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "warmgraph/base/sha256.hpp"

namespace warmgraph::precompile {

/// A header: its name in the source and the digest of its contents. Never its path.
struct Header {
    std::string name;
    Digest digest;
    auto operator<=>(const Header&) const = default;
};

struct Headers {
    std::vector<Header> found{}; ///< sorted
    /// Which file each #include means. Covers, for every name in every text that was read, the contents of the files
    /// with this name in search order. All zero when no header was found. It changes when files of one name or search
    /// folders change places, but not when an installation moves.
    Digest search{};
    std::string why_unknown{}; ///< empty, or a text that names the file that only the compiler can find
    bool operator==(const Headers&) const = default;
};

/// The words of a compiler's options, separated by blanks; '...' and "..." keep blanks within a word.
struct Options {
    /// An option with a folder, e.g. "-I". The option is kept because compilers search some kinds of folders first.
    struct Folder {
        std::string option, path;
        bool operator==(const Folder&) const = default;
    };
    std::vector<std::string> words{}; ///< without the options for header folders and files
    std::vector<Folder> folders{};    ///< of -I, -isystem and similar options, in order
    std::vector<std::string> files{}; ///< of -include and --pre-include
    std::string why_unknown{};        ///< empty, or a text that names the option whose files are not read here
    bool operator==(const Options&) const = default;
};
[[nodiscard]] Options parse_options(std::string_view options);

/// Finds all headers, and the headers that they include: in the options' folders, the working directory, and beside the
/// including file. If several files fit a name, all of them count, in order, because the compiler's choice depends on
/// quotes and #include_next. Names without a file are the compiler's own headers, or missing. Ignores preprocessor
/// conditions, so more headers may count than are used, never fewer. Reads files; throws nothing.
[[nodiscard]] Headers headers_of(const std::string& source, const Options& options);

} // namespace warmgraph::precompile
