// Makes modules from source. A library that only replays does not link this file.
#include "code/module.hpp"
#include "code/nvrtc.hpp"
#include "device/core.hpp"

namespace warmgraph::backends::cuda {

Result<std::unique_ptr<CudaModule>> CudaModule::compile(Core& core, std::string_view source, std::string_view options)
{
    const auto words = split_options(options);
    if (!words) return std::unexpected(words.error());
    const auto nvrtc = Nvrtc::load(core.options.nvrtc);
    if (!nvrtc) return std::unexpected(nvrtc.error());
    const std::string architecture = core.architecture();
    const auto cubin = (*nvrtc)->compile(source, *words, architecture);
    if (!cubin) return std::unexpected(cubin.error());
    return load(core, *cubin, (*nvrtc)->origin_of(source, options, architecture));
}

Result<CompilerIdentity> CudaModule::compiler_identity(const Core& core, std::string_view options)
{
    const auto words = split_options(options);
    if (!words) return std::unexpected(words.error());
    const auto nvrtc = Nvrtc::load(core.options.nvrtc);
    auto compiler = nvrtc ? (*nvrtc)->compiler() : Result<std::string>{std::string{}};
    if (!compiler) return std::unexpected(compiler.error());
    if (auto named = named_architecture(*words)) return CompilerIdentity{std::move(*compiler), std::move(*named)};
    const std::string architecture = core.architecture();
    return CompilerIdentity{std::move(*compiler), architecture, {architecture + "a"}};
}

} // namespace warmgraph::backends::cuda
