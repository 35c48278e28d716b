#include "warmgraph/bundle/artifact_compatibility.hpp"

#include <algorithm>
#include <variant>
#include <vector>

#include <fmt/ranges.h>

#include "warmgraph/autotune/module_configs.hpp"
#include "warmgraph/cachefmt/fact_names.hpp"
#include "warmgraph/profile/profile_file.hpp"

namespace warmgraph::bundle {
namespace {

constexpr const char* k_architecture_fact = "device.architecture";

std::string value_of(const autotune::Facts& facts, const std::string& name)
{
    const auto found = facts.find(name);
    return found != facts.end() ? found->second : std::string();
}

Compatibility does_not(std::string field, std::string detail)
{
    return {Verdict::does_not, std::move(field), std::move(detail)};
}

Compatibility no_device(const std::string& backend)
{
    return does_not(std::string(cachefmt::fact::k_backend),
                    fmt::format("recorded with {}, but there is no such device here", backend));
}

/// Returns the first recorded fact that differs on this machine, with both values.
std::optional<Compatibility> difference(const autotune::Facts& then, const MachineFacts& now, Verdict verdict,
                                        std::string_view cure)
{
    for (const auto& [name, value] : then) {
        const auto here = std::ranges::find(now, name, &cachefmt::Fact::name);
        const std::string is = here != now.end() ? here->value : std::string(cachefmt::k_unknown);
        if (is != value)
            return Compatibility{verdict, name,
                                 fmt::format("{} {} recorded, {} now: {}", name, cachefmt::fact_text(value),
                                             cachefmt::fact_text(is), cure)};
    }
    return std::nullopt;
}

Result<precompile::CompiledProgram> program_of(const Bundle& bundle, const Member& member)
{
    if (auto ok = bundle.check_trust(member); !ok) return std::unexpected(std::move(ok.error()));
    return precompile::decode_facts(member.head);
}

/// The tuned configurations of a kernel or of a module.
struct TunedMember {
    std::string module{}; ///< name of the module; empty for a kernel
    std::vector<autotune::BestConfig> configs{};
};

Result<TunedMember> tuned_of(const Bundle& bundle, const Member& member)
{
    if (auto ok = bundle.check_trust(member); !ok) return std::unexpected(std::move(ok.error()));
    const auto bytes = bundle.content(member);
    if (!bytes) return std::unexpected(bytes.error());
    const auto name = std::get<store::ArtifactName>(*tier_name(member.kind, member.name));
    if (name.form != store::k_module_form) {
        auto best = autotune::decode(*bytes);
        if (!best) return std::unexpected(best.error());
        return TunedMember{{}, {std::move(*best)}};
    }
    const auto module = autotune::decode_module(*bytes);
    if (!module) return std::unexpected(module.error());
    TunedMember tuned{module->module};
    for (const auto& [key, best] : module->configs) tuned.configs.push_back(best);
    return tuned;
}

Compatibility judge_on(backends::Device* device, const precompile::Ingredients& program)
{
    if (device == nullptr) return no_device(program.backend);
    const auto here = device->compiler().identity(fmt::format("{}", fmt::join(program.options, " ")));
    return here ? judge_compiled(program, *here) : does_not("compiler", here.error().message);
}

Result<Compatibility> judge_member_tuned(const Bundle& bundle, const Member& member, const DeviceOf& device_of)
{
    const auto tuned = tuned_of(bundle, member);
    if (!tuned) return std::unexpected(tuned.error());
    Compatibility best; // a module fits if any of its configurations fits
    for (std::size_t i = 0; i < tuned->configs.size(); ++i) {
        const std::string backend = value_of(tuned->configs[i].device, std::string(cachefmt::fact::k_backend));
        const backends::Device* const device = device_of(backend);
        Compatibility fit = device != nullptr ? judge_tuned(tuned->configs[i], device->facts())
                                              : no_device(backend.empty() ? "an unknown backend" : backend);
        if (i == 0 || fit.verdict < best.verdict) best = std::move(fit);
    }
    return best;
}

Result<std::string> describe_compiled(const Bundle& bundle, const Member& member)
{
    const auto program = program_of(bundle, member);
    if (!program) return std::unexpected(program.error());
    const precompile::Ingredients& made_of = program->ingredients;
    return fmt::format("{} for {}, by {}", made_of.program, made_of.target, made_of.compiler);
}

Result<std::string> describe_tuned(const Bundle& bundle, const Member& member)
{
    const auto tuned = tuned_of(bundle, member);
    if (!tuned) return std::unexpected(tuned.error());
    std::vector<std::string> kernels;
    for (const auto& best : tuned->configs)
        kernels.push_back(fmt::format("{}: {}", best.kernel, autotune::to_text(best.config)));
    return fmt::format("{}{}", tuned->module.empty() ? "" : "module " + tuned->module + ": ", fmt::join(kernels, "; "));
}

Result<std::string> describe_profile(const Bundle& bundle, const Member& member)
{
    if (auto ok = bundle.check_trust(member); !ok) return std::unexpected(std::move(ok.error()));
    const auto bytes = bundle.content(member);
    if (!bytes) return std::unexpected(bytes.error());
    const auto profile = profile::decode(*bytes);
    if (!profile) return std::unexpected(profile.error());
    std::uint64_t calls = 0;
    for (const auto& [shape, count] : profile::total(*profile)) calls += count;
    return fmt::format("{}/{}: {} calls", profile->model_info, profile->function, calls);
}

} // namespace

Compatibility judge_compiled(const precompile::Ingredients& program, const backends::CompilerIdentity& here)
{
    precompile::Ingredients now = program;
    now.target = std::ranges::find(here.also, program.target) != here.also.end() ? program.target : here.target;
    if (!here.compiler.empty()) now.compiler = here.compiler; // otherwise the version is unknown and not compared
    const auto different = precompile::differences(program, now);
    if (different.empty()) return {};
    const auto& [fact, recorded, is, cure] = different.front();
    return does_not(fact, fmt::format("{} {} recorded, {} now: {}", fact, recorded, is, cure));
}

Compatibility judge_tuned(const autotune::BestConfig& best, const MachineFacts& here)
{
    if (auto fit = difference(best.device, here, Verdict::does_not, "tune it on this device")) return std::move(*fit);
    auto fit = difference(best.driver, here, Verdict::fits_after, "set TuningOptions::driver to TuningDriver::any");
    if (!fit) return {};
    fit->after = "another " + fit->field;
    return std::move(*fit);
}

Result<Compatibility> judge_artifact(const Bundle& bundle, const Member& member, const DeviceOf& device_of)
{
    if (member.kind == ArtifactKind::tuned) return judge_member_tuned(bundle, member, device_of);
    if (member.kind == ArtifactKind::compiled) {
        const auto program = program_of(bundle, member);
        if (!program) return std::unexpected(program.error());
        return judge_on(device_of(program->ingredients.backend), program->ingredients);
    }
    if (auto ok = bundle.check_trust(member); !ok) return std::unexpected(std::move(ok.error()));
    if (!needs_signed_bundle(member.kind)) return Compatibility{};
    if (bundle.signed_by().empty())
        return fail(ErrorCode::untrusted, "it is used only from a bundle that an accepted key signed");
    return Compatibility{Verdict::fits, "", "only PyTorch can tell whether it fits"};
}

std::string why_not_here(const Bundle& bundle, const Member& member, const DeviceOf& device_of)
{
    const auto fit = judge_artifact(bundle, member, device_of);
    if (!fit) return fit.error().message;
    return fit->verdict == Verdict::does_not ? fmt::format("{}: {}", to_text(*fit), fit->detail) : std::string();
}

Result<std::string> architecture_of(const Bundle& bundle, const Member& member)
{
    if (member.kind == ArtifactKind::compiled) {
        auto program = program_of(bundle, member);
        if (!program) return std::unexpected(program.error());
        return std::move(program->ingredients.target);
    }
    if (member.kind != ArtifactKind::tuned) return std::string();
    const auto tuned = tuned_of(bundle, member);
    if (!tuned) return std::unexpected(tuned.error());
    return tuned->configs.empty() ? std::string() : value_of(tuned->configs.front().device, k_architecture_fact);
}

Result<std::string> describe_artifact(const Bundle& bundle, const Member& member)
{
    switch (member.kind) {
    case ArtifactKind::compiled: return describe_compiled(bundle, member);
    case ArtifactKind::tuned: return describe_tuned(bundle, member);
    case ArtifactKind::profiles: return describe_profile(bundle, member);
    default: return std::string();
    }
}

} // namespace warmgraph::bundle
