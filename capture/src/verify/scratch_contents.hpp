// The captured contents of a foreign graph's scratch (a memory pool, a workspace), and which parts the graph needs.
//
// A graph may read scratch that it did not write: contents from the time of the capture, or from another graph of the
// same pool. A restored graph finds zeros. So the original runs with the captured contents, with zeros, and with other
// numbers, because the captured contents may be zeros too. If the results differ, the graph reads such contents. Small
// integers are tried before floating-point numbers, because a small integer is harmless as an index; scratch that
// passes with small integers probably holds no index. Words that look like addresses stay, because a kernel that
// followed a wrong address would destroy the process's context.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "warmgraph/backends/bulk_memory.hpp"
#include "warmgraph/backends/device.hpp"
#include "warmgraph/capture/interface.hpp"

namespace warmgraph {

class ScratchContents {
public:
    /// A range of bytes of one scratch.
    struct Range {
        std::size_t scratch = 0;
        std::uint64_t from = 0, to = 0;
    };

    explicit ScratchContents(backends::Device& device) noexcept : m_device(device) {}
    ScratchContents(const ScratchContents&) = delete;
    ScratchContents& operator=(const ScratchContents&) = delete;
    ~ScratchContents(); ///< calls put_back()

    /// Copies all scratch on the device. `known`: memory of the call; words near its addresses are taken for addresses.
    [[nodiscard]] Result<void> save(const std::vector<NamedMemory>& scratch, std::span<const MemoryRef> known);
    /// Writes the captured contents to the scratch.
    [[nodiscard]] Result<void> restore();
    enum class Fill : std::uint8_t { zeros, whole_numbers, real_numbers };
    /// Writes the captured contents, except that the parts of `range` outside `kept` get other numbers.
    [[nodiscard]] Result<void> fill(const Range& range, Fill with, std::span<const Range> kept);
    /// Restores the scratch for the last time.
    [[nodiscard]] Result<void> put_back();

    /// Returns the ranges that the graph reads before writing, at least 256 bytes each. A range is seldom longer than
    /// necessary. `accepts` runs the graph with the present scratch and says whether the results are right.
    [[nodiscard]] Result<std::vector<Range>> read_before_written(const std::function<Result<bool>()>& accepts);

    /// Checks that no kernel follows an address from the captured scratch: runs with these addresses moved to zeroed
    /// memory of the same size. not_recordable: a kernel follows such an address, or there is not enough memory for the
    /// check.
    [[nodiscard]] Result<void> check_addresses(const std::function<Result<bool>()>& accepts);

    /// Returns a text such as "bytes 512 to 1024 of scratch 'pool'".
    [[nodiscard]] std::string text(const Range& range) const;
    [[nodiscard]] MemoryRef memory(const Range& range) const;
    /// Whether the scratch still holds the captured contents in this range.
    [[nodiscard]] Result<bool> is_unchanged(const Range& range) const;
    /// Returns the offset in the range of a word that looks like an address, if there is such a word.
    [[nodiscard]] std::optional<std::uint64_t> address_in(const Range& range) const;

private:
    class ZeroedMemory;
    /// A run of bytes: [from, to).
    struct Run {
        std::uint64_t from = 0, to = 0;
    };
    struct SavedMemory {
        std::string name;
        MemoryRef memory, copy;
        std::vector<backends::AddressWord> addresses; // words that look like addresses, sorted by offset
        std::vector<Run> runs;                        // the bytes that `addresses` cover
    };
    [[nodiscard]] Result<void> find_addresses(SavedMemory& saved, std::uint64_t from, std::uint64_t to);
    [[nodiscard]] Result<bool> matters(const Range& range, Fill with, std::span<const Range> kept,
                                       const std::function<Result<bool>()>& accepts);
    [[nodiscard]] Result<Range> narrowed(Range range, Fill with, std::span<const Range> kept,
                                         const std::function<Result<bool>()>& accepts);
    [[nodiscard]] Result<void> add_ranges(std::size_t scratch, Fill with, std::vector<Range>& found,
                                          const std::function<Result<bool>()>& accepts);
    [[nodiscard]] Result<void> fill_words(const MemoryRef& memory, std::uint64_t word) const;
    [[nodiscard]] static std::vector<Run> runs_of(std::span<const backends::AddressWord> words);
    [[nodiscard]] Result<void> copy_back(const SavedMemory& saved, const Run& run) const;
    [[nodiscard]] Result<void> move_addresses(const SavedMemory& saved, ZeroedMemory& elsewhere) const;
    [[nodiscard]] Result<void> fill_around(const SavedMemory& saved, const Range& range, std::uint64_t word,
                                           std::span<const Run> runs) const;
    /// Downloads the captured contents in pieces, lets `change` edit them, and uploads them to the scratch.
    /// `change(offset, piece)`: `offset` is the position of the piece's first byte.
    [[nodiscard]] Result<void> rewrite(const SavedMemory& saved, const Run& part,
                                       const std::function<Result<void>(std::uint64_t, Bytes&)>& change) const;

    backends::Device& m_device;
    std::vector<SavedMemory> m_saved;
    std::vector<backends::AddressWindow> m_windows; // address ranges around the known memory
    bool m_is_back = false;
};

} // namespace warmgraph
