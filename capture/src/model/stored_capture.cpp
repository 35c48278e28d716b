#include "warmgraph/capture/stored_capture.hpp"

#include <algorithm>
#include <limits>

namespace warmgraph {

namespace {

using backends::Dim3;
using backends::EdgeData;
using backends::FunctionAttribute;
using backends::MemoryOperationKind;
using backends::MemorySpace;
using backends::ParamKind;
using backends::Pitch;
using backends::RawAllocation;
using backends::RawAttribute;
using backends::RawCopy;
using backends::RawEmpty;
using backends::RawEventRecord;
using backends::RawEventWait;
using backends::RawFill;
using backends::RawHost;
using backends::RawKernel;
using backends::RawMemoryOperation;
using backends::RawMemoryOperations;
using backends::RawNode;
using backends::RawParam;
using backends::RawSemaphore;
using backends::RawSemaphores;
using backends::RawWork;
using backends::SemaphoreAction;

constexpr std::string_view k_magic = "WGCAPTUR";
constexpr std::uint32_t k_version = 1;
constexpr std::size_t k_digest_at = 24, k_header_bytes = k_digest_at + sizeof(Digest);

/// The alternatives of RawWork, as they are stored.
enum class NodeKind : std::uint8_t {
    empty = 0,
    kernel = 1,
    copy = 2,
    fill = 3,
    event_record = 4,
    event_wait = 5,
    host = 6,
    memory_operations = 7,
    semaphores = 8,
};

class FieldWriter {
public:
    explicit FieldWriter(Bytes& bytes) : m_bytes(bytes) {}

    template <class T>
    void number(T value)
    {
        append(m_bytes, value);
    }
    void text(std::string_view text) { bytes(as_bytes(text)); }
    void bytes(ByteView bytes)
    {
        number(static_cast<std::uint64_t>(bytes.size()));
        append(m_bytes, bytes);
    }
    void digest(const Digest& digest) { append(m_bytes, ByteView{digest.bytes}); }
    void address(const Address& address) { number(address.flat()); }
    void memory(const MemoryRef& memory)
    {
        address(memory.address);
        number(memory.size);
    }
    void dimensions(const Dim3& dimensions)
    {
        for (const std::uint32_t one : dimensions) number(one);
    }
    template <class List, class Write>
    void list(const List& items, Write write)
    {
        number(static_cast<std::uint64_t>(items.size()));
        for (const auto& item : items) write(item);
    }

private:
    Bytes& m_bytes;
};

class WorkWriter {
public:
    WorkWriter(FieldWriter& to, const StoredCapture& capture) : m_to(to), m_capture(capture) {}

    void operator()(const RawEmpty&) { kind(NodeKind::empty); }
    void operator()(const RawKernel& kernel);
    void operator()(const RawCopy& copy);
    void operator()(const RawFill& fill);
    void operator()(const RawEventRecord& node)
    {
        kind(NodeKind::event_record);
        m_to.number(node.event);
    }
    void operator()(const RawEventWait& node)
    {
        kind(NodeKind::event_wait);
        m_to.number(node.event);
    }
    void operator()(const RawHost&)
    {
        kind(NodeKind::host);
        m_to.text(m_capture.host_functions.at(m_host_nodes++));
    }
    void operator()(const RawMemoryOperations& batch);
    void operator()(const RawSemaphores& semaphores);

private:
    void kind(NodeKind kind) { m_to.number(static_cast<std::uint8_t>(kind)); }
    void pitch(const Pitch& pitch)
    {
        m_to.number(pitch.row);
        m_to.number(pitch.slice);
    }

