#include "warmgraph/capture/stored_capture.hpp"

#include <algorithm>
#include <concepts>
#include <limits>
#include <utility>

namespace warmgraph {

namespace {

using backends::Dim3;
using backends::MemoryOperationKind;
using backends::MemorySpace;
using backends::ParamKind;
using backends::RawCopy;
using backends::RawEmpty;
using backends::RawEventRecord;
using backends::RawEventWait;
using backends::RawFill;
using backends::RawHost;
using backends::RawKernel;
using backends::RawMemoryOperations;
using backends::RawNode;
using backends::RawSemaphores;
using backends::RawWork;
using backends::SemaphoreAction;

constexpr std::string_view k_magic = "WGCAPTUR";
constexpr std::uint32_t k_version = 1;
constexpr std::size_t k_digest_at = 24, k_header_bytes = k_digest_at + sizeof(Digest);

// The file stores each kind of work as its index in this variant, so new alternatives must be appended at the end.
static_assert(std::same_as<RawWork, std::variant<RawEmpty, RawKernel, RawCopy, RawFill, RawEventRecord, RawEventWait,
                                                 RawHost, RawMemoryOperations, RawSemaphores>>);

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
    template <class Enum>
    void choice(Enum value, Enum /*low*/, Enum /*high*/)
    {
        number(static_cast<std::uint8_t>(value));
    }
    void flag(bool value) { number(static_cast<std::uint8_t>(value)); }
    void alternative(const RawWork& work) { number(static_cast<std::uint8_t>(work.index())); }
    template <class List, class Write>
    void list(const List& items, Write write)
    {
        number(static_cast<std::uint64_t>(items.size()));
        for (const auto& item : items) write(item);
    }
    /// Returns the next item of a list whose items are stored between other fields.
    template <class T>
    static const T& next(const std::vector<T>& items, std::size_t& at)
    {
        return items.at(at++);
    }
    static void require(bool /*holds*/) noexcept {} ///< only a reader checks

private:
    Bytes& m_bytes;
};

/// Reads fields until one is missing. All later values are zero, and lists stop growing.
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
    /// Reads an enum value, which must be from `low` to `high`, both included.
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
    void alternative(RawWork& work)
    {
        const auto read = number<std::uint8_t>();
        require(read < std::variant_size_v<RawWork>);
        if (!is_good()) return;
        [&]<std::size_t... Index>(std::index_sequence<Index...>) {
            ((Index == read ? static_cast<void>(work.emplace<Index>()) : void()), ...);
        }(std::make_index_sequence<std::variant_size_v<RawWork>>());
    }
    /// The list grows while it is read: each item takes at least one of the remaining bytes.
    template <class T, class Read>
    void list(std::vector<T>& items, Read read)
    {
        const auto count = number<std::uint64_t>();
        require(count <= m_rest.size());
        for (std::uint64_t i = 0; i < count && is_good(); ++i) read(items.emplace_back());
    }
    template <class T>
    static T& next(std::vector<T>& items, std::size_t& /*at*/)
    {
        return items.emplace_back();
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

// --- The fields of each type in their order, for the writer (const objects) and for the reader (others).

template <class T, class Plain>
concept Of = std::same_as<std::remove_const_t<T>, Plain>;

template <class Fields, class Capture>
class WorkFields {
public:
    WorkFields(Fields& fields, Capture& capture) : m_fields(fields), m_capture(capture) {}

    void operator()(Of<RawEmpty> auto&) {}
    void operator()(Of<RawKernel> auto& kernel)
    {
        m_fields.number(m_fields.next(m_capture.kernel_modules, m_kernels));
        m_fields.text(kernel.kernel);
        m_fields.dimensions(kernel.grid);
        m_fields.dimensions(kernel.block);
        m_fields.list(kernel.params, [&](auto& param) {
            m_fields.choice(param.kind, ParamKind::value, ParamKind::local);
            m_fields.bytes(param.value);
            m_fields.address(param.address);
            m_fields.number(param.local_size);
        });
        m_fields.number(kernel.shared_bytes);
        m_fields.flag(kernel.packed);
        m_fields.list(kernel.attributes, [&](auto& attribute) {
            m_fields.number(attribute.id);
            m_fields.bytes(attribute.value);
        });
        m_fields.list(kernel.function_attributes, [&](auto& attribute) {
            m_fields.number(attribute.id);
            m_fields.number(attribute.value);
        });
    }
    void operator()(Of<RawCopy> auto& copy)
    {
        m_fields.address(copy.source);
        m_fields.address(copy.destination);
        m_fields.number(copy.size);
        m_fields.number(copy.rows);
        m_fields.number(copy.slices);
        for (auto* pitch : {&copy.source_pitch, &copy.destination_pitch}) {
            m_fields.number(pitch->row);
            m_fields.number(pitch->slice);
        }
        m_fields.choice(copy.source_space, MemorySpace::device, MemorySpace::host);
        m_fields.choice(copy.destination_space, MemorySpace::device, MemorySpace::host);
    }
    void operator()(Of<RawFill> auto& fill)
    {
        m_fields.address(fill.destination);
        m_fields.bytes(fill.pattern);
        m_fields.number(fill.size);
        m_fields.number(fill.rows);
        m_fields.number(fill.pitch);
    }
    void operator()(Of<RawEventRecord> auto& node) { m_fields.number(node.event); }
    void operator()(Of<RawEventWait> auto& node) { m_fields.number(node.event); }
    void operator()(Of<RawHost> auto&) { m_fields.text(m_fields.next(m_capture.host_functions, m_host_nodes)); }
    void operator()(Of<RawMemoryOperations> auto& batch)
    {
        m_fields.list(batch.operations, [&](auto& operation) {
            m_fields.choice(operation.kind, MemoryOperationKind::wait_32, MemoryOperationKind::barrier);
            m_fields.address(operation.address);
            m_fields.number(operation.value);
            m_fields.number(operation.flags);
        });
    }
    void operator()(Of<RawSemaphores> auto& semaphores)
    {
        m_fields.choice(semaphores.action, SemaphoreAction::signal, SemaphoreAction::wait);
        m_fields.list(semaphores.uses, [&](auto& use) {
            m_fields.number(use.semaphore);
            m_fields.number(use.value);
            m_fields.number(use.flags);
        });
    }

private:
    Fields& m_fields;
    Capture& m_capture;
    std::size_t m_kernels = 0, m_host_nodes = 0;
};

template <class Fields>
void fields_of_edges(Fields& fields, Of<RawNode> auto& node, std::size_t index)
{
    fields.list(node.dependencies, [&](auto& dependency) { fields.number(dependency); });
    fields.list(node.edges, [&](auto& edge) {
        fields.number(edge.from_port);
        fields.number(edge.to_port);
        fields.number(edge.type);
    });
    fields.require(node.edges.empty() || node.edges.size() == node.dependencies.size());
    fields.require(std::ranges::all_of(node.dependencies, [&](std::uint32_t before) { return before < index; }));
}

template <class Fields>
void fields_of(Fields& fields, Of<StoredCapture> auto& capture)
{
    auto& function = capture.key.function;
    for (auto* text : {&function.model_info, &function.rank, &function.function}) fields.text(*text);
    fields.digest(capture.key.guards_digest);
    fields.text(capture.process);
    fields.list(capture.code, [&](auto& code) { fields.digest(code); });
    WorkFields works{fields, capture};
    std::size_t nodes = 0;
    fields.list(capture.graph.nodes, [&](auto& node) {
        fields.alternative(node.work);
        std::visit(works, node.work);
        fields_of_edges(fields, node, nodes++);
    });
    fields.require(std::ranges::all_of(capture.kernel_modules,
                                       [&](std::uint32_t module) { return module < capture.code.size(); }));
    const auto memory = [&](auto& one) { fields.memory(one); };
    const auto number = [&](auto& one) { fields.number(one); };
    const auto named_memory = [&](auto& one) {
        fields.text(one.first);
        fields.memory(one.second);
    };
    const auto named_handle = [&](auto& one) {
        fields.text(one.first);
        fields.number(one.second);
    };
    fields.list(capture.graph.allocations, [&](auto& one) { fields.memory(one.memory); });
    fields.list(capture.regions, named_memory);
    fields.list(capture.scratch, named_memory);
    fields.list(capture.free_blocks, memory);
    fields.list(capture.scalars, number);
    fields.list(capture.handles.events, named_handle);
    fields.list(capture.handles.semaphores, named_handle);
    fields.list(capture.live, memory);
    fields.list(capture.host_words, number);
}

} // namespace

Bytes encode(const StoredCapture& capture)
{
    Bytes fields;
    FieldWriter to{fields};
    fields_of(to, capture);
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
        return fail(ErrorCode::corrupt, "the file is not a capture that warmgraph wrote");
    if (const auto version = load<std::uint32_t>(bytes, k_magic.size()); version != k_version)
        return fail(ErrorCode::stale, "the file has format {}, expected {}", version, k_version);
    const ByteView fields = bytes.subspan(k_header_bytes);
    if (load<std::uint32_t>(bytes, 12) != 0 || load<std::uint64_t>(bytes, 16) != fields.size())
        return fail(
            ErrorCode::corrupt,
            "the file has {} bytes after its header, but the header says another number: it is truncated or damaged",
            fields.size());
    if (load<Digest>(bytes, k_digest_at) != sha256(fields))
        return fail(ErrorCode::corrupt, "the digest does not match: the file is damaged");
    StoredCapture capture;
    FieldReader from{fields};
    fields_of(from, capture);
    if (!from.is_good() || !from.is_at_end())
        return fail(ErrorCode::corrupt, "its fields do not fit into its {} bytes", fields.size());
    return capture;
}

} // namespace warmgraph
