// The sections for the cache folder and the environment.
#include <algorithm>
#include <array>

#include <fmt/ranges.h>

#include <unistd.h>

#include "doctor_report.hpp"
#include "verbs/folder_contents.hpp"
#include "warmgraph/base/process.hpp"
#include "warmgraph/ranks/launcher.hpp"

namespace warmgraph::tool {

namespace {

constexpr std::uint64_t k_little_space = 100'000'000; ///< bytes: about two hundred entries with their images

using Lines = std::vector<std::pair<std::string, std::string>>;

void report_space(Report& report, const Context& context, Lines& lines, Json& cache)
{
    std::error_code error;
    const auto space = std::filesystem::space(context.cache_dir, error);
    if (error) return;
    lines.emplace_back("free space", size_text(space.available));
    cache["free_bytes"] = space.available;
    if (space.available < k_little_space)
        report.problems.emplace_back(
            fmt::format("only {} are free at {}", size_text(space.available), context.cache_dir.string()),
            "make room (`warmgraph clear`), or set WARMGRAPH_CACHE_DIR to another disk");
}

void report_contents(Report& report, const store::LocalStore& store, Lines& lines, Json& cache)
{
    const auto functions = store.functions();
    auto contents = functions ? contents_of(store, *functions) : std::unexpected(functions.error());
    if (contents && !contents->quarantined) contents = std::unexpected(contents->quarantined.error());
    if (!contents) {
        report.problems.emplace_back(contents.error().message,
                                     "check the folder's files, or set WARMGRAPH_CACHE_DIR to another one");
        return;
    }
    lines.emplace_back("functions", count_text(contents->functions));
    lines.emplace_back("entries", count_text(contents->entries));
    lines.emplace_back("images",
                       fmt::format("{} ({})", count_text(contents->images), size_text(contents->image_bytes)));
    lines.emplace_back("quarantine", plural(*contents->quarantined, "file"));
    const store::Budget budget = store.budget();
    std::string parts;
    for (const auto& [kind, bytes] : budget.kinds)
        parts += fmt::format(", of {} {}", to_string(kind), size_text(bytes));
    lines.emplace_back("may hold",
                       fmt::format("{}, {}{}", size_text(budget.bytes), plural(budget.files, "file"), parts));
    cache.update(to_json(*contents));
    cache.update(Json{{"most_bytes", budget.bytes}, {"most_files", budget.files}});
    if (!contents->unusable.empty())
        report.problems.emplace_back(
            fmt::format("{} of {} entries cannot be used", contents->unusable.size(), contents->entries),
            "see `warmgraph check`; `warmgraph check --repair` moves them to quarantine");
    if (*contents->quarantined > 0)
        report.problems.emplace_back(plural(*contents->quarantined, "damaged file") + " in quarantine",
                                     "find the cause (disk, copying); then `warmgraph clear --kind quarantine`");
    report.environments = std::move(contents->environments);
}

struct Variable {
    const char* name;
    const char* meaning;
    bool is_secret = false; ///< print whether it is set, never its value
};
constexpr std::array k_variables{
    Variable{"WARMGRAPH_CACHE_DIR", "cache folder"},
    Variable{"WARMGRAPH_TRUSTED_OWNERS", "user ids whose cache files are read: 1000,1001"},
    Variable{"WARMGRAPH_CACHE_BYTES", "how large the cache folder may be: 8G, or 8G,compiled=1G"},
    Variable{"WARMGRAPH_CACHE_FILES", "how many files the cache folder may have"},
    Variable{"WARMGRAPH_COMPRESSION", "what is compressed as it is written: payloads=3@16K,images=0,constants=0"},
    Variable{"WARMGRAPH_POLICY", "read_write, read_only, refresh, off, require_hit or no_compile"},
    Variable{"WARMGRAPH_KINDS", "which kinds are used: entries,compiled,tuned,profiles, or all except some: -tuned"},
    Variable{"WARMGRAPH_PROFILE", "on or off: count the sizes of the functions' calls"},
    Variable{"WARMGRAPH_VERIFY", "never, first or 1/N: the hits that are compared with the function"},
    Variable{"WARMGRAPH_LOG", "trace, debug, info, warn, error or off"},
    Variable{"WARMGRAPH_SIGN_KEY", "the key that signs entries", true},
    Variable{"WARMGRAPH_SIGN_KEY_FILE", "the file with the key that signs entries"},
    Variable{"WARMGRAPH_ACCEPT_KEYS", "keys whose signatures are accepted", true},
    Variable{"WARMGRAPH_ACCEPT_KEYS_FILE", "the file with the keys whose signatures are accepted"},
    Variable{"WARMGRAPH_REQUIRE_SIGNED", "1: entries without an accepted signature are not used"},
    Variable{"WARMGRAPH_REMOTE", "URLs of remote tiers", true},
    Variable{"WARMGRAPH_REMOTE_PASSWORD", "the password for a remote without one in its URL", true},
    Variable{"WARMGRAPH_REMOTE_TOKEN", "the token for a remote without one in its URL", true},
    Variable{"WARMGRAPH_OPENCL", "the OpenCL loader: libOpenCL.so.1"},
    Variable{"WORLD_SIZE", "ranks (torchrun)"},
    Variable{"RANK", "this rank (torchrun)"},
    Variable{"OMPI_COMM_WORLD_SIZE", "ranks (OpenMPI)"},
    Variable{"OMPI_COMM_WORLD_RANK", "this rank (OpenMPI)"},
    Variable{"SLURM_NTASKS", "ranks (Slurm)"},
    Variable{"SLURM_PROCID", "this rank (Slurm)"},
    Variable{"POCL_KERNEL_CACHE", "PoCL's own cache"},
    Variable{"POCL_CACHE_DIR", "folder of PoCL's own cache"},
};

template <std::size_t N>
void check_choice(Report& report, const char* variable, const std::array<std::string_view, N>& choices)
{
    const auto value = environment(variable);
    if (!value || value->empty() || std::ranges::find(choices, *value) != choices.end()) return;
    report.problems.emplace_back(fmt::format("{} is '{}'", variable, *value),
                                 fmt::format("set it to one of {}, or unset it", fmt::join(choices, ", ")));
}

} // namespace

void report_cache(Report& report, const Context& context)
{
    Lines lines{{"path", context.cache_dir.string()}};
    Json cache{{"path", context.cache_dir.string()}};
    const auto info = context.files.info(context.cache_dir);
    cache["exists"] = info && *info;
    if (info && !*info) lines.emplace_back("state", "does not exist yet: the first recording creates it");
    if (info && *info) {
        lines.emplace_back("owner", fmt::format("user {}, mode {:o}", (*info)->owner, (*info)->mode));
        cache.update(Json{{"owner", (*info)->owner}, {"mode", fmt::format("{:o}", (*info)->mode)}});
        if (is_shared(**info))
            lines.emplace_back("shared",
                               fmt::format("with group {}: programs must set share_with_group", (*info)->group));
        const auto store = open_store_as_programs_do(context);
        const bool is_empty = store && !*store;
        if (is_empty) lines.emplace_back("state", "empty: the first recording writes its CACHEDIR.TAG");
        const std::string why_not = store && *store ? (*store)->why_read_only() : "";
        if (!why_not.empty()) lines.emplace_back("state", "read only: " + why_not);
        const bool may_write =
            is_empty ? ::access(context.cache_dir.c_str(), W_OK | X_OK) == 0 : store.has_value() && why_not.empty();
        lines.emplace_back("writable", may_write ? "yes" : "no");
        cache["writable"] = may_write;
        if (is_empty && !may_write)
            report.problems.emplace_back("the cache folder is empty and not writable",
                                         "set WARMGRAPH_CACHE_DIR to a folder of your own");
        if (!store) report.problems.emplace_back(store.error().message, "caching is off until this is repaired");
        report_space(report, context, lines, cache);
        if (store && *store) report_contents(report, **store, lines, cache);
    }
    if (!info) report.problems.emplace_back(info.error().message, "set WARMGRAPH_CACHE_DIR to a folder of your own");
    report.section("cache folder") = std::move(lines);
    report.document["cache"] = std::move(cache);
}

void report_environment(Report& report)
{
    Json variables = Json::object();
    auto& lines = report.section("environment");
    for (const Variable& variable : k_variables) {
        auto value = environment(variable.name);
        if (value && variable.is_secret) *value = "(set)";
        variables[variable.name] = value ? Json(*value) : Json();
        lines.emplace_back(variable.name, value ? *value : fmt::format("not set ({})", variable.meaning));
    }
    report.document["environment"] = variables;

    const auto rank = ranks::resolve_rank({}, environment);
    if (rank)
        lines.emplace_back("rank folder", cachefmt::folder_name(*rank));
    else
        report.problems.emplace_back(rank.error().message, "correct or unset the launcher's environment variables");
    report.document["rank"] = rank ? Json(cachefmt::folder_name(*rank)) : Json();
    if (const auto trust = trust_of({}); !trust)
        report.problems.emplace_back(trust.error().message,
                                     "correct or unset the environment variables of signatures (docs/trust.md)");
    check_choice(
        report, "WARMGRAPH_POLICY",
        std::to_array<std::string_view>({"read_write", "read_only", "refresh", "off", "require_hit", "no_compile"}));
    check_choice(report, "WARMGRAPH_LOG",
                 std::to_array<std::string_view>({"trace", "debug", "info", "warn", "error", "off"}));
}

} // namespace warmgraph::tool
