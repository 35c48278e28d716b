// A loaded entry that is launched repeatedly.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "cache.hpp"
#include "warmgraph/guards/call_guard.hpp"
#include "warmgraph/replay/executable.hpp"

namespace warmgraph::replayer {

struct Tensor {
    MemoryRef memory;
    bool is_as_recorded = true; ///< whether the tensor looks as recorded; the members below are then ignored
    DType dtype = DType::u8;
    std::span<const std::int64_t> sizes{}, strides{}; ///< empty strides: contiguous
};

struct Number {
    DType dtype = DType::i64;
    std::uint64_t bits = 0;
};

/// The arguments of a call.
struct Call {
    std::span<const Tensor> tensors;
    std::span<const Number> numbers; ///< the scalars, then the values
};

/// Thread-safe; launches run one at a time.
class Function {
public:
    Function(std::shared_ptr<Cache> cache, std::shared_ptr<Device> device, LoadedEntry loaded);
    Function(const Function&) = delete;
    Function& operator=(const Function&) = delete;

    [[nodiscard]] const std::vector<cachefmt::TensorSpec>& tensors() const noexcept { return m_header.guards.tensors; }
    [[nodiscard]] const guards::DeclaredInterface& interface() const noexcept { return m_interface; }
    [[nodiscard]] const std::vector<cachefmt::ValueSpec>& values() const noexcept { return m_header.guards.values; }
    [[nodiscard]] const std::vector<ScalarRange>& ranges() const noexcept { return m_ranges; }
    [[nodiscard]] const Device& device() const noexcept { return *m_device; }
    /// Returns the graph's regions that calls provide, one for each of tensors().
    [[nodiscard]] std::span<const cachefmt::Region> regions() const noexcept;

    /// Checks the call and launches the graph. After an error nothing was enqueued, except after partly_launched.
    [[nodiscard]] Result<void> launch(void* stream, const Call& call);
    /// Does everything of the first launch except launching.
    [[nodiscard]] Result<void> prepare(const Call& call);

private:
    [[nodiscard]] const cachefmt::Graph& graph() const noexcept
    {
        return m_executable ? m_executable->graph() : m_graph;
    }
    [[nodiscard]] Result<void> read(const Call& call);
    [[nodiscard]] Result<guards::TensorArg> read(std::size_t index, const Tensor& tensor) const;
    [[nodiscard]] Result<std::uint64_t> read(std::string_view name, DType type, const Number& number) const;
    [[nodiscard]] Result<void> judge();
    [[nodiscard]] Result<void> judge_surroundings();
    [[nodiscard]] Error mismatch() const;
    [[nodiscard]] Result<void> begin_load();
    [[nodiscard]] Result<void> restore();
    [[nodiscard]] Result<std::shared_ptr<backends::Stream>> stream_of(void* native);
    [[nodiscard]] Result<void> order_after_last(const std::shared_ptr<backends::Stream>& stream);
    void note_launch(backends::Stream& stream) noexcept;

    std::shared_ptr<Cache> m_cache;
    std::shared_ptr<Device> m_device;
    cachefmt::EntryHeader m_header;
    guards::DeclaredInterface m_interface;
    std::vector<ScalarRange> m_ranges; ///< the range of each scalar
    std::vector<std::pair<std::string, std::string>>
        m_environment; ///< environment variables that are guards, and their recorded values
    std::uint64_t m_number;

    std::mutex m_mutex;                               ///< guards the following members
    cachefmt::Graph m_graph;                          ///< only used before restore()
    std::unique_ptr<replay::Executable> m_executable; ///< null before restore()
    guards::CallGuard m_guard;
    bool m_has_spaces = false; ///< whether the last call's memory was in the recorded spaces
    std::uint64_t m_exposures;
    std::vector<guards::TensorArg> m_args; ///< arguments of the current call
    std::vector<std::uint64_t> m_values;
    replay::Bindings m_bindings;
    void* m_last_native = nullptr;
    std::shared_ptr<backends::Stream> m_last; ///< the stream of the last launch
    bool m_has_launched = false;
    std::unique_ptr<store::LoadMark> m_mark; ///< the load's mark, kept until the first launch; null: no mark
};

} // namespace warmgraph::replayer
