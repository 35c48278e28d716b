// warmgraph_bare_restore: compares the library's time to restore a stored CUDA entry with the bare driver's time for
// the same images, nodes and edges. Every run is a new process; the two ways take turns.
#include <algorithm>
#include <cstring>
#include <fstream>
#include <iostream>
#include <map>
#include <set>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "code/kernel_params.hpp"
#include "graph/graph_builder.hpp"
#include "native_graph.hpp"
#include "processes.hpp"
#include "timing.hpp"
#include "warmgraph/backends/built.hpp"
#include "warmgraph/backends/bulk_memory.hpp"
#include "warmgraph/cachefmt/key.hpp"
#include "warmgraph/replay/executable.hpp"
#include "warmgraph/store/local_store.hpp"

namespace {

using namespace warmgraph;        // NOLINT(google-build-using-namespace): a program of one file
using namespace warmgraph::bench; // NOLINT(google-build-using-namespace)
using cachefmt::RegionKind;

constexpr const char *k_bare = "bare", *k_library = "warmgraph";
constexpr const char* k_usage = R"(usage: warmgraph_bare_restore CACHE_DIR MODEL FUNCTION [RUNS]

Restores the function's CUDA entry on device 0 in fresh processes, RUNS times (5) each way, by turns. Before the clock runs, the
device is open and warmed up (Device::warm_up), and the caller's memory is there, all zero, as scalars are.
  bare       the driver's calls alone: load the images, get the functions, add nodes and edges, instantiate, launch, wait; before
             the clock runs, the entry is decoded, its images are read and its own memory is there
  warmgraph  open the folder, find, read and decode the entry, restore it (replay::Executable), launch, wait
Prints medians, in brackets the quickest and the slowest run, and the medians' ratio. The folder is only read.
$WARMGRAPH_CUDA_DRIVER names another libcuda. Exit status: 0 measured, 1 it could not be, 2 wrong usage.
)";

/// A function's only entry and its folder.
struct OnlyEntry {
    explicit OnlyEntry(std::span<char* const> name) // folder, model, function
    {
        store::StoreOptions options;
        options.access = store::StoreMode::read_only;
        store = checked(store::LocalStore::open(name[0], options));
        std::vector<cachefmt::EntryKey> found;
        for (const auto& function : checked(store->functions())) {
            if (cachefmt::model_of(function.model_info) != name[1] || function.function != name[2]) continue;
            for (const auto& variant : checked(store->variants(function)))
                if (variant.header && variant.header->kind == cachefmt::EntryKind::graph)
                    found.push_back({function, variant.guards_digest});
        }
        if (found.size() != 1)
            throw std::runtime_error(fmt::format("{} has {} entries of '{}' of model '{}', expected one", name[0],
                                                 found.size(), name[2], name[1]));
        graph = checked(store->entry(found.front(), store::ReadPurpose::preload)).value().graph;
    }
    [[nodiscard]] Result<Bytes> image(const Digest& digest) const
    {
        auto bytes = store->image(digest);
        if (!bytes) return std::unexpected(bytes.error());
        if (!*bytes) return fail(ErrorCode::not_found, "image {} is missing or damaged", short_hex(digest));
        return std::move(**bytes);
    }

    std::unique_ptr<store::LocalStore> store;
    cachefmt::Graph graph;
};

/// Allocates zeroed memory for each region; for scratch and constants the library uses its own memory instead.
replay::Bindings allocate(backends::Device& device, const cachefmt::Graph& graph)
{
    replay::Bindings bound{{}, std::vector<std::uint64_t>(graph.scalars.size())};
    for (const auto& region : graph.regions) {
        const std::uint64_t size = std::max<std::uint64_t>(region.size, 1);
        const bool is_host = region.space == cachefmt::MemorySpace::host;
        bound.regions.push_back(checked(is_host ? device.allocate_host(size) : device.allocate(size)));
        checked(device.bulk().fill(bound.regions.back(), std::byte{0}));
    }
    return bound;
}

