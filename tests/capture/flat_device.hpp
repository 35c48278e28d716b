// A device for tests whose memory is the process's own memory. So it has flat addresses like CUDA, pointers among the
// bytes of parameters, modules with variables, images that can be cut, and foreign graphs.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <numeric>

#include <sys/mman.h>

#include "warmgraph/backends/capture_session.hpp"
#include "warmgraph/backends/compiler.hpp"
#include "warmgraph/backends/device.hpp"
#include "warmgraph/backends/graph_builder.hpp"
#include "warmgraph/backends/recording.hpp"

namespace warmgraph::test {

/// The textures of the device, which kernels read by a handle, and what the kernels note about them.
struct FlatTextures {
    std::map<std::uint64_t, std::int32_t> live;  ///< contents of each texture, by its handle
    bool was_misused = false;                    ///< whether a kernel got an invalid handle
    std::function<float(bool is_restored)> draw; ///< returns the result of the kernel "draw"
};

/// A module with kernels on i32: "add" (y, x, n): y[i] = x[i] + bias; the variable `bias` is 1 in the image. "sum" (y,
/// w, n): y[0] = sum of w. "draw" (y): y[0], an f32, comes from the test. "follow" (y, p, n): y[i] = the value that
/// p[0] points to. "count" (y): y[0] = bias++. "spoil" (w): w[0] = 0 in a restored module only. "fetch" (y, texture,
/// n): y[i] = the texture's value. "add_inside" (y, x, n, struct): y[i] = x[i] + the struct's third number. "add_two"
/// (y, a, n, b): y[i] = a[i] + b[i]. "add_up" (y, a, n, end): y[i] = sum from a to end.
class FlatModule final : public backends::Module {
public:
    enum class Origin : std::uint8_t { compiled, whole, cut };
    FlatModule(Origin from, std::int32_t error,
               std::shared_ptr<FlatTextures> textures = std::make_shared<FlatTextures>())
        : origin_of_code(from), m_error(error), m_textures(std::move(textures))
    {
    }

