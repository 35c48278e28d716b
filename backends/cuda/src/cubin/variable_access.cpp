#include "variable_access.hpp"

#include <algorithm>
#include <array>

namespace warmgraph::backends::cuda {

bool is_known_library(std::string_view path) noexcept
{
    // A star stands for any text.
    constexpr auto k_names = std::to_array<std::string_view>(
        {"libcublas", "libcublasLt", "libcudnn*", "libcudss*", "libcufft", "libcufftw", "libcurand", "libcusolver",
         "libcusolverMg", "libcusparse", "libcusparseLt", "libcutensor*", "libnccl", "libnpp*", "libnvjpeg",
         "libnvshmem*", "libtorch_cuda", "libtorch_cuda_linalg"});
    std::string_view file = path.substr(path.find_last_of('/') + 1);
    // "libcublas.so.13", or "libcublas-1a2b3c4d.so.13" in Python wheels.
    file = file.substr(0, file.find_first_of(".-"));
    return std::ranges::any_of(k_names, [&](std::string_view name) {
        return name.ends_with('*') ? file.starts_with(name.substr(0, name.size() - 1)) : file == name;
    });
}

void VariableAccess::library_made(const void* library, Owner owner)
{
    const std::lock_guard lock(m_mutex);
    m_libraries[library] = std::make_shared<Code>(Code{owner, {}});
}

void VariableAccess::module_made(const void* module, Owner owner)
{
    const std::lock_guard lock(m_mutex);
    m_modules[module] = std::make_shared<Code>(Code{owner, {}});
}

void VariableAccess::module_of_library(const void* module, const void* library)
{
    const std::lock_guard lock(m_mutex);
    const auto known = m_libraries.find(library);
    if (known != m_libraries.end()) m_modules[module] = known->second;
}

void VariableAccess::ask(std::shared_ptr<Code>& code, std::string_view variable)
{
    if (!code) code = std::make_shared<Code>(); // the library was loaded before the tracker started
    if (code->asked.emplace(variable).second && code->owner == Owner::program) ++m_count;
}

void VariableAccess::asked_of_module(const void* module, std::string_view variable)
{
    const std::lock_guard lock(m_mutex);
    ask(m_modules[module], variable);
}

void VariableAccess::asked_of_library(const void* library, std::string_view variable)
{
    const std::lock_guard lock(m_mutex);
    ask(m_libraries[library], variable);
}

void VariableAccess::forget_module(const void* module) noexcept
{
    const std::lock_guard lock(m_mutex);
    m_modules.erase(module);
}

bool VariableAccess::is_of_known_library(const void* module) const
{
    const std::lock_guard lock(m_mutex);
    const auto known = m_modules.find(module);
    return known != m_modules.end() && known->second->owner == Owner::library;
}

std::vector<VariableAccess::VariableQueries> VariableAccess::queries() const
{
    const std::lock_guard lock(m_mutex);
    std::vector<VariableQueries> result;
    std::set<const Code*> seen;
    const auto add = [&](const void* module, const Code& code) {
        if (code.owner == Owner::library || code.asked.empty()) return;
        seen.insert(&code);
        result.push_back({module, {code.asked.begin(), code.asked.end()}});
    };
    for (const auto& [module, code] : m_modules) add(module, *code);
    for (const auto& [library, code] : m_libraries)
        if (!seen.contains(code.get())) add(nullptr, *code);
    return result;
}

} // namespace warmgraph::backends::cuda
