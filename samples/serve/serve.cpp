// warmgraph_serve: generates the tokens that PyTorch generated, from the entries of record.py and a safetensors file.
// It links no PyTorch, and has none of the model's code.
#include <exception>
#include <filesystem>
#include <string>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "generation.hpp"
#include "safetensors.hpp"
#include "states.hpp"
#include <warmgraph/warmgraph.hpp>

namespace {

namespace fs = std::filesystem;
namespace wg = warmgraph;

constexpr int k_failed = 1, k_usage = 2;

bool run(const fs::path& folder, const std::string& device_id)
{
    const wg::Device device{device_id};
    device.warm_up();
    const serve::Golden golden = serve::Golden::read(folder / "golden.json");
    const samples::Safetensors file = samples::Safetensors::read(folder / "model.safetensors");
    wg::CacheOptions options;
    options.model = golden.model;
    options.cache_dir = (folder / "cache").string();
    options.shapes = wg::ShapeMode::dynamic; // like Python's cache_compile
    wg::Cache cache{options};
    serve::States states{device, file};
    const serve::Generated generated = serve::generate(cache, device, states, golden);
    const bool is_same = generated.tokens == golden.tokens;
    fmt::print("tokens {}: {} that PyTorch generated\n\n", fmt::join(generated.tokens, " "),
               is_same ? "those" : "not those");
    fmt::print("{:<32}{:>8}\n{:<32}{:>8.0f}\n{:<32}{:>8.0f}\n", "process start to first token", "ms", "PyTorch",
               golden.first_token_ms, "warmgraph, C++", generated.first_token_ms);
    return is_same;
}

} // namespace

int main(int argc, char** argv)
{
    CLI::App app{"Generates the tokens that PyTorch generated, from the entries that record.py left, without PyTorch."};
    std::string folder, device = "cuda:0";
    app.add_option("folder", folder, "what record.py wrote")->required();
    app.add_option("--device", device, "as wg::Device takes it")->capture_default_str();
    app.footer("exit codes: 0 done, 1 failed or other tokens, 2 wrong usage");
    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
        return app.exit(error) == 0 ? 0 : k_usage;
    }
    try {
        return run(folder, device) ? 0 : k_failed;
    } catch (const std::exception& error) {
        fmt::print(stderr, "warmgraph_serve: {}\n", error.what());
        return k_failed;
    }
}