    Result<Bytes> image() override { return text("whole"); }
    Result<Bytes> image_of(std::span<const std::string> kernels) override
    {
        std::string name = "cut:";
        for (const auto& kernel : kernels) name += kernel + ",";
        return text(name);
    }
    [[nodiscard]] Digest origin() const noexcept override { return {}; }
    Result<std::uint32_t> param_count(const std::string&) override { return 3U; }
    Result<std::vector<cachefmt::ModuleVariable>> changed_variables() override
    {
        std::vector<cachefmt::ModuleVariable> changed;
        if (bias != 1) append(changed.emplace_back("bias", Bytes{}).contents, bias);
        if (table != 0) append(changed.emplace_back("table", Bytes{}).contents, table);
        return changed;
    }
    [[nodiscard]] bool has_variables() const override { return true; }
    [[nodiscard]] bool keeps_state() const override { return is_stateful; }
    [[nodiscard]] bool may_be_function(std::uint64_t word) const override { return function != 0 && word == function; }
    Result<void> write_variables(std::span<const cachefmt::ModuleVariable> variables) override
    {
        for (const auto& variable : variables)
            if (variable.name == "bias")
                bias = load<std::int32_t>(variable.contents);
            else
                table = load<std::uint64_t>(variable.contents);
        return {};
    }
    Result<void> restore_variables(std::span<const cachefmt::ModuleVariable> before,
                                   std::span<const cachefmt::ModuleVariable> now) override
    {
        for (const auto& variable : now) variable.name == "bias" ? bias = 1 : table = 0;
        return write_variables(before);
    }
    [[nodiscard]] bool is_library_constant(const std::string& variable) const override { return variable == constant; }
    void run(const backends::RawKernel& kernel)
    {
        const auto pointer = [&](std::size_t i) { return load<std::int32_t*>(kernel.params[i].value); };
        if (kernel.kernel == "spoil" && origin_of_code != Origin::compiled) *pointer(0) = 0;
        if (kernel.kernel == "count") *pointer(0) = bias++;
        if (kernel.kernel == "draw")
            *load<float*>(kernel.params[0].value) = m_textures->draw(origin_of_code != Origin::compiled);
        if (kernel.params.size() < 3) return;
        const auto n = load<std::int32_t>(kernel.params[2].value);
        if (kernel.kernel == "add")
            for (std::int32_t i = 0; i < n; ++i) pointer(0)[i] = pointer(1)[i] + bias + m_error;
        if (kernel.kernel == "add_inside")
            for (std::int32_t i = 0; i < n; ++i)
                pointer(0)[i] = pointer(1)[i] + load<std::int32_t>(kernel.params[3].value, 8);
        if (kernel.kernel == "lookup")
            for (std::int32_t i = 0; i < n; ++i)
                pointer(0)[i] = pointer(1)[i] + reinterpret_cast<const std::int32_t*>(table)[i];
        if (kernel.kernel == "follow") {
            const auto* const from = *reinterpret_cast<const std::int32_t* const*>(pointer(1));
            for (std::int32_t i = 0; i < n; ++i) pointer(0)[i] = from[i];
        }
        if (kernel.kernel == "fetch") {
            const auto texture = m_textures->live.find(load<std::uint64_t>(kernel.params[1].value));
            m_textures->was_misused = m_textures->was_misused || texture == m_textures->live.end();
            if (texture != m_textures->live.end()) std::fill_n(pointer(0), n, texture->second);
        }
        if (kernel.kernel == "add_two")
            for (std::int32_t i = 0; i < n; ++i) pointer(0)[i] = pointer(1)[i] + pointer(3)[i];
        if (kernel.kernel == "add_up") std::fill_n(pointer(0), n, std::accumulate(pointer(1), pointer(3), 0));
        if (kernel.kernel == "sum") {
            std::int32_t sum = 0;
            for (std::int32_t i = 0; i < n; ++i) sum += pointer(1)[i];
            pointer(0)[0] = sum;
        }
    }
    std::int32_t bias = 1;
    std::uint64_t table = 0;
    bool is_stateful = false;
    std::string constant;       ///< a variable that only the library which owns the module writes
    std::uint64_t function = 0; ///< address of a device function that the module's code calls through a pointer
    Origin origin_of_code;

private:
    static Bytes text(std::string_view name)
    {
        const auto view = as_bytes(name);
        return {view.begin(), view.end()};
    }
    std::int32_t m_error;
    std::shared_ptr<FlatTextures> m_textures;
};

/// All signals and waits of semaphores that ran, in their order.
inline std::vector<backends::RawSemaphores>& semaphores_run()
{
    static std::vector<backends::RawSemaphores> all;
    return all;
}

inline void run_flat(const backends::RawWork& work)
{
    if (const auto* semaphores = std::get_if<backends::RawSemaphores>(&work)) semaphores_run().push_back(*semaphores);
    if (const auto* kernel = std::get_if<backends::RawKernel>(&work))
        dynamic_cast<FlatModule&>(*kernel->module).run(*kernel);
    if (const auto* copy = std::get_if<backends::RawCopy>(&work))
        std::memcpy(copy->destination.pointer(), copy->source.pointer(), copy->size);
    if (const auto* fill = std::get_if<backends::RawFill>(&work))
        std::memset(fill->destination.pointer(), std::to_integer<int>(fill->pattern[0]), fill->size);
}

/// An event that is done at once, or that is never done.
class FlatEvent final : public backends::Event {
public:
    explicit FlatEvent(bool is_done) : m_is_done(is_done) {}
    Result<bool> is_done() override { return m_is_done; }

private:
    bool m_is_done;
};

class FlatStream final : public backends::Stream {
public:
    FlatStream(std::shared_ptr<const bool> is_stuck, const std::optional<MemoryRef>& allocated)
        : m_is_stuck(std::move(is_stuck)), m_allocated(allocated)
    {
    }
    Result<void> launch(const backends::RawKernel& kernel) override { return enqueue(kernel); }
    Result<void> copy(const backends::RawCopy& copy) override { return enqueue(copy); }
    Result<void> fill(const backends::RawFill& fill) override { return enqueue(fill); }
    Result<std::shared_ptr<backends::Event>> record_event() override
    {
        return std::make_shared<FlatEvent>(!*m_is_stuck);
    }
    Result<void> wait(const std::shared_ptr<backends::Event>&) override { return {}; }
    Result<void> synchronize() override { return {}; }
    Result<void> begin_capture() override { return m_capture.begin(); }
    Result<backends::RawGraph> end_capture() override
    {
        auto graph = m_capture.end();
        if (graph && m_allocated) graph->allocations.push_back({*m_allocated});
        return graph;
    }
    [[nodiscard]] bool is_capturing() const noexcept override { return m_capture.is_active(); }

private:
    Result<void> enqueue(const backends::RawWork& work)
    {
        if (is_capturing()) return m_capture.add(work);
        run_flat(work);
        return {};
    }
    backends::StreamCapture m_capture;
    std::shared_ptr<const bool> m_is_stuck;
    std::optional<MemoryRef> m_allocated;
};

class FlatExec final : public backends::GraphExec {
public:
    explicit FlatExec(backends::RawGraph graph, bool does_nothing = false)
        : m_graph(std::move(graph)), m_does_nothing(does_nothing)
    {
    }
    Result<void> launch(backends::Stream&) noexcept override
    {
        for (const auto& node : m_graph.nodes)
            if (!m_does_nothing) run_flat(node.work);
        return {};
    }
    Result<void> update(std::uint32_t node, const backends::RawWork& work) noexcept override
    {
        m_graph.nodes[node].work = work;
        return {};
    }

private:
    backends::RawGraph m_graph;
    bool m_does_nothing;
};

class FlatBuilder final : public backends::GraphBuilder {
public:
    explicit FlatBuilder(bool does_nothing) : m_does_nothing(does_nothing) {}
    Result<void> add(const backends::RawNode& node) override
    {
        m_graph.nodes.push_back(node);
        return {};
    }
    Result<std::unique_ptr<backends::GraphExec>> instantiate() override
    {
        return std::make_unique<FlatExec>(std::move(m_graph), m_does_nothing);
    }

private:
    backends::RawGraph m_graph;
    bool m_does_nothing;
};

class FlatDevice final : public backends::Device, private backends::Compiler, private backends::DeviceRecording {
public:
    FlatDevice() : DeviceRecording(static_cast<Device&>(*this))
    {
        m_limits.flat_addresses = true;
        m_limits.memory_alignment = 1;
    }
    ~FlatDevice() override
    {
        for (const auto& [flat, block] : m_blocks) free_block(flat, block);
    }
    [[nodiscard]] std::string id() const override { return "flat:0"; }
    [[nodiscard]] std::string backend() const override { return "flat"; }
    [[nodiscard]] std::string name() const override { return "flat"; }
    [[nodiscard]] backends::Compiler& compiler() override { return *this; }
    [[nodiscard]] backends::DeviceRecording& recording() override { return *this; }
    [[nodiscard]] std::uint16_t ordinal() const noexcept override { return 0; }
    [[nodiscard]] const backends::DeviceLimits& limits() const noexcept override { return m_limits; }
    [[nodiscard]] std::vector<cachefmt::Fact> facts() const override { return {}; }
    [[nodiscard]] std::string replay_mode() const override { return "runs each node at once (a test's)"; }

