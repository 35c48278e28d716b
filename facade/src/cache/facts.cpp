#include "cache/cache_impl.hpp"
#include "warmgraph/autotune/configuration.hpp"
#include "warmgraph/base/process.hpp"
#include "warmgraph/cachefmt/codec.hpp"
#include "warmgraph/cachefmt/fact_names.hpp"
#include "warmgraph/call/surroundings.hpp"
#include "warmgraph/device/device_impl.hpp"
#include "warmgraph/precompile/headers.hpp"
#include "warmgraph/precompile/included_headers.hpp"

namespace warmgraph {

namespace {

using cachefmt::Fact;
using cachefmt::Role;

Fact code_identity(const Spec& spec, const void* code)
{
    if (!spec.version.empty()) return {"code.version", spec.version, Role::must_match};
    return {std::string(cachefmt::fact::k_build_id), build_id_of(code).value_or(cachefmt::k_unknown), Role::must_match};
}

/// Returns the digest of the program's code. Returns "unknown" if a header may change unnoticed, unless the caller
/// gives the code a version.
std::string program_digest(const Program& program, bool has_version)
{
    std::string source = to_hex(ProgramAccess::source_digest(program));
    // The contents of the headers are guards. Their folders are not, because an installation may move.
    const auto options = precompile::parse_options(program.options());
    if (!options.folders.empty() || !options.files.empty()) {
        Sha256 hash;
        hash.update_field(program.source());
        for (const std::string& word : options.words) hash.update_field(word);
        source = to_hex(hash.finish());
    }
    const IncludedHeaders headers = included_headers(program.source(), program.options());
    if (!headers.why_unknown.empty() && !has_version) return cachefmt::k_unknown;
    return headers.digest.empty() ? source
                                  : to_hex(Sha256{}.update_field(source).update_field(headers.digest).finish());
}

/// Adds one fact for each name of a program. If several programs have one name, the fact covers all of them, in their
/// order.
void add_programs(std::vector<Fact>& facts, const Spec& spec)
{
    std::map<std::string, std::vector<std::string>> by_name;
    for (const Program& program : spec.code)
        by_name[program.name()].push_back(program_digest(program, !spec.version.empty()));
    for (const auto& [name, digests] : by_name) {
        if (digests.size() == 1) {
            facts.push_back({"program." + name, digests.front(), Role::must_match});
            continue;
        }
        Sha256 all;
        for (const std::string& digest : digests) all.update_field(digest);
        const bool is_unknown = std::ranges::find(digests, cachefmt::k_unknown) != digests.end();
        facts.push_back({"program." + name, is_unknown ? cachefmt::k_unknown : to_hex(all.finish()), Role::must_match});
    }
}

/// Checks the device's facts `env.NAME`, which are flags that its compiler reads from the environment. Flags that name
/// files become unknown, because the files may change. Skips variables that the function names, because they are
/// already guards.
void check_compiler_flags(std::vector<Fact>& facts, const Spec& spec)
{
    std::erase_if(facts, [&](const Fact& fact) {
        return std::ranges::any_of(spec.environment, [&](const std::string& name) {
            return fact.name == std::string(cachefmt::fact::k_environment) + name;
        });
    });
    for (Fact& fact : facts) {
        if (!fact.name.starts_with(cachefmt::fact::k_environment)) continue;
        const auto flags = precompile::parse_options(fact.value);
        if (!flags.folders.empty() || !flags.files.empty() || !flags.why_unknown.empty())
            fact.value = cachefmt::k_unknown;
    }
}

/// Adds the tuned configurations, which are a part of the code's identity. The programs' options contain the same
/// values; these facts also name the kernel.
void add_tuned(std::vector<Fact>& facts, const std::vector<Tuned>& tuned)
{
    std::map<std::string, std::string> by_kernel;
    for (const Tuned& each : tuned) {
        std::string& text = by_kernel[each.report().kernel];
        text += (text.empty() ? "" : "; ") + autotune::to_text(each.config());
    }
    for (const auto& [kernel, text] : by_kernel) facts.push_back({"code.tuned." + kernel, text, Role::must_match});
}

} // namespace

bool is_code_fact(std::string_view name) noexcept { return cachefmt::fact::is_of_code(name); }

std::vector<std::string> environment_of(const Spec& spec)
{
    std::vector<std::string> values;
    for (const auto& name : spec.environment)
        values.push_back(environment(name.c_str()).value_or(std::string(cachefmt::fact::k_unset)));
    return values;
}

std::vector<Fact> gather_facts(const Cache::Impl& cache, const std::string& function, const Spec& spec,
                               const backends::Device& device, const std::string& interface, const void* code)
{
    std::vector<Fact> facts = device.facts();
    check_compiler_flags(facts, spec);
    facts.push_back(
        {std::string(cachefmt::fact::k_format), std::to_string(cachefmt::k_format_version), Role::must_match});
    facts.push_back({k_interface_fact, interface, Role::must_match});
    for (const auto& [name, value] : spec.recorded_code) facts.push_back({name, value, Role::must_match});
    if (spec.recorded_code.empty()) facts.push_back(code_identity(spec, code));
    for (const auto& [name, value] : cache.settings.options.config)
        facts.push_back({std::string(cachefmt::fact::k_model_config) + name, value, Role::must_match});
    for (const auto& [name, value] : spec.config)
        facts.push_back({std::string(cachefmt::fact::k_config) + name, value, Role::must_match});
    const auto values = environment_of(spec);
    for (std::size_t i = 0; i < values.size(); ++i)
        facts.push_back(
            {std::string(cachefmt::fact::k_environment) + spec.environment[i], values[i], Role::must_match});
    add_programs(facts, spec);
    if (spec.recorded_code.empty()) add_tuned(facts, spec.tuned);

    facts.push_back({std::string(cachefmt::fact::k_model), cache.settings.options.model, Role::identity});
    facts.push_back({std::string(cachefmt::fact::k_function), function, Role::identity});
    facts.push_back({std::string(cachefmt::fact::k_rank), cachefmt::folder_name(cache.settings.rank), Role::identity});

    facts.push_back({std::string(cachefmt::fact::k_binary_path), binary_of(code), Role::advisory});
    facts.push_back({"host.name", host_name(), Role::advisory});
    if (!spec.metadata.empty()) facts.push_back({k_metadata_fact, spec.metadata, Role::advisory});
    guards::canonicalize(facts);
    return facts;
}

} // namespace warmgraph
