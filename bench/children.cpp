#include "children.hpp"

#include <charconv>
#include <chrono>
#include <fstream>
#include <iostream>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cuda_chain.hpp"
#include "cuda_products.hpp"
#include "native_graph.hpp"
#include "timing.hpp"

namespace warmgraph::bench {
namespace {

using Json = nlohmann::ordered_json;

/// Command line pairs "--name value".
class Arguments {
public:
    explicit Arguments(std::span<char* const> words)
    {
        if (words.size() % 2 != 0) throw std::runtime_error("an option lacks its value");
        for (std::size_t i = 0; i < words.size(); i += 2) m_values[words[i]] = words[i + 1];
    }
    [[nodiscard]] const std::string& text(const std::string& name) const
    {
        const auto found = m_values.find(name);
        if (found == m_values.end()) throw std::runtime_error("missing option " + name);
        return found->second;
    }
    [[nodiscard]] std::uint32_t number(const std::string& name) const
    {
        const std::string& given = text(name);
        std::uint32_t value = 0;
        const auto [end, error] = std::from_chars(given.data(), given.data() + given.size(), value);
        if (error != std::errc{} || end != given.data() + given.size() || value == 0)
            throw std::runtime_error(fmt::format("{} is '{}', expected a number from 1", name, given));
        return value;
    }

private:
    std::map<std::string, std::string> m_values;
};

void call(Function& function, const ChainDevice& shared)
{
    function({{"x", shared.x}, {"y", shared.y}, {"position", ChainDevice::k_position}});
}

void call(Function& function, const ProductsDevice& shared) { function({{"x", shared.x}, {"y", shared.y}}); }

/// Measures from "device open, memory ready" to the result on the host. `wrap` makes the function over the memory.
template <class Memory, class Wrap>
Json first_result(const Arguments& arguments, Wrap wrap)
{
    const SteadyTime start = now();
    const Memory shared;
    const double context_ms = milliseconds_since(start);
    const SteadyTime begin = now();
    Cache cache = open_cache(arguments.text("--cache-dir"), Policy::read_write);
    Function function = wrap(cache, shared, arguments.number("--nodes"));
    call(function, shared);
    shared.device.synchronize();
    const std::vector<float> y = shared.y.template read<float>();
    const double first_result_ms = milliseconds_since(begin);
    const Report report = function.report();
    Json phases = Json::array();
    for (const auto& [name, took] : report.phases) phases.push_back({name, took});
    return {{"outcome", to_string(report.outcome)}, {"reason", report.reason}, {"context_ms", context_ms},
            {"first_result_ms", first_result_ms},   {"phases", phases},        {"result", y.front()}};
}

/// Measures from "device open, memory ready" to the result on the host, and then the recording.
Json miss(const Arguments& arguments)
{
    const std::string what = arguments.text("--do");
    if (what != "off" && what != "record")
        throw std::runtime_error(fmt::format("--do is '{}', expected off or record", what));
    const ProductsDevice shared;
    const SteadyTime begin = now();
    if (what == "record") shared.device.prepare_recording();
    CacheOptions options;
    options.model = "bench";
    options.cache_dir = arguments.text("--cache-dir");
    options.policy = what == "off" ? Policy::off : Policy::read_write;
    options.record = RecordWhen::on_demand;
    Cache cache{options};
    Function function = wrap_products(cache, shared, arguments.number("--nodes"));
    call(function, shared);
    shared.device.synchronize();
    const std::vector<float> y = shared.y.read<float>();
    const double first_result_ms = milliseconds_since(begin);
    const SteadyTime recording = now();
    const std::size_t recorded = cache.record_pending();
    const double record_ms = milliseconds_since(recording);
    if (recorded != (what == "record" ? 1 : 0)) throw std::runtime_error("not recorded: " + function.report().reason);
    Json phases = Json::array();
    for (const auto& [name, took] : function.report().phases) phases.push_back({name, took});
    return {{"first_result_ms", first_result_ms}, {"record_ms", record_ms}, {"phases", phases}, {"result", y.front()}};
}

std::vector<Function> wrap_all(Cache& cache, const ChainDevice& shared, const Arguments& arguments)
{
    std::vector<Function> functions;
    for (std::uint32_t i = 0; i < arguments.number("--count"); ++i)
        functions.push_back(wrap_chain(cache, shared, arguments.number("--nodes"), i));
    return functions;
}

Json record_graphs(const Arguments& arguments, const ChainDevice& shared)
{
    Cache cache = open_cache(arguments.text("--cache-dir"), Policy::read_write);
    std::uint32_t recorded = 0;
    for (Function& function : wrap_all(cache, shared, arguments)) {
        call(function, shared);
        shared.device.synchronize();
        recorded += function.report().outcome == Outcome::recorded ? 1 : 0;
    }
    return {{"recorded", recorded}};
}

/// Warms up the device like a service that opens it before it loads its weights.
void warm_up(const Device& device)
{
    device.warm_up();
    std::this_thread::sleep_for(std::chrono::milliseconds{200}); // stands for loading the weights
}

/// Measures the most urgent graph's first result and the restore of all graphs; then calls each once.
Json open_graphs(const Arguments& arguments, const ChainDevice& shared)
{
    if (arguments.text("--warm-up") == "yes") warm_up(shared.device);
    const SteadyTime begin = now();
    Cache cache = open_cache(arguments.text("--cache-dir"), Policy::require_hit);
    const double cache_ms = milliseconds_since(begin);
    std::vector<Function> functions = wrap_all(cache, shared, arguments);
    const double wrapped_ms = milliseconds_since(begin);
    const std::string most_urgent = fmt::format("chain{}_0", arguments.number("--nodes"));
    PreloadOptions options;
    options.first = most_urgent;
    double all_ms = 0;
    options.progress = [&](const PreloadProgress& now) { // called for one graph at a time
        if (now.loaded + now.failed == now.total) all_ms = milliseconds_since(begin);
    };
    Preload preload = cache.preload(std::move(options));
    const double returned_ms = milliseconds_since(begin);
    call(functions.front(), shared);
    shared.device.synchronize();
    const double first_ms = milliseconds_since(begin);
    Json phases = Json::array();
    for (const auto& [name, took] : functions.front().report().phases) phases.push_back({name, took});
    preload.wait();
    const double uploaded_ms = milliseconds_since(begin);
    const PreloadProgress progress = preload.progress();
    for (Function& function : functions) {
        call(function, shared);
        expect_replayed(function);
    }
    shared.device.synchronize();
    return {{"returned_ms", returned_ms}, {"first_ms", first_ms},      {"all_ms", all_ms},
            {"uploaded_ms", uploaded_ms}, {"opened", progress.loaded}, {"failed", progress.failed},
            {"cache_ms", cache_ms},       {"wrapped_ms", wrapped_ms},  {"phases", phases}};
}

/// Captures the same graphs with the driver and measures the driver's time to instantiate them.
Json instantiate_graphs(const Arguments& arguments, const ChainDevice& shared)
{
    const std::uint32_t nodes = arguments.number("--nodes");
    Stream stream = shared.device.stream();
    const Buffer even = shared.device.allocate(ChainDevice::k_items * sizeof(float));
    const Buffer odd = shared.device.allocate(ChainDevice::k_items * sizeof(float));
    const auto enqueue = [&](std::uint32_t seed) {
        enqueue_chain(stream, shared.program, nodes, seed, shared.x.memory().address, shared.y.memory().address,
                      {even.memory().address, odd.memory().address}, ChainDevice::k_position);
    };
    static_cast<void>(driver()); // makes the context current
    enqueue(0);                  // loads the kernels
    stream.synchronize();
    double took_ms = 0;
    std::vector<std::unique_ptr<NativeGraph>> graphs;
    for (std::uint32_t i = 0; i < arguments.number("--count"); ++i) {
        graphs.push_back(std::make_unique<NativeGraph>(stream.native(), [&] { enqueue(i); }));
        took_ms += graphs.back()->instantiate_ms();
    }
    return {{"instantiate_ms", took_ms}};
}

Json graphs(const Arguments& arguments)
{
    const ChainDevice shared;
    const std::string what = arguments.text("--do");
    if (what == "record") return record_graphs(arguments, shared);
    if (what == "open") return open_graphs(arguments, shared);
    if (what == "instantiate") return instantiate_graphs(arguments, shared);
    throw std::runtime_error(fmt::format("--do is '{}', expected record, open or instantiate", what));
}

Json run(const std::string& name, const Arguments& arguments)
{
    if (name == "chain")
        return first_result<ChainDevice>(arguments, [](Cache& cache, const ChainDevice& shared, std::uint32_t nodes) {
            return wrap_chain(cache, shared, nodes);
        });
    if (name == "products") return first_result<ProductsDevice>(arguments, wrap_products);
    if (name == "miss") return miss(arguments);
    if (name == "graphs") return graphs(arguments);
    throw std::runtime_error(fmt::format("--child is '{}', expected chain, products, miss or graphs", name));
}

} // namespace

int run_child(std::span<char* const> words)
{
    try {
        if (words.empty()) throw std::runtime_error("--child needs a name: chain, products, miss or graphs");
        const Arguments arguments{words.subspan(1)};
        const Json result = run(words.front(), arguments);
        std::ofstream file{arguments.text("--json")};
        file << result.dump(2) << "\n";
        if (!file.flush()) throw std::runtime_error("cannot write " + arguments.text("--json"));
        return 0;
    } catch (const std::exception& error) {
        std::cerr << "warmgraph_bench: " << error.what() << "\n";
        return 1;
    }
}

} // namespace warmgraph::bench
