#include "code/compiler.hpp"

#include "code/module.hpp"

namespace warmgraph::backends::cuda {

Result<std::unique_ptr<Module>> CudaCompiler::compile(std::string_view source, std::string_view options)
{
    return CudaModule::compile(m_core, source, options);
}

Result<CompilerIdentity> CudaCompiler::identity(std::string_view options)
{
    return CudaModule::compiler_identity(m_core, options);
}

std::optional<CompiledImage> CudaCompiler::compiled(Module& module)
{
    auto image = module.image(); // the module keeps it, so this is cheap
    if (!image || module.origin() == Digest{}) return std::nullopt;
    return CompiledImage{std::move(*image), module.origin()};
}

Result<std::unique_ptr<Module>> CudaCompiler::load_compiled(std::string_view, std::string_view,
                                                            const CompiledImage& compiled, Recompile)
{
    m_warm_up.wait();
    return CudaModule::load(m_core, compiled.image, compiled.origin);
}

} // namespace warmgraph::backends::cuda
