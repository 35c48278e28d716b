#include "warmgraph/precompile/program_cache.hpp"

#include <algorithm>
#include <optional>

#include <unistd.h>

#include "stopwatch.hpp"
#include "warmgraph/base/clock.hpp"
#include "warmgraph/base/log.hpp"
#include "warmgraph/base/process.hpp"
#include "warmgraph/base/units.hpp"

namespace warmgraph::precompile {
namespace {

/// The reason why a program is compiled.
struct Reason {
    std::string text;
    std::string word; ///< as ProgramResult::word
};

/// Returns the reason's word in statistics: "header" for "header tile.h".
std::string word_of(const NearestProgram& nearest)
{
    if (!nearest.ingredients) return "no_program";
    if (nearest.differences.empty()) return "other";
    const std::string& fact = nearest.differences.front().fact;
    return fact.substr(0, fact.find(' '));
}

Result<ProgramResult> compile(backends::Device& device, const ProgramText& text, Reason reason)
{
    const Stopwatch watch;
    auto module = device.compiler().compile(text.source, text.options);
    if (!module) return std::unexpected(module.error());
    ProgramResult made{std::move(*module)};
    made.ms = watch.ms();
    made.reason = std::move(reason.text);
    made.word = std::move(reason.word);
    return made;
}

} // namespace

Error compile_forbidden(std::string_view reason)
{
    return {ErrorCode::miss_forbidden,
            fmt::format("policy no_compile forbids its compilation, which is needed: {}; compile it ahead with "
                        "`warmgraph precompile`, or run once with policy read_write",
                        reason)};
}

std::string explain(const Ingredients& ingredients, const NearestProgram& nearest)
{
    if (!nearest.ingredients) return fmt::format("no compiled image of '{}' is stored", ingredients.program);
    std::string text;
    for (const auto& [fact, then, now, cure] : nearest.differences)
        text += fmt::format("{}{} ({}, here {})", text.empty() ? "" : "; ", fact, then, now.empty() ? "none" : now);
    return fmt::format("{} of it stored, the nearest differs: {}", plural(nearest.variants, "compiled image"), text);
}

void ProgramCache::note_miss(const Ingredients& ingredients, const NearestProgram& nearest, const std::string& reason,
                             ProgramPolicy policy)
{
    store::Miss miss;
    miss.id = ingredients.program; // a new miss of the same program replaces the old one
    miss.time = to_iso8601(system_clock().wall());
    miss.host = host_name();
    miss.process = static_cast<std::uint64_t>(::getpid());
    miss.policy = policy == ProgramPolicy::use_only ? "no_compile" : "read_write";
    miss.program = ingredients.program;
    miss.reason = reason;
    miss.end = policy == ProgramPolicy::use_only ? store::MissEnd::thrown : store::MissEnd::recorded;
    miss.call = key_of(ingredients);
    miss.variants = nearest.variants;
    if (nearest.ingredients) miss.nearest = key_of(*nearest.ingredients);
    const std::size_t kept = std::min(nearest.differences.size(), store::k_most_missed_facts);
    miss.differences.assign(nearest.differences.begin(),
                            nearest.differences.begin() + static_cast<std::ptrdiff_t>(kept));
    miss.more = nearest.differences.size() - kept;
    m_store.note_program_miss(miss);
}

/// One look-up of a program, with its findings.
class ProgramCache::LookUp {
public:
    LookUp(const ProgramLibrary& library, backends::Device& device, const ProgramText& text, ProgramPolicy policy)
        : m_library(library), m_device(device), m_text(text), m_policy(policy)
    {
    }

    /// Loads the program. nullopt: no usable program is stored.
    std::optional<ProgramResult> run(const Ingredients& here, const backends::CompilerIdentity& identity)
    {
        if (!identity.compiler.empty()) {
            Ingredients wanted = here;
            if (auto made = load(wanted)) return made;
            for (const std::string& target : identity.also) {
                wanted.target = target;
                if (auto made = load(wanted)) return made;
            }
        }
        auto found = m_library.nearest(here);
        if (!found) faults.push_back(found.error());
        if (found) nearest = std::move(*found);
        // Without a compiler, the compiler's version cannot be compared, so a stored program that differs only in this
        // version is loaded.
        const bool differs_in_compiler_alone =
            nearest.differences.size() == 1 && nearest.differences.front().fact == "compiler";
        if (!identity.compiler.empty() || !differs_in_compiler_alone) return std::nullopt;
        return load(*nearest.ingredients);
    }

