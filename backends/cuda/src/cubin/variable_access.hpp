// Who may write or read the variables of loaded modules, beside their own code: the program, once it has asked the driver for a
// variable's address (cudaMemcpyToSymbol asks at each call, and a launch never: measured with CUDA 13.0), or the library that
// brought the code. Only the bookkeeping: callbacks and driver calls are image_tracker.cpp's.
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

/// Whether a file is one of CUDA's own libraries or PyTorch's: they fill the constants of their code once, and let them be.
/// `path` as the loader knows it. A library that is not known is taken for a part of the program.
[[nodiscard]] bool is_known_library(std::string_view path) noexcept;

/// Thread-safe. Handles (CUlibrary, CUmodule) are used again by the driver: a call that makes one says so here.
class VariableAccess {
public:
    enum class Owner : std::uint8_t { program, library };
    struct Asked {
        const void* module = nullptr;
        std::vector<std::string> variables; ///< sorted
    };

    void library_made(const void* library, Owner owner);
    void module_made(const void* module, Owner owner);
    /// The module is the library's in some context.
    void module_of_library(const void* module, const void* library);
    void asked_of_module(const void* module, std::string_view variable);
    void asked_of_library(const void* library, std::string_view variable);
    void forget_module(const void* module) noexcept;

    [[nodiscard]] bool is_of_known_library(const void* module) const;
    /// The program's modules that it asked about; null for those of a library that no module is known of.
    [[nodiscard]] std::vector<Asked> asked() const;
    /// How many variables of the program's code were asked for: another number, another answer of asked().
    [[nodiscard]] std::uint64_t count() const noexcept { return m_count; }

private:
    struct Code {
        Owner owner = Owner::program;
        std::set<std::string, std::less<>> asked;
    };
    void ask(std::shared_ptr<Code>& code, std::string_view variable);

    std::atomic<std::uint64_t> m_count = 0;
    mutable std::mutex m_mutex; // guards what follows
    std::map<const void*, std::shared_ptr<Code>> m_libraries;
    std::map<const void*, std::shared_ptr<Code>> m_modules; // those of a library share its Code
};

} // namespace warmgraph::backends::cuda