    FieldWriter& m_to;
    const StoredCapture& m_capture;
    std::size_t m_kernels = 0, m_host_nodes = 0;
};

void WorkWriter::operator()(const RawKernel& kernel)
{
    kind(NodeKind::kernel);
    m_to.number(m_capture.kernel_modules.at(m_kernels++));
    m_to.text(kernel.kernel);
    m_to.dimensions(kernel.grid);
    m_to.dimensions(kernel.block);
    m_to.list(kernel.params, [&](const RawParam& param) {
        m_to.number(static_cast<std::uint8_t>(param.kind));
        m_to.bytes(param.value);
        m_to.address(param.address);
        m_to.number(param.local_size);
    });
    m_to.number(kernel.shared_bytes);
    m_to.number(static_cast<std::uint8_t>(kernel.packed));
    m_to.list(kernel.attributes, [&](const RawAttribute& attribute) {
        m_to.number(attribute.id);
        m_to.bytes(attribute.value);
    });
    m_to.list(kernel.function_attributes, [&](const FunctionAttribute& attribute) {
        m_to.number(attribute.id);
        m_to.number(attribute.value);
    });
}

void WorkWriter::operator()(const RawCopy& copy)
{
    kind(NodeKind::copy);
    m_to.address(copy.source);
    m_to.address(copy.destination);
    m_to.number(copy.size);
    m_to.number(copy.rows);
    m_to.number(copy.slices);
    pitch(copy.source_pitch);
    pitch(copy.destination_pitch);
    m_to.number(static_cast<std::uint8_t>(copy.source_space));
    m_to.number(static_cast<std::uint8_t>(copy.destination_space));
}

void WorkWriter::operator()(const RawFill& fill)
{
    kind(NodeKind::fill);
    m_to.address(fill.destination);
    m_to.bytes(fill.pattern);
    m_to.number(fill.size);
    m_to.number(fill.rows);
    m_to.number(fill.pitch);
}

void WorkWriter::operator()(const RawMemoryOperations& batch)
{
    kind(NodeKind::memory_operations);
    m_to.list(batch.operations, [&](const RawMemoryOperation& operation) {
        m_to.number(static_cast<std::uint8_t>(operation.kind));
        m_to.address(operation.address);
        m_to.number(operation.value);
        m_to.number(operation.flags);
    });
}

void WorkWriter::operator()(const RawSemaphores& semaphores)
{
    kind(NodeKind::semaphores);
    m_to.number(static_cast<std::uint8_t>(semaphores.action));
    m_to.list(semaphores.uses, [&](const RawSemaphore& use) {
        m_to.number(use.semaphore);
        m_to.number(use.value);
        m_to.number(use.flags);
    });
}

/// Reads fields until one is not there. What comes after that is zero, and no list grows any more.
class FieldReader {
public:
    explicit FieldReader(ByteView bytes) : m_rest(bytes) {}

    template <class T>
    void number(T& value)
    {
        if (!has(sizeof(T))) return;
        value = load<T>(m_rest);
        m_rest = m_rest.subspan(sizeof(T));
    }
    template <class T>
    [[nodiscard]] T number()
    {
        T value{};
        number(value);
        return value;
    }
    void bytes(Bytes& bytes)
    {
        const auto size = number<std::uint64_t>();
        if (!has(size)) return;
        bytes.assign(m_rest.begin(), m_rest.begin() + static_cast<std::ptrdiff_t>(size));
        m_rest = m_rest.subspan(size);
    }
    void text(std::string& text)
    {
        Bytes read;
        bytes(read);
        text = as_text(read);
    }
    void digest(Digest& digest) { number(digest.bytes); }
    void address(Address& address) { address = Address::from_flat(number<std::uint64_t>()); }
    void memory(MemoryRef& memory)
    {
        const auto flat = number<std::uint64_t>();
        number(memory.size);
        memory.address = Address::from_flat(flat);
        require(memory.size <= std::numeric_limits<std::uint64_t>::max() - flat);
    }
    void dimensions(Dim3& dimensions)
    {
        for (std::uint32_t& one : dimensions) number(one);
    }
    /// A number from `low` to `high`.
    template <class Enum>
    void choice(Enum& value, Enum low, Enum high)
    {
        const auto read = number<std::uint8_t>();
        require(read >= static_cast<std::uint8_t>(low) && read <= static_cast<std::uint8_t>(high));
        if (is_good()) value = static_cast<Enum>(read);
    }
    void flag(bool& value)
    {
        const auto read = number<std::uint8_t>();
        require(read <= 1);
        value = read != 0;
    }
    /// Grows as it reads: each item takes at least a byte of what is there.
    template <class T, class Read>
    void list(std::vector<T>& items, Read read)
    {
        const auto count = number<std::uint64_t>();
        require(count <= m_rest.size());
        for (std::uint64_t i = 0; i < count && is_good(); ++i) read(items.emplace_back());
    }
    void require(bool holds) noexcept { m_is_good = m_is_good && holds; }
    [[nodiscard]] bool is_good() const noexcept { return m_is_good; }
    [[nodiscard]] bool is_at_end() const noexcept { return m_rest.empty(); }

private:
    [[nodiscard]] bool has(std::uint64_t size) noexcept
    {
        require(size <= m_rest.size());
        return m_is_good;
    }
    ByteView m_rest;
    bool m_is_good = true;
};

class WorkReader {
public:
    WorkReader(FieldReader& from, StoredCapture& capture) : m_from(from), m_capture(capture) {}

    [[nodiscard]] RawWork work();

private:
    [[nodiscard]] RawKernel kernel();
    [[nodiscard]] RawCopy copy();
    [[nodiscard]] RawFill fill();
    [[nodiscard]] RawMemoryOperations memory_operations();
    [[nodiscard]] RawSemaphores semaphores();
    void pitch(Pitch& pitch)
    {
        m_from.number(pitch.row);
        m_from.number(pitch.slice);
    }

