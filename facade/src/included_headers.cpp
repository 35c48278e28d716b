#include "included_headers.hpp"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <optional>
#include <regex>
#include <sstream>
#include <vector>

#include "warmgraph/base/sha256.hpp"

namespace warmgraph {

namespace {

namespace fs = std::filesystem;

/// The folders of "-I folder", "-Ifolder", "--include-path=folder" and "--include-path folder".
std::vector<fs::path> include_folders(const std::string& options)
{
    std::vector<fs::path> folders;
    std::istringstream words{options};
    for (std::string word; words >> word;) {
        std::optional<std::string> folder;
        for (const std::string_view option : {"-I", "--include-path=", "--include-path"}) {
            if (!word.starts_with(option)) continue;
            folder = word.substr(option.size());
            if (folder->empty()) words >> *folder;
            break;
        }
        if (folder && !folder->empty()) folders.emplace_back(*folder);
    }
    return folders;
}

struct Include {
    std::string name;
    bool is_quoted = false;
};

std::vector<Include> includes_of(const std::string& text)
{
    static const std::regex s_include{R"(^[ \t]*#[ \t]*include[ \t]*(["<])([^">\n]+)[">])",
                                      std::regex::ECMAScript | std::regex::multiline};
    std::vector<Include> found;
    for (auto at = std::sregex_iterator{text.begin(), text.end(), s_include}; at != std::sregex_iterator{}; ++at)
        found.push_back({(*at)[2], (*at)[1] == "\""});
    return found;
}

class HeaderFiles {
public:
    explicit HeaderFiles(std::vector<fs::path> folders) : m_folders(std::move(folders)) {}

    void add_of(const std::string& text, const fs::path& beside)
    {
        for (const Include& include : includes_of(text)) {
            const auto path = find(include, beside);
            if (!path || m_contents.contains(*path)) continue;
            std::ifstream file{*path, std::ios::binary};
            std::string contents{std::istreambuf_iterator<char>{file}, {}};
            m_contents[*path] = {include.name, contents};
            add_of(contents, path->parent_path());
        }
    }
    /// Names and contents: a cache must hit when an installation moved.
    [[nodiscard]] std::string digest() const
    {
        if (m_contents.empty()) return {};
        std::map<std::string, std::string> sorted;
        for (const auto& [path, header] : m_contents) sorted[header.first] += to_hex(sha256(as_bytes(header.second)));
        Sha256 hash;
        for (const auto& [name, contents] : sorted) hash.update_field(name).update_field(contents);
        return to_hex(hash.finish());
    }

private:
    [[nodiscard]] std::optional<fs::path> find(const Include& include, const fs::path& beside) const
    {
        std::vector<fs::path> folders;
        if (include.is_quoted) folders.push_back(beside);
        folders.insert(folders.end(), m_folders.begin(), m_folders.end());
        for (const fs::path& folder : folders) {
            std::error_code none;
            const fs::path path = fs::weakly_canonical(folder / include.name, none);
            if (!none && fs::is_regular_file(path, none)) return path;
        }
        return std::nullopt;
    }
    std::vector<fs::path> m_folders;
    std::map<fs::path, std::pair<std::string, std::string>> m_contents; ///< name and text
};

} // namespace

std::string included_headers(const std::string& source, const std::string& options)
{
    if (source.find("#") == std::string::npos) return {};
    std::error_code none;
    HeaderFiles headers{include_folders(options)};
    headers.add_of(source, fs::current_path(none));
    return headers.digest();
}

} // namespace warmgraph
