#include "processes.hpp"

#include <fstream>
#include <stdexcept>

#include <fmt/format.h>

#include "spawn.hpp"
#include "temp_dir.hpp"

namespace warmgraph::bench {

namespace fs = std::filesystem;

fs::path program_of(const fs::path& built)
{
    const fs::path beside = fs::read_symlink("/proc/self/exe").parent_path() / built.filename();
    return fs::exists(beside) ? beside : built;
}

nlohmann::json result_of(const fs::path& program, std::vector<std::string> arguments)
{
    // PoCL's cache in memory, as in the demo, because PoCL syncs every file that it unpacks.
    const test::TempDir own{fs::exists("/dev/shm") ? fs::path("/dev/shm") : fs::temp_directory_path()};
    const fs::path json = own.path() / "result.json";
    arguments.insert(arguments.end(), {"--json", json.string()});
    llm::Command command{program, std::move(arguments), {}, own.path() / "output", {}};
    command.environment = {
        {"POCL_KERNEL_CACHE", "1"}, {"POCL_CACHE_DIR", own.path().string()}, {"CUDA_CACHE_DISABLE", "1"}};
    if (const int code = llm::run(command); code != 0)
        throw std::runtime_error(fmt::format("{} ended with exit code {}", program.filename().string(), code));
    std::ifstream file{json};
    return nlohmann::json::parse(file);
}

nlohmann::json child(const std::string& name, std::vector<std::string> arguments)
{
    arguments.insert(arguments.begin(), {"--child", name});
    return result_of(fs::read_symlink("/proc/self/exe"), std::move(arguments));
}

} // namespace warmgraph::bench
