// A fixture for promises on a CUDA device. Its tests can call the driver directly and load modules of their own.
#pragma once

#include "native.hpp"
#include "promise.hpp"

namespace warmgraph::test {

/// Device code that the program itself loads, as a framework does.
class Code {
public:
    explicit Code(std::string_view source) : m_module(Native::instance().load(Native::compile(source))) {}
    Code(const Code&) = delete;
    Code& operator=(const Code&) = delete;
    /// Unloads the module, so that its changed variables do not affect other modules.
    ~Code() { Native::instance().driver().cuModuleUnload(m_module); }
    [[nodiscard]] CUfunction operator[](const char* kernel) const
    {
        return Native::instance().function(m_module, kernel);
    }
    /// Writes and reads a variable, like cudaMemcpyToSymbol and cudaMemcpyFromSymbol.
    template <class T>
    void write(const char* variable, T value) const
    {
        const Native& native = Native::instance();
        native.check(native.driver().cuMemcpy(at(variable), reinterpret_cast<CUdeviceptr>(&value), sizeof value),
                     "cuMemcpy");
        native.check(native.driver().cuCtxSynchronize(), "cuCtxSynchronize");
    }
    template <class T>
    [[nodiscard]] T read(const char* variable) const
    {
        const Native& native = Native::instance();
        T value{};
        native.check(native.driver().cuMemcpy(reinterpret_cast<CUdeviceptr>(&value), at(variable), sizeof value),
                     "cuMemcpy");
        native.check(native.driver().cuCtxSynchronize(), "cuCtxSynchronize");
        return value;
    }

private:
    [[nodiscard]] CUdeviceptr at(const char* variable) const
    {
        const Native& native = Native::instance();
        CUdeviceptr address = 0;
        native.check(native.driver().cuModuleGetGlobal(&address, nullptr, m_module, variable), "cuModuleGetGlobal");
        return address;
    }
    CUmodule m_module;
};

class GpuPromise : public PromiseTest {
protected:
    static constexpr unsigned k_grid = 2, k_block = 128;

    GpuPromise() : PromiseTest("cuda:0") { device.prepare_recording(); }
    void settle() override { native.check(native.driver().cuCtxSynchronize(), "cuCtxSynchronize"); }
    [[nodiscard]] static CUstream stream_of(Recorder& r) { return static_cast<CUstream>(r.stream().native()); }
    /// Launches the kernel with k_count threads.
    void launch(CUstream stream, CUfunction kernel, std::vector<void*> parameters) const
    {
        native.launch(stream, kernel, k_grid, k_block, std::move(parameters));
    }
    /// The spec for x -> y with code that is not a Program.
    [[nodiscard]] static Spec plain_spec()
    {
        Spec result = x_to_y(i32, k_count);
        result.version = "1";
        return result;
    }

    const Native& native = Native::instance();
};

} // namespace warmgraph::test
