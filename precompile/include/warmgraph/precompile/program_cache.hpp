// A program's module: from what was compiled before, else from the compiler, which is asked once for all processes.
//
// Whatever fails here costs a compilation, never a result.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "warmgraph/backends/compiler.hpp"
#include "warmgraph/precompile/program_library.hpp"

namespace warmgraph::precompile {

enum class ProgramPolicy : std::uint8_t {
    use_and_keep, ///< load it, else compile and keep it
    use,          ///< load it, else compile it
    renew,        ///< compile and keep it
    use_only,     ///< load it, else miss_forbidden
};

struct ProgramText {
    const std::string& name; ///< for people
    const std::string& source;
    const std::string& options;
};

/// Which program a module is of, to keep what it was compiled to.
struct Origin {
    Ingredients ingredients{};
    std::string source{}, options{};  ///< to see whether headers are still what they were
    std::vector<std::string> ready{}; ///< what the stored one is ready for
    double compile_ms = 0;
    enum class Stored : std::uint8_t { no, yes } stored = Stored::no;
};

struct MadeProgram {
    std::unique_ptr<backends::Module> module;
    enum class How : std::uint8_t { loaded, compiled } how = How::compiled;
    std::string reason{};             ///< why it was compiled; empty where it was loaded
    std::string word{};               ///< the same for statistics: "no_program", "header", "compiler", "refresh", ...
    double ms = 0;                    ///< that it took
    double saved_ms = 0;              ///< what compiling took, less that; 0 where it was compiled
    std::vector<Error> faults{};      ///< stored ones that could not be used, folders that could not be read
    std::unique_ptr<Origin> origin{}; ///< for keep(); null where it cannot be stored
};

class ProgramCache {
public:
    /// `store` must outlive it.
    ProgramCache(store::LocalStore& store, const cachefmt::Trust& trust) : m_store(store), m_library(store, trust) {}

    /// Errors are the compiler's, or miss_forbidden with the reason and the cure. A miss is kept in the store with what
    /// differs (LocalStore::note_program_miss). Thread-safe.
    [[nodiscard]] Result<MadeProgram> make(backends::Device& device, const ProgramText& text, ProgramPolicy policy);
    /// Stores what the module was compiled to, as far as it has it by now (backends::Compiler::compiled), and is ready for
    /// more than what is stored. False: nothing was stored. REQUIRES: no other thread uses `origin`.
    [[nodiscard]] Result<bool> keep(backends::Compiler& compiler, backends::Module& module, Origin& origin);

private:
    class LookUp;
    void note_miss(const Ingredients& ingredients, const Nearest& nearest, const std::string& reason,
                   ProgramPolicy policy);

    store::LocalStore& m_store;
    ProgramLibrary m_library;
};

/// miss_forbidden, with the cure.
[[nodiscard]] Error compile_forbidden(std::string_view reason);

/// "1 compiled image is stored, the nearest differs: header tile.h (1a2b3c4d, here 5e6f7a8b)"
[[nodiscard]] std::string explain(const Ingredients& ingredients, const Nearest& nearest);

} // namespace warmgraph::precompile