/// The constructor makes no driver call: it prepares parameters and edges with this process's addresses.
class BareGraph {
public:
    BareGraph(backends::Device& device, const OnlyEntry& stored, const replay::Bindings& bound)
    {
        const cachefmt::Graph& graph = stored.graph;
        for (std::size_t i = 0; i < graph.regions.size(); ++i) {
            const auto& region = graph.regions[i];
            if (region.kind != RegionKind::constant || region.size == 0) continue;
            const Bytes contents = region.digest == Digest{} ? region.contents : checked(stored.image(region.digest));
            checked(device.upload(bound.regions[i].address, contents));
            if (region.inside)
                checked(device.upload(bound.regions[*region.inside].address + region.inside_offset, contents));
        }
        for (const auto& image : graph.images) {
            m_images.push_back({checked(stored.image(image.digest)), image.variables});
            m_images.back().bytes.push_back(std::byte{0}); // the end of PTX
            for (auto& variable : m_images.back().variables)
                for (const auto& slot : variable.slots) {
                    const auto word =
                        bound.regions[slot.target].address.flat() + static_cast<std::uint64_t>(slot.addend);
                    std::memcpy(variable.contents.data() + slot.offset, &word, sizeof word);
                }
        }
        const std::vector<backends::Module*> no_modules(graph.images.size());
        m_raw = checked(replay::resolve(graph, no_modules, bound));
        m_kernels.resize(graph.nodes.size());
        for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
            const auto* const raw = std::get_if<backends::RawKernel>(&m_raw.nodes[i].work);
            if (raw == nullptr) continue;
            Function& function = m_functions[{std::get<cachefmt::KernelNode>(graph.nodes[i]).image, raw->kernel}];
            for (const auto& [id, value] : raw->function_attributes)
                function.attributes[id] = std::max(function.attributes.emplace(id, value).first->second, value);
            m_kernels[i].function = &function;
            m_kernels[i].native = m_kernels[i].params.fill(nullptr, *raw);
        }
        for (const auto& edge : graph.edges) m_edges[edge.data].push_back(edge);
        WARMGRAPH_CU(cuCtxGetCurrent, &m_context);
    }

    /// Restores the graph; call it once. Returns milliseconds of driver calls only.
    double restore(CUstream stream)
    {
        const SteadyTime begin = now();
        for (Image& image : m_images) {
            WARMGRAPH_CU(cuModuleLoadData, &image.module, image.bytes.data());
            for (const auto& variable : image.variables) {
                CUdeviceptr address = 0;
                std::size_t size = 0;
                WARMGRAPH_CU(cuModuleGetGlobal, &address, &size, image.module, variable.name.c_str());
                const CUdeviceptr contents = Address::from_pointer(variable.contents.data()).flat();
                WARMGRAPH_CU(cuMemcpy, address, contents, variable.contents.size());
            }
        }
        for (auto& [name, function] : m_functions) {
            WARMGRAPH_CU(cuModuleGetFunction, &function.handle, m_images[name.first].module, name.second.c_str());
            for (const auto& [id, value] : function.attributes)
                WARMGRAPH_CU(cuFuncSetAttribute, function.handle, static_cast<CUfunction_attribute>(id), value);
        }
        CUgraph graph = nullptr;
        WARMGRAPH_CU(cuGraphCreate, &graph, 0U);
        std::vector<CUgraphNode> nodes(m_raw.nodes.size());
        for (std::size_t i = 0; i < nodes.size(); ++i) add(graph, i, nodes[i]);
        // A single call with mixed edge data would give all edges the first edge's data.
        for (const auto& [data, edges] : m_edges) {
            std::vector<CUgraphNode> from, to;
            for (const auto& edge : edges) from.push_back(nodes[edge.from]), to.push_back(nodes[edge.to]);
            CUgraphEdgeData native{};
            native.from_port = data.from_port, native.to_port = data.to_port, native.type = data.type;
            const std::vector<CUgraphEdgeData> all(edges.size(), native);
            WARMGRAPH_CU(cuGraphAddDependencies, graph, from.data(), to.data(), all.data(), all.size());
        }
        CUgraphExec exec = nullptr;
        WARMGRAPH_CU(cuGraphInstantiate, &exec, graph, backends::cuda::instantiate_flags_of(m_raw));
        WARMGRAPH_CU(cuGraphLaunch, exec, stream);
        WARMGRAPH_CU(cuStreamSynchronize, stream);
        return milliseconds_since(begin);
    }

private:
    struct Image {
        Bytes bytes;
        std::vector<cachefmt::ModuleVariable> variables;
        CUmodule module = nullptr;
    };
    struct Function {
        std::map<std::uint32_t, std::int32_t> attributes; ///< the highest value that any of its nodes needs
        CUfunction handle = nullptr;
    };
    struct Kernel {
        backends::cuda::KernelParams params;
        CUDA_KERNEL_NODE_PARAMS native{}; ///< points into `params` and m_raw
        const Function* function = nullptr;
    };

    void add(CUgraph graph, std::size_t index, CUgraphNode& node)
    {
        const auto& work = m_raw.nodes[index].work;
        if (const auto* const raw = std::get_if<backends::RawKernel>(&work)) {
            Kernel& kernel = m_kernels[index];
            kernel.native.func = kernel.function->handle;
            WARMGRAPH_CU(cuGraphAddKernelNode, &node, graph, nullptr, std::size_t{0}, &kernel.native);
            for (const auto& attribute : raw->attributes) set(node, attribute);
        } else if (const auto* const copy = std::get_if<backends::RawCopy>(&work)) {
            const CUDA_MEMCPY3D native = backends::cuda::to_native(*copy);
            WARMGRAPH_CU(cuGraphAddMemcpyNode, &node, graph, nullptr, std::size_t{0}, &native, m_context);
        } else if (const auto* const fill = std::get_if<backends::RawFill>(&work)) {
            const CUDA_MEMSET_NODE_PARAMS native = checked(backends::cuda::to_native(*fill));
            WARMGRAPH_CU(cuGraphAddMemsetNode, &node, graph, nullptr, std::size_t{0}, &native, m_context);
        } else if (std::holds_alternative<backends::RawEmpty>(work)) {
            WARMGRAPH_CU(cuGraphAddEmptyNode, &node, graph, nullptr, std::size_t{0});
        } else {
            throw std::runtime_error(fmt::format("the entry has a {} node, which is not measured", kind_of(work).name));
        }
    }
    /// The driver may refuse an attribute that the kernel was compiled with (__cluster_dims__); the attribute is in
    /// effect without this call.
    static void set(CUgraphNode node, const backends::RawAttribute& attribute)
    {
        const auto id = static_cast<CUlaunchAttributeID>(attribute.id);
        const std::size_t size = std::min(attribute.value.size(), sizeof(CUlaunchAttributeValue));
        CUlaunchAttributeValue value{}, held{};
        std::memcpy(&value, attribute.value.data(), size);
        if (driver().cuGraphKernelNodeSetAttribute(node, id, &value) == CUDA_SUCCESS) return;
        WARMGRAPH_CU(cuGraphKernelNodeGetAttribute, node, id, &held);
        if (std::memcmp(&held, &value, size) != 0) WARMGRAPH_CU(cuGraphKernelNodeSetAttribute, node, id, &value);
    }

    CUcontext m_context = nullptr;
    std::vector<Image> m_images;
    std::map<std::pair<std::size_t, std::string>, Function> m_functions; ///< functions by image and name
    backends::RawGraph m_raw;                                            ///< has no modules
    std::vector<Kernel> m_kernels;
    std::map<cachefmt::EdgeData, std::vector<cachefmt::Edge>> m_edges;
};

