// A hard case: work that is recorded in one process and restored in another, at other addresses. Each case runs in
// three processes (native, which has no cache; record; replay), and their results are compared. An earlier process may
// prepare files.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "native.hpp"
#include "warmgraph/warmgraph.hpp"

namespace warmgraph::test {

/// A range of device memory in a case. Inputs and states start with pseudo-random contents, which are the same in every
/// process.
struct Memory {
    enum class Kind { input, output, state, weights };
    std::string name;
    Kind kind = Kind::input;
    DType dtype = f32;
    std::int64_t count = 0; ///< number of elements
};

enum class Mode { native, record, replay };

struct Case {
    std::string name;
    std::vector<Memory> memory;
    std::vector<ScalarDecl> scalars{};
    std::vector<std::pair<std::string, int>> scalar_values{}; ///< i32 values that the scalars have in the measured call
    /// Makes scalars whose values differ between processes. Called once, when the memory is allocated.
    std::function<std::vector<Arg>(Mode)> own_scalars{};
    int calls = 1; ///< how many calls each process makes in a row; the last call's results are compared
    /// The cached work. It loads its code at its first call, so a process that only replays loads none.
    Callable work;
    double tolerance = 0;                 ///< the largest allowed relative difference of an element; 0: bitwise equal
    Outcome expected = Outcome::recorded; ///< in the recording process; if refused, the replay process runs `work`
    std::string refusal{};                ///< a part of the reason, if the outcome is refused
    /// Writes files into prepared_folder(). It runs in its own process and returns that process's exit code.
    std::function<int()> prepare{};
    std::string needs{};                         ///< software that `prepare` needs; without it the case is skipped
    std::vector<std::string> frozen_variables{}; ///< see Spec::frozen_variables
};

/// The exit code of `prepare` when Case::needs is missing.
inline constexpr int k_lacking_exit = 77;

/// The folder that Case::prepare fills for `work`. It is removed before the replaying process runs.
[[nodiscard]] const std::string& prepared_folder();

using MakeCase = std::function<Case()>;

/// All cases, each with its name. Each file in cases/ has one function that adds its cases.
[[nodiscard]] const std::vector<std::pair<std::string, MakeCase>>& cases();
void add_kernel_cases(std::vector<std::pair<std::string, MakeCase>>& all);
void add_module_cases(std::vector<std::pair<std::string, MakeCase>>& all);
void add_shape_cases(std::vector<std::pair<std::string, MakeCase>>& all);
void add_memory_cases(std::vector<std::pair<std::string, MakeCase>>& all);
void add_triton_cases(std::vector<std::pair<std::string, MakeCase>>& all);
void add_library_cases(std::vector<std::pair<std::string, MakeCase>>& all);

/// Runs one case in this process. `mode`: prepare, native, record or replay. The results go to folder/<mode>.bin.
/// Returns the exit code.
[[nodiscard]] int run_child(const std::string& name, const std::string& mode, const std::string& folder);

/// The stream that a callable enqueues on.
[[nodiscard]] inline CUstream native_stream(Stream& stream) { return static_cast<CUstream>(stream.native()); }

/// Code that is compiled and loaded once per process, when it is first needed.
class LazyModule {
public:
    explicit LazyModule(std::string source, std::string options = "")
        : m_source(std::move(source)), m_options(std::move(options))
    {
    }
    [[nodiscard]] CUfunction operator[](const char* kernel) { return Native::instance().function(module(), kernel); }
    [[nodiscard]] CUmodule module()
    {
        if (m_module == nullptr) m_module = Native::instance().load(Native::compile(m_source, m_options));
        return m_module;
    }

private:
    std::string m_source, m_options;
    CUmodule m_module = nullptr;
};

} // namespace warmgraph::test
