// NVRTC without a device.
#include <algorithm>
#include <utility>

#include "code/nvrtc.hpp"
#include "warmgraph/backends/cuda.hpp"

namespace warmgraph::backends {
namespace cuda {
namespace {

/// Returns "sm_90" for "sm_90a": the letter means features of only that chip ("a") or its family ("f").
std::string_view base_of(std::string_view architecture)
{
    const bool has_letter = architecture.ends_with('a') || architecture.ends_with('f');
    return has_letter ? architecture.substr(0, architecture.size() - 1) : architecture;
}

class NvrtcAhead final : public AheadCompiler {
public:
    NvrtcAhead(std::shared_ptr<const Nvrtc> nvrtc, std::string architecture)
        : m_nvrtc(std::move(nvrtc)), m_architecture(std::move(architecture))
    {
    }

    [[nodiscard]] Result<CompilerIdentity> identity(std::string_view options) override
    {
        const auto words = split_options(options);
        if (!words) return std::unexpected(words.error());
        auto compiler = m_nvrtc->compiler();
        if (!compiler) return std::unexpected(compiler.error());
        return CompilerIdentity{std::move(*compiler), named_architecture(*words).value_or(m_architecture)};
    }
    [[nodiscard]] Result<CompiledImage> compile(std::string_view source, std::string_view options) override
    {
        const auto words = split_options(options);
        if (!words) return std::unexpected(words.error());
        auto cubin = m_nvrtc->compile(source, *words, m_architecture);
        if (!cubin) return std::unexpected(cubin.error());
        return CompiledImage{std::move(*cubin), m_nvrtc->origin_of(source, options, m_architecture)};
    }

private:
    std::shared_ptr<const Nvrtc> m_nvrtc;
    std::string m_architecture;
};

} // namespace
} // namespace cuda

Result<std::unique_ptr<AheadCompiler>> make_cuda_ahead_compiler(const std::string& architecture,
                                                                const CudaOptions& options)
{
    auto nvrtc = cuda::Nvrtc::load(options.nvrtc);
    if (!nvrtc) return std::unexpected(nvrtc.error());
    const auto known = (*nvrtc)->architectures();
    const bool is_named = architecture.starts_with("sm_") && architecture.size() <= 16;
    if (!is_named || (!known.empty() && std::ranges::find(known, cuda::base_of(architecture)) == known.end()))
        return fail(ErrorCode::invalid_argument, "NVRTC {} cannot compile for architecture '{}', expected one of {}",
                    (*nvrtc)->version(), architecture.substr(0, 40), fmt::join(known, ", "));
    return std::make_unique<cuda::NvrtcAhead>(std::move(*nvrtc), architecture);
}

} // namespace warmgraph::backends
