// An entry restored with nothing but the driver's own calls: what warmgraph's restore is measured against.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "bare_driver.hpp"
#include "stored_entry.hpp"

namespace warmgraph::bench {

using NamedTimes = std::vector<std::pair<std::string, double>>; ///< milliseconds, in order

/// Everything that needs no driver is done by the constructor: parameters, attributes and edges stand ready in the driver's form,
/// patched with the addresses.
class BareGraph {
public:
    BareGraph(const BareContext& context, const StoredEntry& stored, const std::vector<std::uint64_t>& regions);
    BareGraph(const BareGraph&) = delete;
    BareGraph& operator=(const BareGraph&) = delete;

    /// Loads an image and instantiates as many nodes of one of its kernels, one after the other, and destroys them: what the driver does
    /// once in a process is done then.
    void warm_up() const;
    /// Once: loads the images, builds, instantiates, launches and waits. Nothing is called here but cu*.
    [[nodiscard]] NamedTimes restore();

private:
    struct Variable {
        std::string name;
        Bytes contents;
    };
    struct Image {
        Bytes bytes; ///< with a zero behind them, up to which the driver reads PTX
        std::vector<Variable> variables;
        CUmodule module = nullptr;
    };
    struct Setting {
        std::size_t function = 0;
        CUfunction_attribute id{};
        int value = 0;
    };
    struct Function {
        std::size_t image = 0;
        std::string name;
        CUfunction function = nullptr;
        std::map<CUfunction_attribute, int>
            settings;         ///< after the nodes so far; the shared memory's is the highest of all
        bool is_used = false; ///< by a node so far
    };
    struct Kernel {
        std::size_t function = 0;
        CUDA_KERNEL_NODE_PARAMS params{};
        std::vector<Bytes> values;
        std::vector<void*> pointers; ///< into `values`
        std::size_t packed_size = 0;
        std::vector<void*> extra;
        std::vector<Setting> before; ///< where nodes of one function want different settings
    };
    struct Attribute {
        std::size_t node = 0;
        CUlaunchAttributeID id{};
        CUlaunchAttributeValue value{};
        std::size_t size = 0;
    };
    struct EdgeGroup {
        cachefmt::EdgeData data;
        std::vector<std::pair<std::uint32_t, std::uint32_t>> edges;
        std::vector<CUgraphNode> from, to;
        std::vector<CUgraphEdgeData> native;
    };
    enum class Kind : std::uint8_t { empty, kernel, copy, fill };
    struct Node {
        Kind kind = Kind::empty;
        std::size_t index = 0; ///< in m_kernels, m_copies or m_fills
    };

    struct Addresses {
        const std::vector<std::uint64_t>& regions;
        std::vector<std::uint64_t> scalars;
    };
    void plan_image(const cachefmt::ImageRef& image, const StoredEntry& stored, const Addresses& addresses);
    void plan_kernel(std::size_t node, const cachefmt::KernelNode& kernel, const Addresses& addresses);
    void plan_settings(Kernel& planned, const std::vector<cachefmt::FunctionAttribute>& wanted);
    void plan_edges(const cachefmt::Graph& graph);
    [[nodiscard]] std::size_t function_of(std::size_t image, const std::string& name);

    void load_images();
    void write_variables();
    void get_functions();
    void set(const Setting& setting) const;
    void add_nodes();
    void add_kernel(Kernel& kernel, CUgraphNode* node) const;
    void set_attributes() const;
    void add_edges();

    const BareContext& m_context;
    const BareDriver& m_driver;
    std::vector<Image> m_images;
    std::vector<Function> m_functions;
    std::vector<Setting> m_settings; ///< of each function, before its first node
    std::vector<Node> m_nodes;
    std::vector<Kernel> m_kernels;
    std::vector<CUDA_MEMCPY3D> m_copies;
    std::vector<CUDA_MEMSET_NODE_PARAMS> m_fills;
    std::vector<Attribute> m_attributes;
    std::vector<EdgeGroup> m_edges;
    unsigned long long m_flags = 0;
    CUgraph m_graph = nullptr;
    std::vector<CUgraphNode> m_native; ///< as m_nodes
    CUgraphExec m_exec = nullptr;
};

} // namespace warmgraph::bench
