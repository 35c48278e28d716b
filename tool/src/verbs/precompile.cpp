// `warmgraph precompile`: compiles a manifest's programs into the cache folder, also on a machine without a GPU.
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <map>
#include <mutex>
#include <thread>

#include <unistd.h>

#include "commands.hpp"
#include "precompile/manifest.hpp"
#include "warmgraph/backends/built.hpp"
#include "warmgraph/base/printable.hpp"
#include "warmgraph/precompile/compile_ahead.hpp"
#include "warmgraph/store/settings.hpp"

namespace warmgraph::tool {

namespace {

using precompile::AheadResult;

struct AheadJob {
    const ManifestProgram* program;
    backends::AheadCompiler* compiler;
    std::string options, target;
    Result<AheadResult> result = fail(ErrorCode::internal, "it was not compiled");
};

/// Compilers by backend and target, each made once.
class AheadCompilers {
public:
    Result<backends::AheadCompiler*> of(const std::string& backend, const std::string& target)
    {
        auto& compiler = m_compilers[{backend, target}];
        if (!compiler) {
            auto made = make(backend, target);
            if (!made) return std::unexpected(made.error());
            compiler = std::move(*made);
        }
        return compiler.get();
    }

private:
    static Result<std::unique_ptr<backends::AheadCompiler>> make(const std::string& backend, const std::string& target)
    {
        if (backend == "cuda") return backends::make_ahead_compiler(backend, target);
        auto device = backends::open_built_device(backend);
        if (!device) return std::unexpected(device.error());
        return precompile::ahead_compiler_of(std::move(*device));
    }
    std::map<std::pair<std::string, std::string>, std::unique_ptr<backends::AheadCompiler>> m_compilers;
};

/// The CUDA targets are those of the command line, else of the program, else of the manifest. Other backends: their
/// device.
Result<std::vector<std::string>> targets_of(const ManifestProgram& program, const Manifest& manifest,
                                            const std::vector<std::string>& asked)
{
    if (program.backend != "cuda") return std::vector<std::string>{""};
    for (const auto* const list : {&asked, &program.architectures, &manifest.architectures})
        if (!list->empty()) return *list;
    return fail(ErrorCode::invalid_argument,
                "program '{}' is compiled for no architecture: give --arch sm_80,sm_90a, or 'arch' in the manifest",
                printable(program.name, 80));
}

Result<std::vector<AheadJob>> jobs_of(const Manifest& manifest, const std::vector<std::string>& asked,
                                      AheadCompilers& compilers)
{
    std::vector<AheadJob> jobs;
    for (const ManifestProgram& program : manifest.programs) {
        const auto targets = targets_of(program, manifest, asked);
        if (!targets) return std::unexpected(targets.error());
        for (const std::string& target : *targets) {
            const auto compiler = compilers.of(program.backend, target);
            if (!compiler) return within(fmt::format("program '{}'", printable(program.name, 80)), compiler.error());
            jobs.push_back({&program, *compiler, options_of(program), target});
        }
    }
    return jobs;
}

/// One line on a terminal's standard error.
class ProgressLine {
public:
    ProgressLine(const Context& context, std::size_t total)
        : m_total(total), m_is_shown(context.output == Output::text && takes_escapes(STDERR_FILENO))
    {
    }
    void advance(const std::string& name)
    {
        const std::scoped_lock lock(m_mutex);
        ++m_done;
        if (!m_is_shown) return;
        const bool is_last = m_done == m_total;
        std::fputs(
            fmt::format("\r\x1b[Kcompiled {} of {}{}", m_done, m_total, is_last ? "\n" : ": " + printable(name, 40))
                .c_str(),
            stderr);
        std::fflush(stderr);
    }

private:
    std::mutex m_mutex;
    std::size_t m_done = 0, m_total;
    bool m_is_shown;
};

void run_all(std::vector<AheadJob>& jobs, const precompile::ProgramLibrary& library, const std::string& tag,
             ProgressLine& progress)
{
    std::atomic<std::size_t> next = 0;
    const auto work = [&] {
        for (std::size_t at = next++; at < jobs.size(); at = next++) {
            AheadJob& job = jobs[at];
            job.result = precompile::compile_ahead(*job.compiler, job.program->backend,
                                                   {job.program->name, job.program->text, job.options, tag}, library);
            progress.advance(job.program->name);
        }
    };
    const std::size_t count = std::min<std::size_t>(std::max(std::thread::hardware_concurrency(), 1U), jobs.size());
    std::vector<std::jthread> threads;
    for (std::size_t i = 1; i < count; ++i) threads.emplace_back(work);
    work();
}

std::string_view name_of(const Result<AheadResult>& result) noexcept
{
    if (!result) return "failed";
    return result->outcome == AheadResult::Outcome::there ? "there" : "compiled";
}

Json to_json(const AheadJob& job)
{
    Json json{{"name", job.program->name},
              {"backend", job.program->backend},
              {"target", job.result ? job.result->target : job.target},
              {"outcome", name_of(job.result)}};
    if (job.result) json.update({{"ms", job.result->ms}, {"bytes", job.result->bytes}});
    if (!job.result)
        json["error"] = {{"code", to_string(job.result.error().code)}, {"message", job.result.error().message}};
    return json;
}

int report(const Context& context, const std::vector<AheadJob>& jobs)
{
    const auto count = [&](std::string_view name) {
        return static_cast<std::uint64_t>(
            std::ranges::count(jobs, name, [](const AheadJob& job) { return name_of(job.result); }));
    };
    const std::uint64_t compiled = count("compiled"), there = count("there"), failed = count("failed");
    if (context.output == Output::json) {
        Json programs = Json::array();
        for (const AheadJob& job : jobs) programs.push_back(to_json(job));
        print(Json{{"cache_dir", context.cache_dir.string()},
                   {"programs", programs},
                   {"compiled", compiled},
                   {"there", there},
                   {"failed", failed}});
        return failed == 0 ? k_ok : k_found_wrong;
    }
    std::string text;
    for (const AheadJob& job : jobs) {
        const std::string name = printable(job.program->name, 80);
        if (job.result)
            text += fmt::format("{} for {}: {} ({}, {})\n", name, printable(job.result->target, 120),
                                name_of(job.result), size_text(job.result->bytes), time_text(job.result->ms));
        else
            text += fmt::format("{}{}: {}\n", name, job.target.empty() ? "" : " for " + job.target,
                                context.style.paint(Colour::red, printable(job.result.error().message, 4000)));
    }
    print(text + fmt::format("{} compiled, {} there already, {} failed\n", compiled, there, failed));
    return failed == 0 ? k_ok : k_found_wrong;
}

} // namespace

Result<int> precompile(const Context& context, const PrecompileOptions& options)
{
    const auto manifest = read_manifest(options.manifest);
    if (!manifest) return std::unexpected(manifest.error());
    AheadCompilers compilers;
    auto jobs = jobs_of(*manifest, options.architectures, compilers);
    if (!jobs) return std::unexpected(jobs.error());
    const auto tag = store::resolve_key_tag({});
    if (!tag) return std::unexpected(tag.error());
    const auto trust = trust_of(options.keys);
    if (!trust) return std::unexpected(trust.error());
    const auto store = open_store_to_fill(context, *trust);
    if (!store) return std::unexpected(store.error());
    const precompile::ProgramLibrary library(**store, *trust);
    ProgressLine progress(context, jobs->size());
    run_all(*jobs, library, *tag, progress);
    return report(context, *jobs);
}

} // namespace warmgraph::tool