    FieldReader& m_from;
    StoredCapture& m_capture;
};

RawWork WorkReader::work()
{
    NodeKind kind = NodeKind::empty;
    m_from.choice(kind, NodeKind::empty, NodeKind::semaphores);
    switch (kind) {
    case NodeKind::empty: break;
    case NodeKind::kernel: return kernel();
    case NodeKind::copy: return copy();
    case NodeKind::fill: return fill();
    case NodeKind::event_record: return RawEventRecord{m_from.number<std::uint64_t>()};
    case NodeKind::event_wait: return RawEventWait{m_from.number<std::uint64_t>()};
    case NodeKind::host: m_from.text(m_capture.host_functions.emplace_back()); return RawHost{};
    case NodeKind::memory_operations: return memory_operations();
    case NodeKind::semaphores: return semaphores();
    }
    return RawEmpty{};
}

RawKernel WorkReader::kernel()
{
    RawKernel kernel;
    m_from.number(m_capture.kernel_modules.emplace_back());
    m_from.text(kernel.kernel);
    m_from.dimensions(kernel.grid);
    m_from.dimensions(kernel.block);
    m_from.list(kernel.params, [&](RawParam& param) {
        m_from.choice(param.kind, ParamKind::value, ParamKind::local);
        m_from.bytes(param.value);
        m_from.address(param.address);
        m_from.number(param.local_size);
    });
    m_from.number(kernel.shared_bytes);
    m_from.flag(kernel.packed);
    m_from.list(kernel.attributes, [&](RawAttribute& attribute) {
        m_from.number(attribute.id);
        m_from.bytes(attribute.value);
    });
    m_from.list(kernel.function_attributes, [&](FunctionAttribute& attribute) {
        m_from.number(attribute.id);
        m_from.number(attribute.value);
    });
    return kernel;
}

RawCopy WorkReader::copy()
{
    RawCopy copy;
    m_from.address(copy.source);
    m_from.address(copy.destination);
    m_from.number(copy.size);
    m_from.number(copy.rows);
    m_from.number(copy.slices);
    pitch(copy.source_pitch);
    pitch(copy.destination_pitch);
    m_from.choice(copy.source_space, MemorySpace::device, MemorySpace::host);
    m_from.choice(copy.destination_space, MemorySpace::device, MemorySpace::host);
    return copy;
}

RawFill WorkReader::fill()
{
    RawFill fill;
    m_from.address(fill.destination);
    m_from.bytes(fill.pattern);
    m_from.number(fill.size);
    m_from.number(fill.rows);
    m_from.number(fill.pitch);
    return fill;
}

RawMemoryOperations WorkReader::memory_operations()
{
    RawMemoryOperations batch;
    m_from.list(batch.operations, [&](RawMemoryOperation& operation) {
        m_from.choice(operation.kind, MemoryOperationKind::wait_32, MemoryOperationKind::barrier);
        m_from.address(operation.address);
        m_from.number(operation.value);
        m_from.number(operation.flags);
    });
    return batch;
}

RawSemaphores WorkReader::semaphores()
{
    RawSemaphores semaphores;
    m_from.choice(semaphores.action, SemaphoreAction::signal, SemaphoreAction::wait);
    m_from.list(semaphores.uses, [&](RawSemaphore& use) {
        m_from.number(use.semaphore);
        m_from.number(use.value);
        m_from.number(use.flags);
    });
    return semaphores;
}

void write_edges(FieldWriter& to, const RawNode& node)
{
    to.list(node.dependencies, [&](std::uint32_t dependency) { to.number(dependency); });
    to.list(node.edges, [&](const EdgeData& edge) {
        for (const std::uint8_t one : {edge.from_port, edge.to_port, edge.type}) to.number(one);
    });
}

void read_edges(FieldReader& from, RawNode& node, std::size_t index)
{
    from.list(node.dependencies, [&](std::uint32_t& dependency) { from.number(dependency); });
    from.list(node.edges, [&](EdgeData& edge) {
        from.number(edge.from_port);
        from.number(edge.to_port);
        from.number(edge.type);
    });
    from.require(node.edges.empty() || node.edges.size() == node.dependencies.size());
    from.require(std::ranges::all_of(node.dependencies, [&](std::uint32_t before) { return before < index; }));
}

/// Fields that are lists of what has a writer and a reader of one item.
void write_named(FieldWriter& to, const std::vector<NamedMemory>& all)
{
    to.list(all, [&](const NamedMemory& one) {
        to.text(one.first);
        to.memory(one.second);
    });
}

void read_named(FieldReader& from, std::vector<NamedMemory>& all)
{
    from.list(all, [&](NamedMemory& one) {
        from.text(one.first);
        from.memory(one.second);
    });
}

void write_handles(FieldWriter& to, const NamedHandles& all)
{
    to.list(all, [&](const auto& one) {
        to.text(one.first);
        to.number(one.second);
    });
}

void read_handles(FieldReader& from, NamedHandles& all)
{
    from.list(all, [&](auto& one) {
        from.text(one.first);
        from.number(one.second);
    });
}

void write_fields(FieldWriter& to, const StoredCapture& capture)
{
    for (const std::string* text :
         {&capture.key.function.model_info, &capture.key.function.rank, &capture.key.function.function})
        to.text(*text);
    to.digest(capture.key.guards_digest);
    to.text(capture.process);
    to.list(capture.code, [&](const Digest& code) { to.digest(code); });
    WorkWriter work{to, capture};
    to.list(capture.graph.nodes, [&](const RawNode& node) {
        std::visit(work, node.work);
        write_edges(to, node);
    });
    to.list(capture.graph.allocations, [&](const RawAllocation& one) { to.memory(one.memory); });
    write_named(to, capture.regions);
    write_named(to, capture.scratch);
    to.list(capture.free_blocks, [&](const MemoryRef& block) { to.memory(block); });
    to.list(capture.scalars, [&](std::uint64_t scalar) { to.number(scalar); });
    write_handles(to, capture.handles.events);
    write_handles(to, capture.handles.semaphores);
    to.list(capture.live, [&](const MemoryRef& allocation) { to.memory(allocation); });
    to.list(capture.host_words, [&](std::uint64_t word) { to.number(word); });
}

void read_fields(FieldReader& from, StoredCapture& capture)
{
    for (std::string* text :
         {&capture.key.function.model_info, &capture.key.function.rank, &capture.key.function.function})
        from.text(*text);
    from.digest(capture.key.guards_digest);
    from.text(capture.process);
    from.list(capture.code, [&](Digest& code) { from.digest(code); });
    WorkReader work{from, capture};
    from.list(capture.graph.nodes, [&](RawNode& node) {
        node.work = work.work();
        read_edges(from, node, capture.graph.nodes.size() - 1);
    });
    from.require(std::ranges::all_of(capture.kernel_modules,
                                     [&](std::uint32_t module) { return module < capture.code.size(); }));
    from.list(capture.graph.allocations, [&](RawAllocation& one) { from.memory(one.memory); });
    read_named(from, capture.regions);
    read_named(from, capture.scratch);
    from.list(capture.free_blocks, [&](MemoryRef& block) { from.memory(block); });
    from.list(capture.scalars, [&](std::uint64_t& scalar) { from.number(scalar); });
    read_handles(from, capture.handles.events);
    read_handles(from, capture.handles.semaphores);
    from.list(capture.live, [&](MemoryRef& allocation) { from.memory(allocation); });
    from.list(capture.host_words, [&](std::uint64_t& word) { from.number(word); });
}

} // namespace

Bytes encode(const StoredCapture& capture)
{
    Bytes fields;
    FieldWriter to{fields};
    write_fields(to, capture);
    Bytes file;
    append(file, as_bytes(k_magic));
    append(file, k_version);
    append(file, std::uint32_t{0});
    append(file, static_cast<std::uint64_t>(fields.size()));
    append(file, ByteView{sha256(fields).bytes});
    append(file, ByteView{fields});
    return file;
}

Result<StoredCapture> decode_capture(ByteView bytes)
{
    if (bytes.size() < k_header_bytes || as_text(bytes.first(k_magic.size())) != k_magic)
        return fail(ErrorCode::corrupt, "it is no capture of warmgraph's");
    if (const auto version = load<std::uint32_t>(bytes, k_magic.size()); version != k_version)
        return fail(ErrorCode::stale, "it has format {}, expected {}", version, k_version);
    const ByteView fields = bytes.subspan(k_header_bytes);
    if (load<std::uint32_t>(bytes, 12) != 0 || load<std::uint64_t>(bytes, 16) != fields.size())
        return fail(ErrorCode::corrupt, "it has {} bytes behind its header, which says another number", fields.size());
    if (load<Digest>(bytes, k_digest_at) != sha256(fields))
        return fail(ErrorCode::corrupt, "its bytes are not those that were written");
    StoredCapture capture;
    FieldReader from{fields};
    read_fields(from, capture);
    if (!from.is_good() || !from.is_at_end())
        return fail(ErrorCode::corrupt, "its fields do not fit into its {} bytes", fields.size());
    return capture;
}

} // namespace warmgraph