    Result<MemoryRef> allocate(std::uint64_t size) override
    {
        constexpr std::uint64_t k_alignment = 512, k_step = 1ULL << 20U;
        // Only allocate_far() may return memory near a multiple of 4 GiB, but a heap can do so by chance
        // (AddressSanitizer's heap always does). Such allocations are kept until the end of this function. If one was
        // freed, the next one would get the same place, because Linux gives mappings from the top down.
        std::vector<std::unique_ptr<std::byte, decltype(&std::free)>> near_one;
        for (std::uint64_t before = lead;; before += k_step) {
            const std::uint64_t all = (before + size + k_alignment - 1) / k_alignment * k_alignment;
            auto* const memory = static_cast<std::byte*>(std::aligned_alloc(k_alignment, all));
            if (memory == nullptr) return fail(ErrorCode::out_of_memory, "{} bytes", size);
            if (!is_near_a_boundary(reinterpret_cast<std::uintptr_t>(memory + before), size))
                return add(memory + before, {size, false, before});
            near_one.emplace_back(memory, &std::free);
        }
    }
    Result<MemoryRef> reserve_shadow(std::uint64_t size) override { return map(size, PROT_NONE, false); }
    /// Allocates memory that begins at a multiple of 4 GiB.
    MemoryRef allocate_far(std::uint64_t size)
    {
        const MemoryRef memory = *map(size, PROT_READ | PROT_WRITE, false);
        m_blocks.at(memory.address.flat()).is_live = true;
        return memory;
    }
    Result<MemoryRef> reserve_decoy(std::uint64_t size) override { return map(size, PROT_READ | PROT_WRITE, false); }
    Result<MemoryRef> allocate_host(std::uint64_t size) override
    {
        auto memory = allocate(size);
        m_blocks.at(memory->address.flat()).is_on_host = true;
        return memory;
    }
    Result<MemoryRef> reserve_host_shadow(std::uint64_t size) override
    {
        return map(size, PROT_READ | PROT_WRITE, true);
    }
    [[nodiscard]] backends::MemorySpace space_of(const Address& address) const noexcept override
    {
        const auto* const block = block_at(address.flat());
        return block != nullptr && block->is_on_host ? backends::MemorySpace::host : backends::MemorySpace::device;
    }
    [[nodiscard]] bool is_managed(const Address& address) const noexcept override { return address.flat() == managed; }
    [[nodiscard]] std::uint64_t free_memory() const override { return free; }
    /// How many ranges are allocated and not released.
    [[nodiscard]] std::size_t live() const noexcept { return m_blocks.size(); }
    void release(const MemoryRef& memory) noexcept override
    {
        const auto found = m_blocks.find(memory.address.flat());
        if (found == m_blocks.end()) return;
        free_block(found->first, found->second);
        m_blocks.erase(found);
    }
    [[nodiscard]] std::optional<MemoryRef> allocation_at(std::uint64_t flat) const noexcept override
    {
        const auto* const block = block_at(flat);
        if (block == nullptr || (block->is_shadow && !block->is_live)) return std::nullopt;
        return MemoryRef{Address::from_flat(block->start), block->size};
    }
    [[nodiscard]] bool is_handle(std::uint64_t word) const noexcept override { return textures->live.contains(word); }
    Result<void> upload(const Address& to, ByteView bytes) override
    {
        std::ranges::copy(bytes, to.pointer<std::byte>());
        return {};
    }
    Result<void> download(std::span<std::byte> to, const Address& from) override
    {
        std::copy_n(from.pointer<const std::byte>(), to.size(), to.begin());
        return {};
    }
    Result<std::unique_ptr<backends::Module>> compile(std::string_view, std::string_view) override
    {
        return std::make_unique<FlatModule>(FlatModule::Origin::compiled, 0, textures);
    }
    Result<std::unique_ptr<backends::Module>> load(ByteView image) override
    {
        const bool is_cut = as_text(image).starts_with("cut:");
        auto module = std::make_unique<FlatModule>(is_cut ? FlatModule::Origin::cut : FlatModule::Origin::whole,
                                                   is_cut ? error_of_cut_images : 0, textures);
        module->is_stateful = code_keeps_state;
        ++loads;
        return module;
    }
    Result<std::unique_ptr<backends::Stream>> create_stream() override
    {
        return std::make_unique<FlatStream>(is_stuck, captures_allocate);
    }
    Result<std::unique_ptr<backends::GraphBuilder>> graph_builder(std::size_t) override
    {
        return std::make_unique<FlatBuilder>(restores_nothing);
    }
    /// Instantiates a graph that does its work even when `restores_nothing` is set.
    Result<std::unique_ptr<backends::GraphExec>> instantiate_captured(const backends::RawGraph& graph) override
    {
        return std::make_unique<FlatExec>(graph);
    }
    Result<void> prepare_recording() override
    {
        ++preparations;
        return {};
    }
    [[nodiscard]] std::vector<std::shared_ptr<backends::Module>> registered_modules() override { return own; }
    [[nodiscard]] std::vector<std::string> exposed_variables(ByteView) override { return exposed; }
    [[nodiscard]] std::uint64_t exposures() const noexcept override { return exposed.size(); }
    /// Reads a graph. `native` points to a backends::RawGraph.
    Result<backends::RawGraph> read_graph(void* native) override { return *static_cast<backends::RawGraph*>(native); }
    Result<std::unique_ptr<backends::GraphExec>> instantiate_native(void* native) override
    {
        return std::make_unique<FlatExec>(*static_cast<backends::RawGraph*>(native));
    }

