// Makes a program's module: loads a stored compiled program, or compiles it, once for all processes.
//
// A failure of the cache costs a compilation, but never changes a result.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "warmgraph/backends/compiler.hpp"
#include "warmgraph/precompile/program_library.hpp"

namespace warmgraph::precompile {

enum class ProgramPolicy : std::uint8_t {
    use_and_keep, ///< load; if that fails, compile and store
    use,          ///< load; if that fails, compile
    renew,        ///< compile and store
    use_only,     ///< load; if that fails, return miss_forbidden
};

struct ProgramText {
    const std::string& name; ///< the program's name, for people
    const std::string& source;
    const std::string& options;
    std::string tag{}; ///< Ingredients::tag
};

/// The program of a module, for storing its compiled form later.
struct Origin {
    Ingredients ingredients{};
    std::string source{}, options{};  ///< kept to check whether the headers changed
    std::vector<std::string> ready{}; ///< as CompiledImage::ready of the stored program
    double compile_ms = 0;
    enum class Stored : std::uint8_t { no, yes } stored = Stored::no;
};

struct ProgramResult {
    std::unique_ptr<backends::Module> module;
    enum class Outcome : std::uint8_t { loaded, compiled } outcome = Outcome::compiled;
    std::string reason{}; ///< why the program was compiled; empty if it was loaded
    std::string word{};   ///< the reason's word in the statistics: "no_program", "header", "compiler", "refresh", ...
    double ms = 0;        ///< milliseconds of loading or compiling
    double saved_ms = 0;  ///< the stored compile time minus `ms`; 0 if the program was compiled
    /// Errors of stored programs that could not be used, and of folders that could not be read.
    std::vector<Error> faults{};
    std::unique_ptr<Origin> origin{}; ///< for keep(); null if the program cannot be stored
};

class ProgramCache {
public:
    /// `store` must outlive this object.
    ProgramCache(store::LocalStore& store, const cachefmt::Trust& trust) : m_store(store), m_library(store, trust) {}

    /// Makes the program's module. Errors: the compiler's errors, and miss_forbidden with the reason and the cure.
    /// Notes a miss in the store, with the differences (LocalStore::note_program_miss). Thread-safe.
    [[nodiscard]] Result<ProgramResult> make(backends::Device& device, const ProgramText& text, ProgramPolicy policy);
    /// Stores the module's compiled form as it is now (backends::Compiler::compiled). Returns false if the stored
    /// program is equally ready, or if the program cannot be stored. REQUIRES: no other thread uses `origin`.
    [[nodiscard]] Result<bool> keep(backends::Compiler& compiler, backends::Module& module, Origin& origin);

private:
    class LookUp;
    void note_miss(const Ingredients& ingredients, const NearestProgram& nearest, const std::string& reason,
                   ProgramPolicy policy);

    store::LocalStore& m_store;
    ProgramLibrary m_library;
};

/// Returns the error miss_forbidden, with the cure.
[[nodiscard]] Error compile_forbidden(std::string_view reason);

/// Returns a text such as "1 compiled image is stored, the nearest differs: header tile.h (1a2b3c4d, here 5e6f7a8b)".
[[nodiscard]] std::string explain(const Ingredients& ingredients, const NearestProgram& nearest);

} // namespace warmgraph::precompile
