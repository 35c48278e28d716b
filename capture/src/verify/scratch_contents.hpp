// What the scratch of somebody else's graph (a memory pool, a workspace) held when it was captured, and which of it
// matters.
//
// A graph may read scratch that it did not write: a pool holds what was there when the graph was captured, or what
// another graph of the same pool left. Elsewhere there are zeros. So the original runs with what was captured, with
// zeros, and because the capture may have found zeros as well, with other numbers: results that differ come from such
// reads. Small whole numbers come first, which as an index do no harm; what passes with them is hardly an index, and
// floating-point numbers follow. Words that look like addresses stay, for a kernel that followed another number would
// end the process's context.
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
    /// Bytes of one scratch.
    struct Range {
        std::size_t scratch = 0;
        std::uint64_t from = 0, to = 0;
    };

    explicit ScratchContents(backends::Device& device) noexcept : m_device(device) {}
    ScratchContents(const ScratchContents&) = delete;
    ScratchContents& operator=(const ScratchContents&) = delete;
    ~ScratchContents(); ///< with put_back()

    /// Copies all on the device. `known`: memory whose addresses are not cleared.
    [[nodiscard]] Result<void> save(const std::vector<NamedMemory>& scratch, std::span<const MemoryRef> known);
    /// As it was captured.
    [[nodiscard]] Result<void> restore();
    enum class Fill : std::uint8_t { zeros, whole_numbers, real_numbers };
    /// As it was captured, but for other numbers in `range`; not in `kept`.
    [[nodiscard]] Result<void> fill(const Range& range, Fill with, std::span<const Range> kept);
    /// For the last time.
    [[nodiscard]] Result<void> put_back();

    /// Ranges that matter, 256 bytes at least and seldom more than there are to it, of those that `kept` does not hold
    /// yet: empty where none does. `accepts`: whether a run with what is in scratch now does what it should.
    [[nodiscard]] Result<std::vector<Range>> read_before_written(const std::function<Result<bool>()>& accepts);

    /// That no kernel follows an address that scratch held when it was captured: zeros are where they point to
    /// meanwhile, in memory of the same size. not_recordable: one does, or there is not enough memory to tell.
    [[nodiscard]] Result<void> check_addresses(const std::function<Result<bool>()>& accepts);

    /// "bytes 512 to 1024 of scratch 'pool'"
    [[nodiscard]] std::string text(const Range& range) const;
    [[nodiscard]] MemoryRef memory(const Range& range) const;
    /// Whether the scratch holds there what it held when it was captured.
    [[nodiscard]] Result<bool> is_unchanged(const Range& range) const;
    /// Offset in the range of a word that looks like an address.
    [[nodiscard]] std::optional<std::uint64_t> address_in(const Range& range) const;

private:
    class Elsewhere;
    /// [from, to) in bytes.
    struct Run {
        std::uint64_t from = 0, to = 0;
    };
    struct Saved {
        std::string name;
        MemoryRef memory, copy;
        std::vector<backends::AddressWord> addresses; // by offset
        std::vector<Run> runs;                        // what they cover
    };
    [[nodiscard]] Result<void> find_addresses(Saved& saved, std::uint64_t from, std::uint64_t to);
    [[nodiscard]] Result<bool> matters(const Range& range, Fill with, std::span<const Range> kept,
                                       const std::function<Result<bool>()>& accepts);
    [[nodiscard]] Result<Range> narrowed(Range range, Fill with, std::span<const Range> kept,
                                         const std::function<Result<bool>()>& accepts);
    [[nodiscard]] Result<void> add_ranges(std::size_t scratch, Fill with, std::vector<Range>& found,
                                          const std::function<Result<bool>()>& accepts);
    [[nodiscard]] Result<void> fill_words(const MemoryRef& memory, std::uint64_t word) const;
    [[nodiscard]] static std::vector<Run> runs_of(std::span<const backends::AddressWord> words);
    [[nodiscard]] Result<void> copy_back(const Saved& saved, const Run& run) const;
    [[nodiscard]] Result<void> move_addresses(const Saved& saved, Elsewhere& elsewhere) const;
    [[nodiscard]] Result<void> fill_around(const Saved& saved, const Range& range, std::uint64_t word,
                                           std::span<const Run> runs) const;
    /// Downloads what was captured in pieces, has `change` write in them, and uploads them to where it was.
    /// `change(offset, piece)`: the piece begins at that byte.
    [[nodiscard]] Result<void> rewrite(const Saved& saved, const Run& part,
                                       const std::function<Result<void>(std::uint64_t, Bytes&)>& change) const;

    backends::Device& m_device;
    std::vector<Saved> m_saved;
    std::vector<backends::AddressWindow> m_windows; // around what is known
    bool m_is_back = false;
};

} // namespace warmgraph
