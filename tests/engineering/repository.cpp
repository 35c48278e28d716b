#include "repository.hpp"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <regex>
#include <stdexcept>

namespace warmgraph::test {

namespace fs = std::filesystem;

fs::path source_dir() { return WARMGRAPH_SOURCE_DIR; }

std::vector<fs::path> files_under(const fs::path& folder, const std::vector<std::string>& extensions)
{
    std::vector<fs::path> found;
    if (!fs::exists(source_dir() / folder)) return found;
    for (fs::recursive_directory_iterator at(source_dir() / folder), end; at != end; ++at) {
        const std::string name = at->path().filename().string();
        if (at->is_directory() && (name.starts_with('.') || name == "build" || name == "__pycache__")) {
            at.disable_recursion_pending();
        } else if (at->is_regular_file() &&
                   std::ranges::find(extensions, at->path().extension().string()) != extensions.end()) {
            found.push_back(at->path().lexically_relative(source_dir()));
        }
    }
    std::ranges::sort(found);
    return found;
}

std::string read_text(const fs::path& relative)
{
    std::ifstream file(source_dir() / relative, std::ios::binary);
    if (!file) throw std::runtime_error("cannot read " + relative.string());
    return {std::istreambuf_iterator<char>(file), {}};
}

std::string without_comments_and_strings(std::string_view text)
{
    std::string out(text);
    const auto blank = [&](std::size_t from, std::size_t to) {
        for (std::size_t i = from; i < std::min(to, out.size()); ++i) {
            if (out[i] != '\n') out[i] = ' ';
        }
        return std::min(to, out.size());
    };
    const auto after = [&](std::string_view mark, std::size_t from) {
        const std::size_t at = text.find(mark, from);
        return at == std::string_view::npos ? text.size() : at + mark.size();
    };
    for (std::size_t i = 0; i < text.size();) {
        const std::string_view rest = text.substr(i);
        if (rest.starts_with("//")) {
            i = blank(i, after("\n", i));
        } else if (rest.starts_with("/*")) {
            i = blank(i, after("*/", i + 2));
        } else if (rest.starts_with("R\"")) {
            const std::string mark = ")" + std::string(rest.substr(2, rest.find('(') - 2)) + "\"";
            i = blank(i, after(mark, i));
        } else if (rest.front() == '"' ||
                   (rest.front() == '\'' && (i == 0 || !std::isalnum(static_cast<unsigned char>(text[i - 1]))))) {
            std::size_t end = i + 1;
            while (end < text.size() && text[end] != rest.front()) end += text[end] == '\\' ? 2 : 1;
            i = blank(i, end + 1);
        } else {
            ++i;
        }
    }
    return out;
}

std::size_t line_of(std::string_view text, std::size_t position)
{
    return 1 + static_cast<std::size_t>(std::ranges::count(text.substr(0, position), '\n'));
}

std::vector<Include> includes_of(const std::string& text)
{
    static const std::regex k_include(R"re((?:^|\n)[ \t]*#[ \t]*include[ \t]*["<]([^">]+)[">])re");
    std::vector<Include> found;
    for (std::sregex_iterator at(text.begin(), text.end(), k_include), end; at != end; ++at) {
        found.push_back({at->str(1), line_of(text, static_cast<std::size_t>(at->position(1)))});
    }
    return found;
}

} // namespace warmgraph::test
