#include "warmgraph/precompile/compile_ahead.hpp"

#include <utility>

#include "stopwatch.hpp"
#include "warmgraph/base/clock.hpp"

namespace warmgraph::precompile {
namespace {

class DeviceAhead final : public backends::AheadCompiler {
public:
    explicit DeviceAhead(std::shared_ptr<backends::Device> device) : m_device(std::move(device)) {}

    [[nodiscard]] Result<backends::CompilerIdentity> identity(std::string_view options) override
    {
        return m_device->compiler().identity(options);
    }
    [[nodiscard]] Result<backends::CompiledImage> compile(std::string_view source, std::string_view options) override
    {
        const auto module = m_device->compiler().compile(source, options);
        if (!module) return std::unexpected(module.error());
        // Makes PoCL build the image now.
        if (const auto image = (*module)->image(); !image) return std::unexpected(image.error());
        auto compiled = m_device->compiler().compiled(**module);
        if (!compiled) return fail(ErrorCode::unsupported, "{} does not return the compiled program", m_device->id());
        return std::move(*compiled);
    }

private:
    std::shared_ptr<backends::Device> m_device;
};

} // namespace

std::unique_ptr<backends::AheadCompiler> ahead_compiler_of(std::shared_ptr<backends::Device> device)
{
    return std::make_unique<DeviceAhead>(std::move(device));
}

Result<AheadResult> compile_ahead(backends::AheadCompiler& compiler, std::string_view backend, const ProgramText& text,
                                  const ProgramLibrary& library)
{
    const Stopwatch watch;
    const Options options = parse_options(text.options);
    const Headers headers = headers_of(text.source, options);
    if (!headers.why_unknown.empty())
        return fail(ErrorCode::unsupported, "it cannot be stored: {}", headers.why_unknown);
    auto identity = compiler.identity(text.options);
    if (!identity) return std::unexpected(identity.error());
    CompiledProgram program{{text.name, std::string(backend), sha256(as_bytes(text.source)), options.words,
                             headers.found, headers.search, identity->target, identity->compiler, text.tag},
                            {}};
    AheadResult ahead{.target = identity->target};
    if (const auto stored = library.find(program.ingredients); stored && *stored) {
        ahead.outcome = AheadResult::Outcome::there;
        ahead.ms = watch.ms();
        ahead.bytes = (*stored)->compiled.image.size();
        return ahead;
    }
    const Stopwatch compiling;
    auto compiled = compiler.compile(text.source, text.options);
    if (!compiled) return std::unexpected(compiled.error());
    program.compiled = std::move(*compiled);
    program.compile_ms = compiling.ms();
    program.written = to_iso8601(system_clock().wall());
    if (headers_of(text.source, options) != headers)
        return fail(ErrorCode::stale, "a header changed while it was compiled: compile it again");
    if (auto put = library.put(program); !put) return std::unexpected(put.error());
    ahead.ms = watch.ms();
    ahead.bytes = program.compiled.image.size();
    return ahead;
}

} // namespace warmgraph::precompile
