// Cases with device code that Triton made. It is loaded as Triton's launcher does, recorded without Python, and
// replayed without the cubin.
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <sstream>
#include <stdexcept>

#include <sys/wait.h>

#include "../case.hpp"

namespace warmgraph::test {

namespace {

constexpr std::int32_t k_side = 256; ///< width of the square matrices; a multiple of both compilations' block sizes
constexpr unsigned k_warp = 32;
constexpr int k_no_such_command = 127; ///< the shell's exit code for a command that does not exist

/// A kernel as triton_kernel.py's output line describes it, with the driver's handles for it.
struct TritonKernel {
    CUfunction function = nullptr;
    unsigned shared_bytes = 0, warps = 0, rows = 0, columns = 0;
    std::vector<std::string> params; ///< names of the parameters; Triton's own parameters follow them, and are `null`
};

/// How many pointers Triton itself adds to the parameters (scratch, and memory for a profile). This kernel does not use
/// them.
std::size_t count_own_params(CUfunction function, std::size_t known)
{
    const Driver& driver = Native::instance().driver();
    std::size_t count = known;
    for (std::size_t offset = 0, size = 0; driver.cuFuncGetParamInfo(function, count, &offset, &size) == CUDA_SUCCESS;
         ++count)
        if (size != sizeof(CUdeviceptr)) throw std::runtime_error("a parameter of Triton's own that is no pointer");
    return count - known;
}

TritonKernel load_kernel(const std::string& line)
{
    const Native& native = Native::instance();
    TritonKernel kernel;
    std::istringstream words{line};
    std::string cubin, name, param;
    words >> cubin >> name >> kernel.shared_bytes >> kernel.warps >> kernel.rows >> kernel.columns;
    while (words >> param) kernel.params.push_back(param);
    std::ifstream file{prepared_folder() + "/" + cubin, std::ios::binary};
    const std::vector<char> bytes{std::istreambuf_iterator<char>{file}, {}};
    kernel.function = native.function(native.load(std::as_bytes(std::span{bytes})), name.c_str());
    native.check(native.driver().cuFuncSetAttribute(kernel.function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                                    static_cast<int>(kernel.shared_bytes)),
                 "cuFuncSetAttribute");
    kernel.params.resize(kernel.params.size() + count_own_params(kernel.function, kernel.params.size()), "null");
    return kernel;
}

/// Both compilations of the kernel. They are loaded when they are first used.
class TritonKernels {
public:
    [[nodiscard]] const TritonKernel& operator[](std::size_t index)
    {
        if (m_kernels.empty()) {
            std::ifstream lines{prepared_folder() + "/kernels.txt"};
            for (std::string line; std::getline(lines, line);) m_kernels.push_back(load_kernel(line));
        }
        return m_kernels.at(index);
    }

private:
    std::vector<TritonKernel> m_kernels;
};

/// Launches to = silu(from w).
void launch_product(Recorder& r, const TritonKernel& kernel, const char* from, const char* to)
{
    void *x = r[from].pointer(), *w = r["w"].pointer(), *y = r[to].pointer(), *null = nullptr;
    std::int32_t side = k_side;
    const std::map<std::string, void*> values{{"x", &x},        {"w", &w},          {"y", &y},      {"rows", &side},
                                              {"inner", &side}, {"columns", &side}, {"null", &null}};
    std::vector<void*> params;
    for (const std::string& name : kernel.params) params.push_back(values.at(name));
    Native::instance().launch(native_stream(r.stream()), kernel.function,
                              k_side / kernel.rows * (k_side / kernel.columns), kernel.warps * k_warp, params,
                              kernel.shared_bytes);
}

int compile_kernels()
{
    const auto script = std::filesystem::read_symlink("/proc/self/exe").parent_path() / "torch/triton_kernel.py";
    const std::string command = "python3 " + script.string() + " " + prepared_folder() + " " +
                                std::to_string(Native::instance().compute_capability());
    const int status = std::system(command.c_str());
    if (!WIFEXITED(status)) return 1;
    return WEXITSTATUS(status) == k_no_such_command ? k_lacking_exit : WEXITSTATUS(status);
}

/// One kernel is compiled with two block sizes, so that two modules have a kernel with the same name. If a kernel was
/// chosen by its name, the code for large blocks would be launched with small blocks.
Case equal_names_from_triton()
{
    auto kernels = std::make_shared<TritonKernels>();
    constexpr std::int64_t k_count = std::int64_t{k_side} * k_side;
    return {.name = "two_triton_kernels_with_equal_names",
            .memory = {{"x", Memory::Kind::input, bf16, k_count},
                       {"w", Memory::Kind::weights, bf16, k_count},
                       {"y", Memory::Kind::output, bf16, k_count},
                       {"z", Memory::Kind::output, bf16, k_count}},
            .work =
                [kernels](Recorder& r) {
                    launch_product(r, (*kernels)[0], "x", "y");
                    launch_product(r, (*kernels)[1], "y", "z");
                },
            .prepare = compile_kernels,
            .needs = "python3 with Triton"};
}

} // namespace

void add_triton_cases(std::vector<std::pair<std::string, MakeCase>>& all)
{
    all.emplace_back("two_triton_kernels_with_equal_names", equal_names_from_triton);
}

} // namespace warmgraph::test
