#include "precompile/manifest.hpp"

#include <algorithm>
#include <fstream>
#include <optional>
#include <set>

#include <nlohmann/json.hpp>

#include "line/suggestion.hpp"
#include "warmgraph/base/printable.hpp"

namespace warmgraph::tool {

namespace {

namespace fs = std::filesystem;

constexpr std::size_t k_longest_text = 64UL << 10; ///< bytes of a text that is not a source
const std::vector<std::string> k_backends{"cuda", "opencl"};

std::string shown(std::string_view text) { return printable(text, 80); }

/// The members of an object, each read once. Keeps the first error.
class Members {
public:
    Members(const nlohmann::json& json, std::string where) : m_json(json), m_where(std::move(where))
    {
        if (!json.is_object()) wrong(fmt::format("it is {}, expected an object", json.type_name()));
    }
    /// Refuses members that are not in `known`.
    void allow(const std::vector<std::string>& known)
    {
        if (!m_wrong.empty()) return;
        for (const auto& [name, value] : m_json.items())
            if (std::ranges::find(known, name) == known.end())
                return wrong(fmt::format("unknown member '{}', expected {}{}", shown(name), fmt::join(known, ", "),
                                         did_you_mean(name, known)));
    }
    [[nodiscard]] bool has(const char* name) const { return m_wrong.empty() && m_json.contains(name); }
    void text(const char* name, std::string& text, std::size_t longest = k_longest_text)
    {
        const nlohmann::json* const member = find(name);
        if (member != nullptr) take(*member, fmt::format("'{}'", name), text, longest);
    }
    void texts(const char* name, std::vector<std::string>& list, std::size_t most)
    {
        const nlohmann::json* const member = find(name);
        if (member == nullptr) return;
        if (!member->is_array())
            return wrong(fmt::format("'{}' is {}, expected a list of texts", name, member->type_name()));
        if (member->size() > most)
            return wrong(fmt::format("'{}' has {} items, expected at most {}", name, member->size(), most));
        for (const nlohmann::json& item : *member)
            take(item, fmt::format("an item of '{}'", name), list.emplace_back(), k_longest_text);
    }
    [[nodiscard]] const nlohmann::json* list(const char* name)
    {
        const nlohmann::json* const member = find(name);
        if (m_wrong.empty() && member == nullptr) wrong(fmt::format("'{}' is missing, expected a list", name));
        if (member != nullptr && !member->is_array())
            wrong(fmt::format("'{}' is {}, expected a list", name, member->type_name()));
        return m_wrong.empty() ? member : nullptr;
    }
    void wrong(const std::string& what)
    {
        if (m_wrong.empty()) m_wrong = m_where + ": " + what;
    }
    [[nodiscard]] const std::string& first_problem() const noexcept { return m_wrong; }

private:
    [[nodiscard]] const nlohmann::json* find(const char* name)
    {
        const auto member = m_wrong.empty() ? m_json.find(name) : m_json.end();
        return m_wrong.empty() && member != m_json.end() ? &*member : nullptr;
    }
    void take(const nlohmann::json& json, const std::string& what, std::string& text, std::size_t longest)
    {
        if (!json.is_string()) return wrong(fmt::format("{} is {}, expected a text", what, json.type_name()));
        const auto& given = json.get_ref<const std::string&>();
        if (given.size() > longest || given.find('\0') != std::string::npos)
            return wrong(fmt::format("{} has {} bytes, expected at most {} and no zero among them", what, given.size(),
                                     longest));
        text = given;
    }