/// Returns milliseconds. Opens the folder again, like a process that has not read it yet.
double restore_with_library(const std::shared_ptr<backends::Device>& device, std::span<char* const> name,
                            const replay::Bindings& bound, backends::Stream& stream)
{
    replay::ModuleCache modules;
    Phases phases;
    const SteadyTime begin = now();
    OnlyEntry stored{name};
    const auto image_of = [&](const cachefmt::ImageRef& image) { return stored.image(image.digest); };
    const auto executable =
        checked(replay::Executable::restore(device, std::move(stored.graph), modules, image_of, bound, phases));
    checked(executable->launch(stream, bound));
    checked(stream.synchronize());
    return milliseconds_since(begin);
}

/// Makes one run: returns milliseconds, and the final contents of outputs and states.
nlohmann::json measure(const std::string& way, std::span<char* const> name)
{
    const auto device = checked(backends::open_built_device("cuda:0"));
    device->begin_warm_up();
    const OnlyEntry stored{name};
    const replay::Bindings bound = allocate(*device, stored.graph);
    const auto stream = checked(device->create_stream());
    static_cast<void>(checked(device->instantiate({}))); // waits for the warm-up
    const auto current = device->enter();
    const double took_ms = way == k_bare
                               ? BareGraph(*device, stored, bound).restore(static_cast<CUstream>(stream->native()))
                               : restore_with_library(device, name, bound, *stream);
    std::string results;
    for (std::size_t i = 0; i < bound.regions.size(); ++i) {
        const RegionKind kind = stored.graph.regions[i].kind;
        if (kind != RegionKind::output && kind != RegionKind::state) continue;
        const auto print = checked(device->bulk().fingerprint(bound.regions[i]));
        results += fmt::format("{:016x}{:016x}", print.high, print.low);
    }
    return {{"took_ms", took_ms}, {"results", results}};
}

void compare(std::span<char* const> name, int runs)
{
    std::map<std::string, std::vector<double>> took;
    std::set<std::string> results;
    for (int turn = 0; turn < 2 * runs; ++turn) {
        // Each way is first in every second pair.
        const std::string way = (turn + turn / 2) % 2 == 0 ? k_bare : k_library;
        const auto run = child(way, {name.begin(), name.end()});
        took[way].push_back(run.at("took_ms"));
        results.insert(run.at("results").get<std::string>());
    }
    for (const auto& [way, times] : took) {
        const auto [least, most] = std::ranges::minmax(times);
        std::cout << fmt::format("{:<10}{:9.3f} ms ({:.3f}-{:.3f})\n", way, median(times), least, most);
    }
    std::cout << fmt::format("warmgraph / bare {:.2f}x\nresults: {}\n", median(took[k_library]) / median(took[k_bare]),
                             results.size() == 1 ? "the same bytes in every run" : "DIFFER from run to run");
}

} // namespace

int main(int argc, char** argv)
try {
    const std::span<char* const> words{argv + 1, argv + std::max(argc, 1)};
    if (words.size() == 7 && std::strcmp(words[0], "--child") == 0) { // started by compare()
        std::ofstream file{words[6]};
        file << measure(words[1], words.subspan(2, 3));
        return file.flush() ? 0 : 1;
    }
    const int runs = words.size() == 4 ? std::atoi(words[3]) : 5; // NOLINT(cert-err34-c): 0 is wrong usage
    if (words.size() < 3 || words.size() > 4 || runs < 1) {
        std::cerr << k_usage;
        return 2;
    }
    compare(words.first(3), runs);
    return 0;
} catch (const std::exception& error) {
    std::cerr << "warmgraph_bare_restore: " << error.what() << "\n";
    return 1;
}