    std::vector<Error> faults; ///< errors of stored programs that could not be used
    NearestProgram nearest;    ///< set when no program could be loaded

private:
    std::optional<ProgramResult> load(const Ingredients& wanted)
    {
        const auto note = [&](const Error& error) {
            faults.push_back(within(fmt::format("the compiled program '{}'", m_text.name), error).error());
        };
        auto found = m_library.find(wanted);
        if (!found) note(found.error());
        if (!found || !*found) return std::nullopt;
        CompiledProgram& program = **found;
        const auto again =
            m_policy == ProgramPolicy::use_only ? backends::Recompile::never : backends::Recompile::if_needed;
        auto module = m_device.compiler().load_compiled(m_text.source, m_text.options, program.compiled, again);
        if (!module) {
            const Error& error = module.error();
            if (error.code == ErrorCode::corrupt || error.code == ErrorCode::stale) m_library.set_aside(wanted, error);
            note(error);
            return std::nullopt;
        }
        ProgramResult made{std::move(*module), ProgramResult::Outcome::loaded};
        made.saved_ms = program.compile_ms;
        made.origin = std::make_unique<Origin>(Origin{std::move(program.ingredients), m_text.source, m_text.options,
                                                      std::move(program.compiled.ready), program.compile_ms,
                                                      Origin::Stored::yes});
        return made;
    }

    const ProgramLibrary& m_library;
    backends::Device& m_device;
    const ProgramText& m_text;
    ProgramPolicy m_policy;
};

Result<ProgramResult> ProgramCache::make(backends::Device& device, const ProgramText& text, ProgramPolicy policy)
{
    const Stopwatch watch;
    const Options options = parse_options(text.options);
    const Headers headers = headers_of(text.source, options);
    const auto identity = device.compiler().identity(text.options);
    if (!identity || !headers.why_unknown.empty()) {
        Reason reason = headers.why_unknown.empty() ? Reason{identity.error().message, "unknown_compiler"}
                                                    : Reason{headers.why_unknown, "unknown_headers"};
        if (policy == ProgramPolicy::use_only) return std::unexpected(compile_forbidden(reason.text));
        return compile(device, text, std::move(reason));
    }
    Ingredients here{text.name,        device.backend(),   sha256(as_bytes(text.source)),
                     options.words,    headers.found,      headers.search,
                     identity->target, identity->compiler, text.tag};
    LookUp look_up(m_library, device, text, policy);
    Reason reason{"policy refresh", "refresh"};
    if (policy != ProgramPolicy::renew) {
        if (auto loaded = look_up.run(here, *identity)) {
            loaded->ms = watch.ms();
            loaded->saved_ms -= loaded->ms;
            loaded->faults = std::move(look_up.faults);
            return std::move(*loaded);
        }
        reason = look_up.faults.empty()
                     ? Reason{explain(here, look_up.nearest), word_of(look_up.nearest)}
                     : Reason{look_up.faults.front().message, std::string(to_string(look_up.faults.front().code))};
        note_miss(here, look_up.nearest, reason.text, policy);
    }
    if (policy == ProgramPolicy::use_only) return std::unexpected(compile_forbidden(reason.text));
    auto made = compile(device, text, std::move(reason));
    if (!made) return made;
    made->faults = std::move(look_up.faults);
    made->origin = std::make_unique<Origin>(Origin{std::move(here), text.source, text.options, {}, made->ms});
    return made;
}

Result<bool> ProgramCache::keep(backends::Compiler& compiler, backends::Module& module, Origin& origin)
{
    auto compiled = compiler.compiled(module);
    if (!compiled) return false;
    if (origin.stored == Origin::Stored::yes && compiled->ready == origin.ready) return false;
    // If a header changed during the compilation, it is unknown which version was compiled.
    const Headers headers = headers_of(origin.source, parse_options(origin.options));
    if (headers.found != origin.ingredients.headers || headers.search != origin.ingredients.search) return false;
    const CompiledProgram program{origin.ingredients, std::move(*compiled), origin.compile_ms,
                                  to_iso8601(system_clock().wall())};
    if (auto done = m_library.put(program); !done) return std::unexpected(done.error());
    origin.ready = program.compiled.ready;
    origin.stored = Origin::Stored::yes;
    return true;
}

} // namespace warmgraph::precompile