    const nlohmann::json& m_json;
    std::string m_where;
    std::string m_wrong;
};

std::string check_architecture(const std::string& name)
{
    const bool is_real =
        name.starts_with("sm_") && name.size() > 4 && name.size() <= 8 &&
        std::ranges::all_of(name.substr(3, name.size() - 4), [](char c) { return c >= '0' && c <= '9'; }) &&
        std::string_view("0123456789af").contains(name.back());
    return is_real ? "" : fmt::format("'{}' is not an architecture, expected one such as sm_80 or sm_90a", shown(name));
}

Result<ManifestProgram> parse_program(const nlohmann::json& json, std::size_t number)
{
    ManifestProgram program;
    Members members(json, fmt::format("program {}", number));
    members.allow({"name", "backend", "source", "text", "options", "include", "arch"});
    members.text("name", program.name, 256);
    if (program.name.empty()) members.wrong("'name' is missing or empty");
    members.text("backend", program.backend);
    if (std::ranges::find(k_backends, program.backend) == k_backends.end())
        members.wrong(fmt::format("'backend' is '{}', expected cuda or opencl{}", shown(program.backend),
                                  did_you_mean(program.backend, k_backends)));
    members.text("source", program.file);
    members.text("text", program.text, k_manifest_cap);
    if (program.file.empty() == program.text.empty()) members.wrong("expected either 'source', a file, or 'text'");
    members.text("options", program.options);
    members.texts("include", program.include, 256);
    members.texts("arch", program.architectures, k_most_targets);
    if (members.has("arch") && program.backend != "cuda") members.wrong("'arch' is for backend cuda");
    for (const std::string& name : program.architectures)
        if (const std::string wrong = check_architecture(name); !wrong.empty()) members.wrong(wrong);
    for (const std::string& folder : program.include)
        if (folder.empty() || folder.find_first_of(" \t\n\"'") != std::string::npos)
            members.wrong(fmt::format(
                "the folder '{}' is empty or contains blanks or quotes, which compiler options cannot contain",
                shown(folder)));
    if (!members.first_problem().empty()) return fail(ErrorCode::invalid_argument, "{}", members.first_problem());
    return program;
}

Result<std::string> read_text(const fs::path& path, std::size_t cap)
{
    std::error_code failed;
    const auto status = fs::status(path, failed);
    if (status.type() == fs::file_type::not_found)
        return fail(ErrorCode::not_found, "{} does not exist", shown(path.string()));
    if (failed || !fs::is_regular_file(status))
        return fail(ErrorCode::io_failed, "{} is not a regular file", shown(path.string()));
    const auto size = fs::file_size(path, failed);
    if (!failed && size > cap)
        return fail(ErrorCode::invalid_argument, "{} has {} bytes, expected at most {}", shown(path.string()), size,
                    cap);
    std::ifstream file(path, std::ios::binary);
    std::string text(cap + 1, '\0');
    file.read(text.data(), std::ssize(text));
    text.resize(static_cast<std::size_t>(file.gcount()));
    if (!file.is_open() || file.bad()) return fail(ErrorCode::io_failed, "{} cannot be read", shown(path.string()));
    if (text.size() > cap)
        return fail(ErrorCode::invalid_argument, "{} has more than {} bytes", shown(path.string()), cap);
    return text;
}

} // namespace

Result<Manifest> parse_manifest(std::string_view text)
{
    if (text.size() > k_manifest_cap)
        return fail(ErrorCode::invalid_argument, "it has {} bytes, expected at most {}", text.size(), k_manifest_cap);
    std::optional<nlohmann::json> json;
    try {
        json = nlohmann::json::parse(text);
    } catch (const nlohmann::json::parse_error& error) {
        return fail(ErrorCode::invalid_argument, "it is not JSON: the error is at byte {}", error.byte);
    } catch (const nlohmann::json::exception&) {
        return fail(ErrorCode::invalid_argument, "it is not JSON: a number in it is too large");
    }
    Manifest manifest;
    Members members(*json, "the manifest");
    members.allow({"programs", "arch"});
    members.texts("arch", manifest.architectures, k_most_targets);
    for (const std::string& name : manifest.architectures)
        if (const std::string wrong = check_architecture(name); !wrong.empty()) members.wrong(wrong);
    const nlohmann::json* const programs = members.list("programs");
    if (programs != nullptr && (programs->empty() || programs->size() > k_most_programs))
        members.wrong(fmt::format("'programs' has {} items, expected 1 to {}", programs->size(), k_most_programs));
    if (!members.first_problem().empty()) return fail(ErrorCode::invalid_argument, "{}", members.first_problem());
    std::set<std::string> names;
    for (const nlohmann::json& item : *programs) {
        auto program = parse_program(item, manifest.programs.size() + 1);
        if (!program) return std::unexpected(program.error());
        if (!names.insert(program->name).second)
            return fail(ErrorCode::invalid_argument, "two programs have the name '{}': give each its own name",
                        shown(program->name));
        manifest.programs.push_back(std::move(*program));
    }
    return manifest;
}

Result<Manifest> read_manifest(const fs::path& file)
{
    const auto text = read_text(file, k_manifest_cap);
    if (!text) return within("the manifest", text.error());
    auto manifest = parse_manifest(*text);
    if (!manifest) return within(shown(file.string()), manifest.error());
    std::error_code failed;
    const fs::path folder = fs::absolute(file, failed).parent_path();
    for (ManifestProgram& program : manifest->programs) {
        for (std::string& include : program.include) {
            include = (folder / include).lexically_normal().string();
            if (!fs::is_directory(include, failed))
                return fail(ErrorCode::not_found, "program '{}': there is no folder {}", shown(program.name),
                            shown(include));
            if (include.find_first_of(" \t\n\"'") != std::string::npos)
                return fail(ErrorCode::invalid_argument,
                            "program '{}': {} contains blanks or quotes, which compiler options cannot contain",
                            shown(program.name), shown(include));
        }
        if (program.file.empty()) continue;
        auto source = read_text(folder / program.file, k_source_cap);
        if (!source) return within(fmt::format("program '{}'", shown(program.name)), source.error());
        program.text = std::move(*source);
    }
    return manifest;
}

std::string options_of(const ManifestProgram& program)
{
    std::string options = program.options;
    for (const std::string& folder : program.include) options += (options.empty() ? "-I " : " -I ") + folder;
    return options;
}

} // namespace warmgraph::tool
