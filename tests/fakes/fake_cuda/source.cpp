#include "source.hpp"

#include <algorithm>
#include <cstring>
#include <sstream>

namespace fake_cuda {
namespace {

/// Reads a kernel's declaration into the image. Returns an error line for the log, or an empty text if the declaration
/// is right.
std::string read_kernel(std::istringstream& words, Image& image)
{
    std::string name, kind, argument, kinds;
    words >> name;
    while (words >> kind >> argument) kinds += (kinds.empty() ? "" : ",") + kind;
    const auto arguments = arguments_of(kinds);
    const Kernel* const kernel = find_kernel(name);
    if (kernel == nullptr || !arguments || kernel->arguments != *arguments)
        return "no built-in kernel '" + name + "' with such arguments";
    image.kernels.push_back({name, *arguments});
    return "";
}

std::string read_variable(std::istringstream& words, Image& image)
{
    Variable variable;
    std::string equals;
    words >> variable.name >> equals;
    for (std::int32_t element = 0; words >> element;) {
        const auto bytes = std::as_bytes(std::span(&element, 1));
        variable.initial.insert(variable.initial.end(), bytes.begin(), bytes.end());
    }
    if (equals != "=" || variable.initial.empty()) return "expected 'variable <name> = <numbers>'";
    image.variables.push_back(std::move(variable));
    return "";
}

} // namespace

CompiledSource compile_source(const std::string& source, int architecture)
{
    CompiledSource result;
    result.image.architecture = architecture;
    std::istringstream lines(source);
    std::string line;
    for (int number = 1; std::getline(lines, line); ++number) {
        std::ranges::replace_if(line, [](char c) { return c == '(' || c == ')' || c == ','; }, ' ');
        std::istringstream words(line);
        std::string keyword;
        if (!(words >> keyword) || keyword.starts_with('#') || keyword.starts_with("//")) continue;
        std::string problem = "expected 'kernel' or 'variable', not '" + keyword + "'";
        if (keyword == "kernel") problem = read_kernel(words, result.image);
        if (keyword == "variable") problem = read_variable(words, result.image);
        if (!problem.empty()) result.log += "line " + std::to_string(number) + ": " + problem + "\n";
    }
    return result;
}

} // namespace fake_cuda
