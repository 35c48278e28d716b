// Device code that was loaded into the fake driver.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "bulk_kernels.hpp"
#include "driver_state.hpp"
#include "image.hpp"

struct CUfunc_st {
    CUmodule module = nullptr;
    std::string name;
    const fake_cuda::Kernel* kernel = nullptr;
    struct Argument {
        fake_cuda::ArgumentKind kind = fake_cuda::ArgumentKind::value;
        std::size_t offset = 0, size = 0;
    };
    std::vector<Argument> arguments; ///< the arguments, without shared memory
    std::map<CUfunction_attribute, int> attributes;
    fake_cuda::BulkRun bulk; ///< if it is set, it runs in place of `kernel`

    [[nodiscard]] std::size_t buffer_size() const
    {
        return arguments.empty() ? 0 : arguments.back().offset + arguments.back().size;
    }
};

struct CUmod_st {
    std::vector<std::byte> image;
    std::map<std::string, std::unique_ptr<CUfunc_st>, std::less<>> functions;
    struct Range {
        CUdeviceptr start = 0;
        std::size_t size = 0;
    };
    std::map<std::string, Range, std::less<>> variables;
};

namespace fake_cuda {

[[nodiscard]] long live_modules();
/// Whether the handle belongs to a function of a loaded module.
[[nodiscard]] bool is_function(CUfunction function);

} // namespace fake_cuda
