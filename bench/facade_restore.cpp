#include "facade_restore.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <limits>
#include <map>
#include <stdexcept>
#include <string_view>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include "bare_memory.hpp"
#include "checked.hpp"
#include "timing.hpp"
#include "warmgraph/cachefmt/key.hpp"
#include "warmgraph/store/local_store.hpp"
#include "warmgraph/warmgraph.hpp"

namespace warmgraph::bench {
namespace {

using cachefmt::RegionKind;
using Json = nlohmann::json;

constexpr std::string_view k_version = "code.version", k_build = "code.build_id", k_program = "program.",
                           k_model_config = "config.model.", k_config = "config.", k_environment = "env.";
constexpr const char* k_unset = "(unset)"; // of an environment variable's fact

bool is_dynamic(const cachefmt::Entry& entry)
{
    return entry.header.key.function.model_info.find("_dynamic_cudagraphcache_") != std::string::npos;
}

std::map<std::string, std::string> facts_after(const cachefmt::Entry& entry, std::string_view prefix)
{
    std::map<std::string, std::string> found;
    for (const auto& fact : entry.header.guards.facts)
        if (fact.name.starts_with(prefix)) found.emplace(fact.name.substr(prefix.size()), fact.value);
    return found;
}

std::string model_info_of(const cachefmt::Entry& entry)
{
    return cachefmt::model_info(cachefmt::model_of(entry.header.key.function.model_info), "cuda",
                                is_dynamic(entry) ? "dynamic" : "static", facts_after(entry, k_model_config));
}

/// Rank's folder name in numbers; those that it does not name are -1.
Json ranks_of(const std::string& folder)
{
    std::array<int, 4> numbers{-1, -1, -1, -1};
    std::string_view rest = folder;
    const std::array<std::string_view, 4> words{"world", "global_rank", "_tp_rank", "_pp_rank"};
    for (std::size_t i = 0; i < words.size(); ++i) {
        if (!rest.starts_with(words.at(i))) continue;
        rest.remove_prefix(words.at(i).size());
        const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), numbers.at(i));
        if (error == std::errc{}) rest.remove_prefix(static_cast<std::size_t>(end - rest.data()));
    }
    if (!rest.empty() || numbers[0] < 0 || numbers[1] < 0)
        throw std::runtime_error(fmt::format("rank '{}' is none, expected one like world1global_rank0", folder));
    return numbers;
}

const char* kind_text(RegionKind kind)
{
    switch (kind) {
    case RegionKind::input: return "input";
    case RegionKind::output: return "output";
    case RegionKind::state: return "state";
    default: return "weights";
    }
}

/// The whole type is what a scalar without a declared range has.
bool is_whole(const ScalarUse& scalar)
{
    const auto is = [&]<class T>(T) {
        return scalar.low == fmt::format("{}", std::numeric_limits<T>::lowest()) &&
               scalar.high == fmt::format("{}", std::numeric_limits<T>::max());
    };
    switch (scalar.dtype) {
    case DType::u32: return is(std::uint32_t{});
    case DType::i64: return is(std::int64_t{});
    case DType::u64: return is(std::uint64_t{});
    case DType::f32: return is(float{});
    case DType::f64: return is(double{});
    default: return is(std::int32_t{});
    }
}

Json describe_tensors(const cachefmt::Entry& entry, const MemoryPlan& plan)
{
    Json list = Json::array();
    const auto compared = compared_regions(entry.graph);
    for (std::size_t i = 0; i < callers_regions(entry); ++i) {
        const auto& tensor = entry.header.guards.tensors[i];
        const auto& region = entry.graph.regions[i];
        const auto& place = plan.regions[i];
        list.push_back({{"name", tensor.name},
                        {"kind", kind_text(region.kind)},
                        {"dtype", to_string(tensor.dtype)},
                        {"sizes", tensor.sizes},
                        {"strides", tensor.strides},
                        {"allocation", place.allocation},
                        {"offset", place.offset},
                        {"bytes", plan.allocations[place.allocation].size - place.offset},
                        {"compared", std::ranges::find(compared, i) != compared.end() ? region.size : 0}});
    }
    return list;
}

// --- in the process that restores

DType dtype_of(const Json& json)
{
    const auto type = parse_dtype(json.get<std::string>());
    if (!type) throw std::runtime_error("unknown type " + json.dump());
    return *type;
}

CacheOptions options_of(const Json& call)
{
    const auto rank = [&](std::size_t index) -> std::optional<int> {
        const int number = call.at("ranks").at(index);
        return number < 0 ? std::nullopt : std::optional(number);
    };
    CacheOptions options;
    options.model = call.at("model");
    options.config = call.at("model_config").get<std::map<std::string, std::string>>();
    options.cache_dir = call.at("cache_dir");
    options.shapes = call.at("dynamic").get<bool>() ? ShapeMode::dynamic : ShapeMode::fixed;
    options.world_size = rank(0), options.global_rank = rank(1), options.tp_rank = rank(2), options.pp_rank = rank(3);
    options.policy = Policy::require_hit; // and the folder is left as it is
    return options;
}

