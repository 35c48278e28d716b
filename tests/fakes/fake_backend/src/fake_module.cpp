#include "fake_module.hpp"

#include <sstream>

namespace warmgraph::backends {
namespace {

constexpr std::string_view k_magic = "fake image 1: ";

struct Declaration {
    std::string name;
    std::vector<ParamKind> params;
};

/// Parses a line like "kernel add_scalar(memory x, value amount, value n)". The error is a line for the compiler's log.
std::expected<Declaration, std::string> parse_line(std::string line)
{
    for (char& letter : line) {
        if (letter == '(' || letter == ')' || letter == ',') letter = ' ';
    }
    std::istringstream words(line);
    std::string keyword, kind, name;
    Declaration declaration;
    words >> keyword >> declaration.name;
    if (keyword != "kernel" || declaration.name.empty()) return std::unexpected("expected 'kernel <name>(...)'");
    while (words >> kind >> name) {
        if (kind == "value")
            declaration.params.push_back(ParamKind::value);
        else if (kind == "memory")
            declaration.params.push_back(ParamKind::memory);
        else if (kind == "local")
            declaration.params.push_back(ParamKind::local);
        else
            return std::unexpected("unknown kind of parameter '" + kind + "'");
    }
    return declaration;
}

} // namespace

Result<void> FakeModule::parse()
{
    std::istringstream lines(m_source);
    std::string line;
    for (int number = 1; std::getline(lines, line); ++number) {
        if (line.empty()) continue;
        const auto declaration = parse_line(line);
        if (!declaration)
            return fail(ErrorCode::compile_failed, "kernel source does not compile; the log:\nline {}: {}", number,
                        declaration.error());
        const FakeKernel* const kernel = find_fake_kernel(declaration->name);
        if (kernel == nullptr || kernel->params != declaration->params) {
            return fail(
                ErrorCode::compile_failed,
                "kernel source does not compile; the log:\nline {}: no built-in kernel '{}' with such parameters",
                number, declaration->name);
        }
        m_kernels.emplace(declaration->name, kernel);
    }
    return {};
}

Result<std::unique_ptr<Module>> FakeModule::compile(FakeState& state, std::string_view source, std::string_view options)
{
    std::unique_ptr<FakeModule> module(new FakeModule(state, std::string(source)));
    if (auto parsed = module->parse(); !parsed) return std::unexpected(parsed.error());
    Sha256 hash;
    hash.update_field(source).update_field(options).update_field(state.options.architecture);
    module->m_origin = hash.finish();
    return module;
}

Result<std::unique_ptr<Module>> FakeModule::load(FakeState& state, ByteView image)
{
    const std::string_view text = as_text(image);
    if (!text.starts_with(k_magic))
        return fail(ErrorCode::stale, "{} bytes are no image of the fake device", image.size());
    std::unique_ptr<FakeModule> module(new FakeModule(state, std::string(text.substr(k_magic.size()))));
    if (auto parsed = module->parse(); !parsed) return std::unexpected(parsed.error());
    return module;
}

Result<Bytes> FakeModule::image()
{
    if (auto entered = m_state.enter("image"); !entered) return std::unexpected(entered.error());
    Bytes bytes;
    append(bytes, as_bytes(k_magic));
    append(bytes, as_bytes(m_source));
    return bytes;
}

Result<std::uint32_t> FakeModule::param_count(const std::string& kernel)
{
    if (auto entered = m_state.enter("param_count"); !entered) return std::unexpected(entered.error());
    const auto found = find(kernel);
    if (!found) return std::unexpected(found.error());
    return static_cast<std::uint32_t>((*found)->params.size());
}

Result<const FakeKernel*> FakeModule::find(const std::string& kernel) const
{
    if (const auto found = m_kernels.find(kernel); found != m_kernels.end()) return found->second;
    std::string names;
    for (const auto& [name, ignored] : m_kernels) names += (names.empty() ? "" : ", ") + name;
    return fail(ErrorCode::not_found, "no kernel '{}' in the program; its kernels: {}", kernel, names);
}

} // namespace warmgraph::backends
