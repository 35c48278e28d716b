#include "record/pairing.hpp"

#include <algorithm>
#include <map>
#include <unordered_set>

#include "classify/structural_difference.hpp"
#include "classify/words.hpp"
#include "warmgraph/backends/host_functions.hpp"
#include "warmgraph/backends/node_places.hpp"
#include "warmgraph/backends/recording.hpp"
#include "warmgraph/base/process.hpp"

namespace warmgraph {

namespace {

using backends::Device;
using backends::HostFunction;
using backends::Module;
using backends::RawGraph;
using backends::RawHost;
using backends::RawKernel;
using backends::RawNode;

/// The modules of a graph's kernels, in the order of their first use.
struct GraphModules {
    std::vector<Module*> modules;
    std::vector<std::vector<std::string>> kernels; ///< names of each module's kernels, without duplicates
    std::vector<std::uint32_t> by_kernel;          ///< for each kernel, in the order of the nodes: index into `modules`
};

GraphModules used_modules(const RawGraph& graph)
{
    GraphModules result;
    for (const RawNode& node : graph.nodes) {
        const auto* kernel = std::get_if<RawKernel>(&node.work);
        if (kernel == nullptr) continue;
        const auto known = std::ranges::find(result.modules, kernel->module);
        const auto index = static_cast<std::size_t>(known - result.modules.begin());
        if (known == result.modules.end()) {
            result.modules.push_back(kernel->module);
            result.kernels.emplace_back();
        }
        auto& names = result.kernels[index];
        if (std::ranges::find(names, kernel->kernel) == names.end()) names.push_back(kernel->kernel);
        result.by_kernel.push_back(static_cast<std::uint32_t>(index));
    }
    return result;
}

Result<std::vector<Digest>> code_of(const GraphModules& used)
{
    std::vector<Digest> code;
    for (std::size_t i = 0; i < used.modules.size(); ++i) {
        const auto image = used.modules[i]->image_of(used.kernels[i]);
        if (!image) return std::unexpected(image.error());
        code.push_back(sha256(*image));
    }
    return code;
}

/// Stores this process's facts about each word in the graph that looks like an address.
void describe_words(const std::shared_ptr<Device>& device, StoredCapture& capture)
{
    const auto is_host_only = host_only(device);
    std::unordered_set<std::uint64_t> seen;
    std::map<std::uint64_t, MemoryRef> live;
    const auto look_at = [&](ByteView bytes) {
        for (std::size_t at = 0; at + k_word <= bytes.size(); at += sizeof(std::uint32_t)) {
            const auto word = load<std::uint64_t>(bytes, at);
            if (!may_be_pointer(word) || !seen.insert(word).second) continue;
            if (const auto allocation = device->recording().allocation_at(word))
                live.emplace(allocation->address.flat(), *allocation);
            else if (is_host_only(word))
                capture.host_words.push_back(word);
        }
    };
    for (const RawNode& node : capture.graph.nodes)
        backends::for_each_place(node.work, [&](const backends::NodePlace&, const auto& content) {
            if (content.bytes != nullptr) look_at(*content.bytes);
        });
    for (const auto& [address, allocation] : live) capture.live.push_back(allocation);
    std::ranges::sort(capture.host_words);
}

/// Pairs each module of the other process with a module of this process. The pairing must be one to one: kernels of one
/// module may share variables.
class ModulePairs {
public:
    [[nodiscard]] bool add(std::uint32_t theirs, Module* ours)
    {
        const auto [forth, is_new] = m_ours.emplace(theirs, ours);
        const auto [back, is_new_too] = m_theirs.emplace(ours, theirs);
        return forth->second == ours && back->second == theirs;
    }

private:
    std::map<std::uint32_t, Module*> m_ours;
    std::map<Module*, std::uint32_t> m_theirs;
};

/// Gives each kernel of the stored capture the module of its kernel in `first`, if both modules have the same code.
Result<void> take_modules(const StoredCapture& stored, const RawGraph& first, RawGraph& graph)
{
    const GraphModules used = used_modules(first);
    const auto code = code_of(used);
    if (!code) return std::unexpected(code.error());
    ModulePairs pairs;
    std::size_t theirs = 0, ours = 0; // how many kernels were visited so far
    for (std::size_t i = 0; i < std::max(graph.nodes.size(), first.nodes.size()); ++i) {
        auto* kernel = i < graph.nodes.size() ? std::get_if<RawKernel>(&graph.nodes[i].work) : nullptr;
        const auto* own = i < first.nodes.size() ? std::get_if<RawKernel>(&first.nodes[i].work) : nullptr;
        if (kernel != nullptr && own != nullptr && kernel->kernel == own->kernel) {
            const std::uint32_t module = stored.kernel_modules[theirs], known = used.by_kernel[ours];
            if (stored.code[module] != (*code)[known])
                return fail(ErrorCode::not_recordable,
                            "{} has code {} in the process that wrote the capture, but code {} in this process",
                            describe_node(first, i), short_hex(stored.code[module]), short_hex((*code)[known]));
            if (!pairs.add(module, own->module))
                return fail(ErrorCode::not_recordable,
                            "{} shares its module with other kernels in this process than in the process that wrote "
                            "the capture",
                            describe_node(first, i));
            kernel->module = own->module;
        }
        if (kernel != nullptr) ++theirs;
        if (own != nullptr) ++ours;
    }
    return {};
}

/// Checks that both captures have equal scratch and the same number of allocations. Later code compares the captures
/// side by side and relies on this.
Result<void> check_memory(const StoredCapture& stored, const CapturedGraph& first)
{
    const auto is_same = [](const NamedMemory& theirs, const NamedMemory& ours) {
        return theirs.first == ours.first && theirs.second.size == ours.second.size;
    };
    if (!std::ranges::equal(stored.scratch, first.scratch, is_same))
        return fail(ErrorCode::not_recordable,
                    "the capture of another process has {} scratch regions, this one {}; their number, names and sizes "
                    "must agree",
                    stored.scratch.size(), first.scratch.size());
    if (stored.graph.allocations.size() != first.graph.allocations.size())
        return fail(ErrorCode::not_recordable, "{} memory allocations and then {}", first.graph.allocations.size(),
                    stored.graph.allocations.size());
    return {};
}

void take_host_functions(const StoredCapture& stored, RawGraph& graph)
{
    std::size_t index = 0;
    for (RawNode& node : graph.nodes) {
        auto* host = std::get_if<RawHost>(&node.work);
        if (host == nullptr) continue;
        if (const auto known = backends::find_host_function(stored.host_functions[index++]))
            *host = {known->function, known->data};
    }
}

} // namespace

std::function<bool(std::uint64_t)> host_only(std::shared_ptr<Device> device)
{
    return [device = std::move(device), mappings = HostMappings::read()](std::uint64_t word) {
        const auto name = mappings.at(word);
        const bool is_ordinary = name && !name->starts_with("/dev/"); // mappings of the driver have names in /dev
        return is_ordinary && !device->recording().allocation_at(word) &&
               !device->recording().host_memory_at(word, mappings);
    };
}

Result<StoredCapture> stored_capture(const std::shared_ptr<Device>& device, const Interface& interface,
                                     cachefmt::EntryKey key, CapturedGraph captured)
{
    StoredCapture result;
    result.key = std::move(key);
    GraphModules used = used_modules(captured.graph);
    auto code = code_of(used);
    if (!code) return std::unexpected(code.error());
    result.code = std::move(*code);
    result.kernel_modules = std::move(used.by_kernel);
    result.graph = std::move(captured.graph);
    for (std::size_t i = 0; i < result.graph.nodes.size(); ++i) {
        auto& work = result.graph.nodes[i].work;
        if (auto* kernel = std::get_if<RawKernel>(&work)) kernel->module = nullptr;
        auto* host = std::get_if<RawHost>(&work);
        if (host == nullptr) continue;
        auto name = backends::name_of(HostFunction{host->function, host->data});
        if (!name)
            return fail(ErrorCode::not_recordable,
                        "{} calls a function that has no name: register it with register_host_function",
                        describe_node(result.graph, i));
        result.host_functions.push_back(std::move(*name));
        *host = {};
    }
    for (std::size_t i = 0; i < interface.regions.size(); ++i)
        result.regions.emplace_back(interface.regions[i].name, captured.regions[i]);
    result.scratch = std::move(captured.scratch);
    result.free_blocks = std::move(captured.free_blocks);
    describe_words(device, result);
    return result;
}

Result<CapturedGraph> captured_elsewhere(const StoredCapture& stored, const Interface& interface,
                                         const CapturedGraph& first)
{
    CapturedGraph result{stored.graph, {}, stored.scratch, stored.free_blocks};
    for (std::size_t i = 0; i < interface.regions.size(); ++i) {
        const bool is_there = stored.regions.size() == interface.regions.size() &&
                              stored.regions[i].first == interface.regions[i].name &&
                              stored.regions[i].second.size == first.regions[i].size;
        if (!is_there)
            return fail(ErrorCode::not_recordable, "the capture of another process has no region '{}' of {} bytes",
                        interface.regions[i].name, first.regions[i].size);
        result.regions.push_back(stored.regions[i].second);
    }
    if (auto checked = check_memory(stored, first); !checked) return std::unexpected(checked.error());
    if (auto taken = take_modules(stored, first.graph, result.graph); !taken) return std::unexpected(taken.error());
    take_host_functions(stored, result.graph);
    return result;
}

ForeignMemory foreign_memory(const StoredCapture& stored, std::shared_ptr<Device> device)
{
    return {stored.live, stored.host_words,
            [device = std::move(device), mappings = HostMappings::read()](std::uint64_t word) {
                return device->recording().host_memory_at(word, mappings).has_value();
            }};
}

const std::string& process_name()
{
    static const std::string s_name = random_uuid();
    return s_name;
}

} // namespace warmgraph
