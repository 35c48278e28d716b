// The OpenCL device for the conformance suite, with each way to replay that it has.
#include "conformance.hpp"
#include "opencl_environment.hpp"
#include "opencl_program.hpp"
#include "warmgraph/backends/opencl.hpp"

namespace warmgraph::backends::test {
namespace {

Subject replayed_by(const std::string& mode)
{
    const auto open = [mode] {
        ::setenv("WARMGRAPH_OPENCL_REPLAY", mode.c_str(), 1);
        return make_opencl_backend()->open("");
    };
    return {mode, open, k_opencl_program, "kernel void broken(global int* x) { x[0] = undeclared_name; }",
            "undeclared_name"};
}

} // namespace

std::vector<Subject> subjects() { return {replayed_by("enqueue"), replayed_by("command_buffer")}; }

} // namespace warmgraph::backends::test
