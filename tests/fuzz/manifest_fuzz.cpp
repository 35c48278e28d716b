// Reads the manifest of `warmgraph precompile`.
#include <set>

#include "fuzz.hpp"
#include "precompile/manifest.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size)
{
    using namespace warmgraph;
    const auto manifest = tool::parse_manifest({reinterpret_cast<const char*>(data), size});
    if (!manifest) {
        fuzz::require(manifest.error().code == ErrorCode::invalid_argument && !manifest.error().message.empty(),
                      "a refusal is invalid_argument, and says why");
        return 0;
    }
    std::set<std::string> names;
    fuzz::require(!manifest->programs.empty(), "there is something to compile");
    for (const tool::ManifestProgram& program : manifest->programs) {
        fuzz::require(!program.name.empty() && names.insert(program.name).second, "each program has a name of its own");
        fuzz::require(program.backend == "cuda" || program.backend == "opencl", "a backend that there is");
        fuzz::require(program.file.empty() != program.text.empty(), "one source");
        fuzz::require(options_of(program).size() >= program.options.size(), "options stay");
    }
    return 0;
}