    std::int32_t error_of_cut_images = 0; ///< a number that kernels of a cut image add to each result
    std::uint64_t lead = 0;               ///< bytes between a multiple of 512 and the start of each allocation
    int preparations = 0;
    int loads = 0;                 ///< how many images were loaded
    bool code_keeps_state = false; ///< whether loaded images keep state
    bool restores_nothing = false; ///< whether graphs that are instantiated from a read graph do nothing
    std::uint64_t managed = 0;     ///< the address that counts as managed memory
    std::uint64_t free = ~0ULL;    ///< bytes of free memory that the device reports
    std::shared_ptr<bool> is_stuck = std::make_shared<bool>(false); ///< while true, work that is enqueued never ends
    std::optional<MemoryRef> captures_allocate{}; ///< memory that the graph of each capture allocates itself
    std::vector<std::shared_ptr<backends::Module>> own;
    std::vector<std::string> exposed; ///< names of the variables whose address the program asked for
    std::shared_ptr<FlatTextures> textures = std::make_shared<FlatTextures>();

private:
    struct Block {
        std::uint64_t size = 0;
        bool is_shadow = false;
        std::uint64_t lead = 0;
        bool is_on_host = false;
        std::uint64_t start = 0;
        bool is_live = false; ///< whether the memory is in use although it is mapped like a shadow
    };
    Result<MemoryRef> add(void* memory, Block block)
    {
        block.start = reinterpret_cast<std::uintptr_t>(memory);
        m_blocks.emplace(block.start, block);
        return MemoryRef{Address::from_pointer(memory), block.size};
    }
    /// Whether the lower half of an address in this range can be a small number.
    static bool is_near_a_boundary(std::uint64_t flat, std::uint64_t size) noexcept
    {
        constexpr std::uint64_t k_boundary = 1ULL << 32U, k_small = 1ULL << 24U;
        return flat % k_boundary < k_small || flat % k_boundary + size > k_boundary;
    }
    /// Maps memory. No other memory has the same upper 32 bits in its addresses.
    Result<MemoryRef> map(std::uint64_t size, int protection, bool is_on_host)
    {
        m_next_shadow += (size / k_far + 1) * k_far;
        void* const wish = Address::from_flat(m_next_shadow).pointer();
        void* const range = mmap(wish, size, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        return add(range, {size, true, 0, is_on_host});
    }
    [[nodiscard]] const Block* block_at(std::uint64_t flat) const noexcept
    {
        auto after = m_blocks.upper_bound(flat);
        if (after == m_blocks.begin()) return nullptr;
        const auto& [start, block] = *--after;
        return flat - start < block.size ? &block : nullptr;
    }
    static void free_block(std::uint64_t flat, const Block& block) noexcept
    {
        void* memory = Address::from_flat(flat - block.lead).pointer();
        if (block.is_shadow)
            munmap(memory, block.size);
        else
            std::free(memory); // NOLINT: of aligned_alloc
    }
    backends::DeviceLimits m_limits;
    static constexpr std::uint64_t k_far = 1ULL << 32U;
    std::map<std::uint64_t, Block> m_blocks;
    std::uint64_t m_next_shadow = 1ULL << 44U;
};

} // namespace warmgraph::test
