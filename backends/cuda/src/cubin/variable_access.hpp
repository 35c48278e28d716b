// Tracks who may access the variables of loaded modules from outside: the program, after it requested a variable's
// address (cudaMemcpyToSymbol does so at each call, a launch never; measured with CUDA 13.0), or the library that owns
// the code. Bookkeeping only: image_tracker.cpp has the callbacks and driver calls.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace warmgraph::backends::cuda {

/// True for CUDA's and PyTorch's own libraries, which set their code's constants once. `path` is the loader's path. An
/// unknown library counts as a part of the program.
[[nodiscard]] bool is_known_library(std::string_view path) noexcept;

/// Thread-safe. The driver reuses handles (CUlibrary, CUmodule): report each call that creates one.
class VariableAccess {
public:
    enum class Owner : std::uint8_t { program, library };
    struct VariableQueries {
        const void* module = nullptr;
        std::vector<std::string> variables; ///< sorted
    };

    void library_made(const void* library, Owner owner);
    void module_made(const void* module, Owner owner);
    /// Notes that the module belongs to the library, in some context.
    void module_of_library(const void* module, const void* library);
    void asked_of_module(const void* module, std::string_view variable);
    void asked_of_library(const void* library, std::string_view variable);
    void forget_module(const void* module) noexcept;

    [[nodiscard]] bool is_of_known_library(const void* module) const;
    /// The program's modules with requested variables; `module` is null for a library without a known module.
    [[nodiscard]] std::vector<VariableQueries> queries() const;
    /// Counts the requested variables of the program's code. If the number changes, so does asked().
    [[nodiscard]] std::uint64_t count() const noexcept { return m_count; }

private:
    struct Code {
        Owner owner = Owner::program;
        std::set<std::string, std::less<>> asked;
    };
    void ask(std::shared_ptr<Code>& code, std::string_view variable);

    std::atomic<std::uint64_t> m_count = 0;
    mutable std::mutex m_mutex; // guards the members below
    std::map<const void*, std::shared_ptr<Code>> m_libraries;
    std::map<const void*, std::shared_ptr<Code>> m_modules; // modules of a library share its Code
};

} // namespace warmgraph::backends::cuda