/// The caller's memory, all zero.
class CallersMemory {
public:
    CallersMemory(const Device& device, const Json& call)
    {
        Stream stream = device.default_stream();
        for (const Json& allocation : call.at("allocations")) {
            const std::uint64_t size = allocation.at("bytes");
            if (allocation.at("host").get<bool>()) {
                m_buffers.push_back(device.allocate_host(size));
                m_buffers.back().upload(std::vector<std::byte>(size));
            } else {
                m_buffers.push_back(device.allocate(size));
                stream.zero(m_buffers.back().memory().address, size);
            }
        }
        stream.synchronize();
    }
    [[nodiscard]] MemoryRef of(const Json& tensor) const
    {
        const Buffer& buffer = m_buffers.at(tensor.at("allocation").get<std::size_t>());
        return {buffer.memory().address + tensor.at("offset").get<std::uint64_t>(), tensor.at("bytes")};
    }
    [[nodiscard]] Digest results(const Json& tensors) const
    {
        Sha256 sum;
        for (const Json& tensor : tensors) {
            if (tensor.at("compared") == 0) continue;
            Bytes contents(tensor.at("compared").get<std::size_t>());
            m_buffers.at(tensor.at("allocation").get<std::size_t>()).download(contents, tensor.at("offset"));
            sum.update_field(contents);
        }
        return sum.finish();
    }

private:
    std::vector<Buffer> m_buffers;
};

Spec spec_of(const Json& call, const CallersMemory& memory)
{
    Spec spec;
    for (const Json& tensor : call.at("tensors")) {
        const std::string kind = tensor.at("kind");
        const std::string name = tensor.at("name");
        const DType dtype = dtype_of(tensor.at("dtype"));
        const auto sizes = tensor.at("sizes").get<std::vector<std::int64_t>>();
        const auto strides = tensor.at("strides").get<std::vector<std::int64_t>>();
        if (kind == "input" || kind == "output") {
            (kind == "input" ? spec.inputs : spec.outputs).push_back({name, dtype, sizes, strides});
            continue;
        }
        const Access access = kind == "state" ? Access::read_write : Access::read_only;
        spec.states.push_back({name, memory.of(tensor), access, dtype, sizes, strides});
    }
    for (const Json& scalar : call.at("scalars")) {
        ScalarDecl decl{scalar.at("name"), dtype_of(scalar.at("dtype")), std::nullopt};
        if (!scalar.at("low").is_null())
            decl.range = {std::stod(scalar.at("low").get<std::string>()),
                          std::stod(scalar.at("high").get<std::string>())};
        spec.scalars.push_back(decl);
    }
    for (const Json& value : call.at("values"))
        spec.values.push_back({value.at("name"), dtype_of(value.at("dtype")), std::nullopt});
    spec.config = call.at("config").get<std::map<std::string, std::string>>();
    for (const auto& [name, value] : call.at("environment").items()) {
        spec.environment.push_back(name);
        const std::string text = value;
        if (text == k_unset ? ::unsetenv(name.c_str()) != 0 : ::setenv(name.c_str(), text.c_str(), 1) != 0)
            throw std::runtime_error("cannot set the environment variable " + name);
    }
    spec.version = call.at("version");
    return spec;
}

/// `names` outlives them.
std::vector<Arg> arguments_of(const Json& call, const CallersMemory& memory, std::vector<std::string>& names)
{
    names.reserve(call.at("tensors").size() + call.at("scalars").size() + call.at("values").size());
    std::vector<Arg> arguments;
    for (const Json& tensor : call.at("tensors")) {
        if (tensor.at("kind") != "input" && tensor.at("kind") != "output") continue; // states are where the Spec says
        arguments.emplace_back(names.emplace_back(tensor.at("name")), memory.of(tensor));
    }
    for (const char* list : {"scalars", "values"}) {
        for (const Json& number : call.at(list)) {
            arguments.emplace_back(names.emplace_back(number.at("name")), 0);
            arguments.back().value = Number{dtype_of(number.at("dtype")), number.at("bits")};
        }
    }
    return arguments;
}

} // namespace

std::optional<std::string> why_not_loadable(const StoredEntry& stored)
{
    const auto& header = stored.entry.header;
    if (!facts_after(stored.entry, k_program).empty()) return "its guards hold digests of programs' sources";
    if (!facts_after(stored.entry, k_build).empty())
        return "its guards hold the build id of the program that recorded it";
    if (facts_after(stored.entry, k_version).empty()) return "its guards say no version of the code";
    if (model_info_of(stored.entry) != header.key.function.model_info)
        return fmt::format("its guards' configuration gives the folder {}", model_info_of(stored.entry));
    return std::nullopt;
}

