#include "cut_write.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <numeric>

namespace warmgraph::backends::cuda {

namespace {

using elf::File;
using elf::Section;
using elf::Segment;

constexpr std::uint64_t k_table_alignment = 8;
constexpr std::uint64_t k_largest_alignment = 1ULL << 16U;

class Writer {
public:
    Writer(const File& file, const ElfChange& change)
        : m_file(file),
          m_change(change),
          m_sections(file.sections().begin(), file.sections().end()),
          m_segments(file.segments().begin(), file.segments().end()),
          m_members(m_segments.size()),
          m_alignment(m_sections.size(), 1)
    {
    }

    Result<Bytes> write()
    {
        if (auto done = find_members(); !done) return std::unexpected(std::move(done.error()));
        if (auto done = find_alignment(); !done) return std::unexpected(std::move(done.error()));
        place_sections();
        elf::FileHeader header = m_file.header();
        header.sections_offset = pad(k_table_alignment);
        place_segments(header);
        finish(header);
        return std::move(m_out);
    }

private:
    [[nodiscard]] bool has_bytes(std::uint32_t i) const noexcept
    {
        const Section& section = m_file.sections()[i];
        return section.type != elf::k_null && section.type != elf::k_nobits;
    }
    [[nodiscard]] ByteView contents(std::uint32_t i) const
    {
        const auto changed = m_change.contents.find(i);
        return changed != m_change.contents.end() ? ByteView(changed->second) : m_file.contents(m_file.sections()[i]);
    }
    [[nodiscard]] bool covers_headers(const Segment& segment) const noexcept
    {
        const auto& header = m_file.header();
        return segment.offset == header.segments_offset &&
               segment.file_size == std::uint64_t{header.segment_count} * sizeof(Segment);
    }

    // Sections in file order. In a hostile file they may overlap: then each gets its own copy.
    [[nodiscard]] std::vector<std::uint32_t> order() const
    {
        std::vector<std::uint32_t> order(m_sections.size());
        std::iota(order.begin(), order.end(), 0U);
        std::ranges::stable_sort(order, {}, [&](std::uint32_t i) { return m_file.sections()[i].offset; });
        return order;
    }

    // Finds, for each segment, the sections with bytes that it covers, in file order.
    Result<void> find_members()
    {
        const auto in_order = order();
        for (std::size_t s = 0; s < m_segments.size(); ++s) {
            const Segment& segment = m_segments[s];
            if (covers_headers(segment) || segment.file_size == 0) continue;
            if (segment.offset > m_file.bytes().size() || segment.file_size > m_file.bytes().size() - segment.offset)
                return fail(ErrorCode::corrupt, "a cubin's segment {} is not within the file", s);
            const std::uint64_t end = segment.offset + segment.file_size;
            for (const std::uint32_t i : in_order) {
                const Section& section = m_file.sections()[i];
                if (!has_bytes(i) || section.size == 0) continue;
                if (section.offset >= end || section.offset + section.size <= segment.offset) continue;
                if (section.offset < segment.offset || section.offset + section.size > end)
                    return fail(ErrorCode::unsupported,
                                "segment {} ends inside section {}, so unused kernels are not removed from the cubin",
                                s, i);
                m_members[s].push_back(i);
            }
        }
        return {};
    }

    Result<void> find_alignment()
    {
        const auto usable = [](std::uint64_t alignment) {
            return std::has_single_bit(alignment) && alignment <= k_largest_alignment;
        };
        for (std::size_t i = 0; i < m_sections.size(); ++i) {
            m_alignment[i] = std::max<std::uint64_t>(m_sections[i].alignment, 1);
            if (!usable(m_alignment[i]))
                return fail(ErrorCode::unsupported,
                            "section {} has alignment {}, so unused kernels are not removed from the cubin", i,
                            m_alignment[i]);
        }
        for (std::size_t s = 0; s < m_segments.size(); ++s) {
            const std::uint64_t alignment = std::max<std::uint64_t>(m_segments[s].alignment, 1);
            if (!usable(alignment))
                return fail(ErrorCode::unsupported,
                            "segment {} has alignment {}, so unused kernels are not removed from the cubin", s,
                            alignment);
            // A segment starts at its first remaining section.
            const auto first =
                std::ranges::find_if(m_members[s], [&](std::uint32_t i) { return !m_change.removed[i]; });
            if (first != m_members[s].end()) m_alignment[*first] = std::max(m_alignment[*first], alignment);
        }
        return {};
    }

    std::uint64_t pad(std::uint64_t alignment)
    {
        m_out.resize((m_out.size() + alignment - 1) / alignment * alignment);
        return m_out.size();
    }

    void place_sections()
    {
        m_out.resize(sizeof(elf::FileHeader));
        for (const std::uint32_t i : order()) {
            if (m_change.removed[i]) {
                m_removed_memory += m_sections[i].type == elf::k_nobits ? m_sections[i].size : 0;
                m_sections[i] = Section{};
                continue;
            }
            if (m_sections[i].type == elf::k_null) continue;
            m_sections[i].name = m_change.section_names[i];
            m_sections[i].offset = pad(m_alignment[i]);
            if (!has_bytes(i)) continue;
            const ByteView bytes = contents(i);
            m_sections[i].size = bytes.size();
            append(m_out, bytes);
        }
    }

    void place_segments(elf::FileHeader& header)
    {
        const std::uint64_t sections_end = header.sections_offset + m_sections.size() * sizeof(Section);
        header.segments_offset = m_segments.empty() ? 0 : sections_end;
        for (std::size_t s = 0; s < m_segments.size(); ++s) {
            Segment& segment = m_segments[s];
            if (covers_headers(segment)) {
                segment.offset = header.segments_offset;
                continue;
            }
            const std::uint64_t before = segment.file_size;
            std::uint64_t start = header.sections_offset, end = start;
            bool empty = true;
            for (const std::uint32_t i : m_members[s]) {
                if (m_change.removed[i]) continue;
                if (empty) start = m_sections[i].offset;
                end = m_sections[i].offset + m_sections[i].size;
                empty = false;
            }
            // The offset of an empty segment (memory only) does not matter.
            segment.offset = start;
            segment.file_size = end - start;
            const std::uint64_t memory = segment.memory_size > before ? segment.memory_size - before : 0;
            segment.memory_size = segment.file_size + (memory > m_removed_memory ? memory - m_removed_memory : 0);
        }
    }

    void finish(const elf::FileHeader& header)
    {
        append(m_out, std::as_bytes(std::span(m_sections)));
        append(m_out, std::as_bytes(std::span(m_segments)));
        std::memcpy(m_out.data(), &header, sizeof header);
    }

    const File& m_file;
    const ElfChange& m_change;
    std::vector<Section> m_sections;
    std::vector<Segment> m_segments;
    std::vector<std::vector<std::uint32_t>> m_members; // for each segment: its sections
    std::vector<std::uint64_t> m_alignment;            // the alignment of each section
    std::uint64_t m_removed_memory = 0;                // bytes of removed sections that only take memory
    Bytes m_out;
};

} // namespace

Result<Bytes> write_elf(const File& file, const ElfChange& change) { return Writer(file, change).write(); }

} // namespace warmgraph::backends::cuda
