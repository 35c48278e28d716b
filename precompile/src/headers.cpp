#include "warmgraph/precompile/headers.hpp"

#include <algorithm>
#include <array>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <optional>

#include <fmt/format.h>

#include "include_scanner.hpp"

namespace warmgraph::precompile {
namespace {

namespace fs = std::filesystem;

/// More headers than a toolkit has. The limit ends the search in folders that contain themselves through links.
constexpr std::size_t k_most_headers = 20'000;
constexpr std::uintmax_t k_largest_header = 64ULL << 20;

constexpr std::array<std::string_view, 5> k_folder_options{"--include-path", "-isystem", "-iquote", "-idirafter", "-I"};
constexpr std::array<std::string_view, 3> k_file_options{"--pre-include", "-include", "-imacros"};
/// Options whose files affect the code but are not read here, and options that stand for other options.
constexpr std::array<std::string_view, 20> k_unread{"--options-file", "-optf",        "@",           "--use-pch",
                                                    "-use-pch",       "--create-pch", "-create-pch", "--pch",
                                                    "-pch",           "-ivfsoverlay", "-fmodule",    "-iwithprefix",
                                                    "-include-pch",   "-iprefix",     "-isysroot",   "--sysroot",
                                                    "-iframework",    "-fprofile",    "-Xclang",     "-Xpreprocessor"};

std::vector<std::string> split(std::string_view options)
{
    std::vector<std::string> words;
    char quote = '\0';
    bool in_word = false;
    for (const char letter : options) {
        if (quote == '\0' && (letter == ' ' || letter == '\t' || letter == '\n')) {
            in_word = false;
            continue;
        }
        if (!in_word) words.emplace_back();
        in_word = true;
        if (quote == letter)
            quote = '\0';
        else if (quote == '\0' && (letter == '\'' || letter == '"'))
            quote = letter;
        else
            words.back() += letter;
    }
    return words;
}

struct NamedValue {
    std::string_view option;
    std::string value;
};

/// Returns the value of "-Ifolder", "-I folder", "--include-path=folder" or "--include-path folder"; nullopt if the
/// word is not one of these options. Advances `at` if the value is the next word.
template <std::size_t N>
std::optional<NamedValue> value_of(const std::vector<std::string>& words, std::size_t& at,
                                   const std::array<std::string_view, N>& names)
{
    const std::string& word = words[at];
    for (const std::string_view name : names) {
        if (!word.starts_with(name)) continue;
        std::string value = word.substr(name.size());
        if (value.starts_with('=')) value.erase(0, 1);
        if (value.empty() && at + 1 < words.size()) value = words[++at];
        return NamedValue{name, std::move(value)};
    }
    return std::nullopt;
}

class HeaderFiles {
public:
    explicit HeaderFiles(const Options& options) : m_options(options), m_here(working_directory()) {}

    Headers run(const std::string& source)
    {
        for (const std::string& file : m_options.files) {
            const std::string name = fs::path(file).filename().string();
            add("forced", name, m_here / file);
            add_of_folders(name, file);
        }
        m_unread.push_back({source, m_here});
        while (!m_unread.empty()) {
            const Text text = std::move(m_unread.back());
            m_unread.pop_back();
            look_into(text);
        }
        std::ranges::sort(m_headers.found);
        const auto rest = std::ranges::unique(m_headers.found);
        m_headers.found.erase(rest.begin(), rest.end());
        if (!m_headers.found.empty()) m_headers.search = m_search.update_field(folders_text()).finish();
        return std::move(m_headers);
    }

private:
    struct Text {
        std::string contents;
        fs::path folder; ///< the folder of the file
    };

    static fs::path working_directory()
    {
        std::error_code none;
        return fs::current_path(none);
    }
    /// Returns a text with the kinds of the folders and with the folders that are equal, because a compiler drops some
    /// equal folders.
    [[nodiscard]] std::string folders_text() const
    {
        std::string text;
        std::vector<fs::path> paths;
        for (const auto& [option, path] : m_options.folders) {
            std::error_code failed;
            paths.push_back(fs::weakly_canonical(m_here / path, failed));
            text += fmt::format("{} {};", option, std::ranges::find(paths, paths.back()) - paths.begin());
        }
        return text;
    }
    void look_into(const Text& text)
    {
        const Includes includes = scan_includes(text.contents);
        if (!includes.computed.empty())
            m_headers.why_unknown = "only the compiler can resolve the include of '" + includes.computed + "' means";
        m_search.update_field("text");
        for (const std::string& name : includes.names) {
            add("beside", name, text.folder / name);
            add("here", name, m_here / name);
            add_of_folders(name, name);
        }
    }
    void add_of_folders(const std::string& name, const fs::path& file)
    {
        for (const auto& [option, folder] : m_options.folders) add(option, name, m_here / folder / file);
    }
    void add(std::string_view how, const std::string& name, const fs::path& at)
    {
        std::error_code failed;
        const fs::path path = fs::weakly_canonical(at, failed);
        if (failed || !fs::is_regular_file(path, failed) || failed) return;
        auto known = m_digests.find(path);
        if (known == m_digests.end()) {
            if (m_digests.size() == k_most_headers || fs::file_size(path, failed) > k_largest_header || failed) {
                m_headers.why_unknown = "there are too many headers, or one is too large ('" + name + "')";
                return;
            }
            std::ifstream file(path, std::ios::binary);
            std::string contents{std::istreambuf_iterator<char>{file}, {}};
            if (!file.is_open() || file.bad()) m_headers.why_unknown = "the header '" + name + "' cannot be read";
            known = m_digests.emplace(path, sha256(as_bytes(contents))).first;
            m_unread.push_back({std::move(contents), path.parent_path()});
        }
        m_headers.found.push_back({name, known->second});
        m_search.update_field(name).update_field(how).update_field(ByteView(known->second.bytes));
    }

    const Options& m_options;
    fs::path m_here;
    Headers m_headers;
    Sha256 m_search;
    std::map<fs::path, Digest> m_digests; ///< digests of the files that were read
    std::vector<Text> m_unread;
};

} // namespace

Options parse_options(std::string_view text)
{
    Options options;
    const std::vector<std::string> words = split(text);
    for (std::size_t at = 0; at < words.size(); ++at) {
        const std::string& word = words[at];
        if (std::ranges::any_of(k_unread, [&](std::string_view name) { return word.starts_with(name); })) {
            if (options.why_unknown.empty())
                options.why_unknown = "the option '" + word + "' names files that only the compiler reads";
            options.words.push_back(word);
        } else if (auto folder = value_of(words, at, k_folder_options)) {
            options.folders.push_back({std::string(folder->option), std::move(folder->value)});
        } else if (auto file = value_of(words, at, k_file_options)) {
            options.files.push_back(std::move(file->value));
        } else {
            options.words.push_back(word);
        }
    }
    return options;
}

Headers headers_of(const std::string& source, const Options& options)
try {
    if (!options.why_unknown.empty()) return {.why_unknown = options.why_unknown};
    return HeaderFiles(options).run(source);
} catch (const std::exception& error) {
    return {.why_unknown = std::string("its headers cannot be looked at: ") + error.what()};
}

} // namespace warmgraph::precompile