cachefmt::EntryKey copy_loadable(const StoredEntry& stored, const std::filesystem::path& cache_dir)
{
    cachefmt::Entry copy = stored.entry;
    auto& facts = copy.header.guards.facts;
    std::erase_if(facts, [](const cachefmt::Fact& fact) {
        return fact.name.starts_with(k_program) || fact.name == k_build || fact.name == k_version;
    });
    const cachefmt::Fact version{std::string(k_version), "warmgraph_bare_restore", cachefmt::Role::must_match};
    facts.insert(std::ranges::upper_bound(facts, version.name, {}, &cachefmt::Fact::name), version);
    copy.header.key.function.model_info = model_info_of(copy);
    copy.header.key.guards_digest = cachefmt::guards_digest(copy.header.guards);
    const auto store = checked(store::LocalStore::open(cache_dir));
    for (const auto& [digest, bytes] : stored.images) static_cast<void>(checked(store->publish_image(bytes)));
    checked(store->publish(copy));
    return copy.header.key;
}

Json describe_call(const cachefmt::Entry& entry, const std::filesystem::path& cache_dir)
{
    const auto& function = entry.header.key.function;
    const MemoryPlan plan = plan_memory(entry);
    auto config = facts_after(entry, k_config);
    std::erase_if(config, [](const auto& item) { return item.first.starts_with("model."); });
    std::string device = "cuda:0";
    for (const auto& tensor : entry.header.guards.tensors)
        if (tensor.device.starts_with("cuda:")) device = tensor.device;
    const auto version = facts_after(entry, k_version);
    Json call{{"cache_dir", cache_dir.string()},
              {"model", cachefmt::model_of(function.model_info)},
              {"model_config", facts_after(entry, k_model_config)},
              {"dynamic", is_dynamic(entry)},
              {"ranks", ranks_of(function.rank)},
              {"function", function.function},
              {"device", device},
              {"version", version.empty() ? "" : version.begin()->second},
              {"config", config},
              {"environment", facts_after(entry, k_environment)},
              {"tensors", describe_tensors(entry, plan)},
              {"allocations", Json::array()},
              {"scalars", Json::array()},
              {"values", Json::array()}};
    for (std::size_t i = 0; i < plan.callers; ++i)
        call["allocations"].push_back(
            {{"bytes", plan.allocations[i].size}, {"host", plan.allocations[i].space == cachefmt::MemorySpace::host}});
    for (const ScalarUse& scalar : scalars_of(entry)) {
        const bool has_range = !scalar.low.empty() && !is_whole(scalar);
        call["scalars"].push_back({{"name", scalar.name},
                                   {"dtype", to_string(scalar.dtype)},
                                   {"low", has_range ? Json(scalar.low) : Json()},
                                   {"high", has_range ? Json(scalar.high) : Json()},
                                   {"bits", scalar.bits}});
    }
    for (const auto& value : entry.header.guards.values)
        call["values"].push_back({{"name", value.name}, {"dtype", to_string(value.dtype)}, {"bits", value.bits}});
    return call;
}

Json restore_through_facade(const Json& call)
{
    const SteadyTime start = now();
    const Device device{call.at("device").get<std::string>()};
    device.warm_up();
    // A service loads its weights now. What the device has begun meanwhile is done before the clock runs.
    std::this_thread::sleep_for(std::chrono::milliseconds{200});
    const double context_ms = milliseconds_since(start);
    const SteadyTime allocating = now();
    const CallersMemory memory{device, call};
    const double memory_ms = milliseconds_since(allocating);
    const CacheOptions options = options_of(call);
    Spec spec = spec_of(call, memory);
    std::vector<std::string> names;
    const std::vector<Arg> arguments = arguments_of(call, memory, names);
    const std::string function_name = call.at("function");

    const SteadyTime begin = now();
    Cache cache{options};
    Function function = cache.load(function_name, device, std::move(spec));
    const double open_ms = milliseconds_since(begin);
    const SteadyTime calling = now();
    const Outcome outcome = function.call(arguments);
    const double call_ms = milliseconds_since(calling);
    const SteadyTime waiting = now();
    device.synchronize();
    const double wait_ms = milliseconds_since(waiting);
    const double total_ms = milliseconds_since(begin);

    const Report report = function.report();
    if (outcome != Outcome::replayed)
        throw std::runtime_error(fmt::format("'{}' was {}: {}", function_name, to_string(outcome), report.reason));
    Json phases = Json::array({{"open", open_ms}});
    double known_ms = 0;
    for (const auto& [name, took] : report.phases) {
        phases.push_back({name, took});
        known_ms += took;
    }
    phases.push_back({"rest of the call", call_ms - known_ms});
    phases.push_back({"synchronise", wait_ms});
    return {{"phases", phases},
            {"total_ms", total_ms},
            {"not_counted", {{"context", context_ms}, {"memory", memory_ms}}},
            {"results", to_hex(memory.results(call.at("tensors")))}};
}

} // namespace warmgraph::bench
