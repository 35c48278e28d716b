#include "program.hpp"

#include <cstdio>
#include <exception>
#include <fstream>
#include <map>
#include <stdexcept>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "config.hpp"

namespace llm {

namespace {

namespace fs = std::filesystem;
namespace wg = warmgraph;

constexpr int k_failed = 1;
constexpr int k_usage = 2;
constexpr int k_missed = 3;

const std::map<std::string, wg::Policy> k_policies{
    {"read_write", wg::Policy::read_write},   {"read_only", wg::Policy::read_only},
    {"refresh", wg::Policy::refresh},         {"off", wg::Policy::off},
    {"require_hit", wg::Policy::require_hit}, {"no_compile", wg::Policy::no_compile}};

std::vector<std::string> names_of_policies()
{
    std::vector<std::string> names;
    for (const auto& [name, policy] : k_policies) names.push_back(name);
    return names;
}

} // namespace

void declare(CLI::App& app, ProgramOptions& options)
{
    app.add_option("--cache-dir", options.cache_dir, "default: $WARMGRAPH_CACHE_DIR, else .warmgraph_cache");
    app.add_option("--bundle", options.bundles,
                   "a bundle (.wgb) that is read where the cache folder has nothing; may be given again");
    app.add_option("--policy", options.policy, "default: $WARMGRAPH_POLICY, else read_write")
        ->check(CLI::IsMember(names_of_policies()));
    app.add_option("--weights", options.weights, "a safetensors file; default: the one that comes with the sample");
    app.add_option("--json", options.json,
                   "write the result to this file, '-': to standard output and nothing else there");
    app.footer("exit codes: 0 done, 1 failed, 2 wrong usage, 3 a miss that the policy forbids");
}

fs::path weights_of(const ProgramOptions& options)
{
    if (!options.weights.empty()) return options.weights;
    std::error_code ignored;
    const fs::path folder = fs::read_symlink("/proc/self/exe", ignored).parent_path();
    const fs::path installed = folder.parent_path() / LLM_INSTALLED_WEIGHTS;
    return fs::exists(installed, ignored) ? installed : folder / fs::path(LLM_INSTALLED_WEIGHTS).filename();
}

wg::CacheOptions cache_options(const ProgramOptions& options, const Config& model)
{
    wg::CacheOptions result;
    result.model = model.name;
    result.config = model.identity();
    result.cache_dir = options.cache_dir;
    result.bundles = options.bundles;
    if (!options.policy.empty()) result.policy = k_policies.at(options.policy);
    return result;
}

void write_json(const nlohmann::ordered_json& result, const ProgramOptions& options)
{
    if (options.json.empty()) return;
    // The model may emit a part of a character: invalid bytes are replaced and not refused.
    const std::string text = result.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
    if (!options.is_for_people()) {
        fmt::print("{}", text);
        return;
    }
    std::ofstream file(options.json, std::ios::binary);
    file << text;
    if (!file.flush()) throw std::runtime_error(fmt::format("cannot write '{}'", options.json));
}

int run_program(CLI::App& app, const char* name, int argc, char** argv, const std::function<void()>& work)
{
    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
        return app.exit(error) == 0 ? 0 : k_usage;
    }
    try {
        work();
        return 0;
    } catch (const wg::Exception& error) {
        fmt::print(stderr, "{}: {}\n", name, error.what());
        return error.code() == wg::ErrorCode::miss_forbidden ? k_missed : k_failed;
    } catch (const std::exception& error) {
        fmt::print(stderr, "{}: {}\n", name, error.what());
        return k_failed;
    }
}

} // namespace llm
