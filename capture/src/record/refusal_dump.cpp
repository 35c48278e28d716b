#include "record/refusal_dump.hpp"

#include <algorithm>
#include <atomic>
#include <filesystem>

#include <unistd.h>

#include "classify/classify_words.hpp"
#include "classify/structural_difference.hpp"
#include "classify/words.hpp"
#include "record/adoption_session.hpp"
#include "warmgraph/backends/device.hpp"
#include "warmgraph/base/log.hpp"
#include "warmgraph/base/output_file.hpp"
#include "warmgraph/base/process.hpp"

namespace warmgraph {

namespace {

/// The text about both captures.
class RefusalText {
public:
    RefusalText(const Interface& interface, const CapturedGraph& first, const CapturedGraph* second)
        : m_interface(interface), m_first(first), m_second(second)
    {
    }

    std::string make()
    {
        add_memory();
        for (std::size_t i = 0; i < m_first.graph.nodes.size(); ++i) add_node(i);
        return std::move(m_text);
    }

private:
    template <class... Args>
    void line(fmt::format_string<Args...> text, Args&&... args)
    {
        m_text += fmt::format(text, std::forward<Args>(args)...);
        m_text += '\n';
    }

    void add_memory()
    {
        line("\nmemory: bytes, address in the first and in the second capture");
        for (std::size_t i = 0; i < m_first.regions.size(); ++i)
            line("  {}: {}, {:#x}{}", m_interface.regions[i].name, m_first.regions[i].size,
                 m_first.regions[i].address.flat(), in_second([i](const auto& one) { return one.regions[i]; }));
        for (const CapturedGraph* capture : {&m_first, m_second})
            for (std::size_t i = 0; capture != nullptr && i < capture->scratch.size(); ++i)
                line("  scratch '{}' of the {} capture: {}, {:#x}", capture->scratch[i].first,
                     capture == &m_first ? "first" : "second", capture->scratch[i].second.size,
                     capture->scratch[i].second.address.flat());
    }

    template <class Get>
    [[nodiscard]] std::string in_second(Get get) const
    {
        return m_second != nullptr ? fmt::format(", {:#x}", get(*m_second).address.flat()) : std::string{};
    }

    [[nodiscard]] const backends::RawWork* work_of_second(std::size_t node) const
    {
        const bool is_there = m_second != nullptr && node < m_second->graph.nodes.size();
        return is_there ? &m_second->graph.nodes[node].work : nullptr;
    }

    void add_node(std::size_t node)
    {
        const auto& work = m_first.graph.nodes[node].work;
        const auto* const other = work_of_second(node);
        line("\n{}{}", describe_node(m_first.graph, node),
             m_second != nullptr && (other == nullptr || other->index() != work.index())
                 ? ", which is no such node in the second capture"
                 : "");
        if (const auto* kernel = std::get_if<backends::RawKernel>(&work))
            line("  grid {}, block {}, {} bytes of shared memory", fmt::join(kernel->grid, " x "),
                 fmt::join(kernel->block, " x "), kernel->shared_bytes);
        backends::for_each_place(work, [&](const backends::NodePlace& place, const auto& content) {
            const bool has_other = other != nullptr && other->index() == work.index();
            const WordPlace at{m_first.graph, node, place};
            Bytes was, is;
            if (content.address != nullptr) append(was, content.address->flat());
            if (content.bytes != nullptr) was = *content.bytes;
            if (has_other) {
                const auto then = backends::content_at(*other, place);
                if (then.address != nullptr) append(is, then.address->flat());
                if (then.bytes != nullptr) is = *then.bytes;
            }
            add_words(at, was, is);
        });
    }

    void add_words(const WordPlace& at, Bytes was, Bytes is)
    {
        const std::size_t size = was.size();
        for (Bytes* bytes : {&was, &is}) bytes->resize((size + k_word - 1) / k_word * k_word);
        for (std::size_t offset = 0; offset < was.size(); offset += k_word) {
            const auto one = load<std::uint64_t>(was, offset), other = load<std::uint64_t>(is, offset);
            if (one == 0 && other == 0) continue;
            const std::string then = m_second != nullptr && one != other
                                         ? fmt::format(" and then {:#x}{}", other, owner_of(*m_second, other))
                                         : "";
            line("  {}: {:#x}{}{}", at.at(offset), one, owner_of(m_first, one), then);
        }
    }

    /// Returns the memory of the call that contains the address, as " (16 bytes into 'x')".
    [[nodiscard]] std::string owner_of(const CapturedGraph& capture, std::uint64_t address) const
    {
        const auto in = [address](const MemoryRef& memory) { return address - memory.address.flat() < memory.size; };
        const auto region = std::ranges::find_if(capture.regions, in);
        if (region != capture.regions.end())
            return fmt::format(" ({} bytes into '{}')", address - region->address.flat(),
                               m_interface.regions[static_cast<std::size_t>(region - capture.regions.begin())].name);
        const auto scratch = std::ranges::find_if(capture.scratch, in, &NamedMemory::second);
        if (scratch != capture.scratch.end())
            return fmt::format(" ({} bytes into scratch '{}')", address - scratch->second.address.flat(),
                               scratch->first);
        return "";
    }

    const Interface& m_interface;
    const CapturedGraph& m_first;
    const CapturedGraph* m_second;
    std::string m_text;
};

Result<void> write_to(const std::filesystem::path& folder, const std::string& function, const std::string& text)
{
    static std::atomic<unsigned> s_number{0};
    std::error_code failed;
    std::filesystem::create_directories(folder, failed);
    std::string name = function;
    std::ranges::replace_if(name, [](char c) { return c == '/' || c == ' '; }, '_');
    const auto path = folder / fmt::format("{}-{}-{}.txt", name, ::getpid(), s_number++);
    auto file = OutputFile::open(path, OutputFile::k_private);
    if (!file) return std::unexpected(file.error());
    auto done = file->append(std::as_bytes(std::span{text}));
    if (done) done = file->commit();
    if (done) log().info("what the refused recording of '{}' saw lies in {}", function, path.string());
    return done;
}

} // namespace

void dump_refusal(const CaptureTarget& target, const Frame& frame, const AdoptedCapture& first,
                  const AdoptedCapture* second, const Error& why) noexcept
try {
    const auto folder = environment("WARMGRAPH_DUMP");
    if (!folder || folder->empty()) return;
    std::string text =
        fmt::format("warmgraph refused to record '{}' on {}:\n{}\n", target.name, target.device->id(), why.message);
    const auto captured = read_capture(target, frame, first);
    const bool has_second = captured && second != nullptr && second->graph != nullptr;
    const auto moved = has_second ? read_capture(target, frame, *second) : Result<CapturedGraph>{CapturedGraph{}};
    if (captured && moved)
        text += RefusalText{target.interface, *captured, has_second ? &*moved : nullptr}.make();
    else
        text += fmt::format("the captures cannot be read: {}\n", (captured ? moved : captured).error().message);
    if (auto done = write_to(*folder, target.name, text); !done) log().warn("WARMGRAPH_DUMP: {}", done.error().message);
} catch (const std::exception& error) { // the caller gets its refusal in any case
    log().warn("WARMGRAPH_DUMP: {}", error.what());
}

} // namespace warmgraph
