// A loaded entry, launched again and again.
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
    bool is_as_recorded = true; ///< the rest says nothing
    DType dtype = DType::u8;
    std::span<const std::int64_t> sizes{}, strides{}; ///< no strides: contiguous
};

struct Number {
    DType dtype = DType::i64;
    std::uint64_t bits = 0;
};

/// What a call gives.
struct Call {
    std::span<const Tensor> tensors;
    std::span<const Number> numbers; ///< scalars, then values
};

/// Thread-safe: one launch at a time.
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
    /// The regions of the graph that calls give, as many as tensors().
    [[nodiscard]] std::span<const cachefmt::Region> regions() const noexcept;

    /// Nothing was enqueued where it fails, but for partly_launched.
    [[nodiscard]] Result<void> launch(void* stream, const Call& call);
    /// All of the first launch but the launch.
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
    std::vector<ScalarRange> m_ranges; ///< of scalars
    std::vector<std::pair<std::string, std::string>>
        m_environment; ///< variables that were guards, and what they must be
    std::uint64_t m_number;

    std::mutex m_mutex;                               ///< guards what follows
    cachefmt::Graph m_graph;                          ///< until it is restored
    std::unique_ptr<replay::Executable> m_executable; ///< null: not yet
    guards::CallGuard m_guard;
    bool m_has_spaces = false; ///< the memory of the last call was of the recorded kinds
    std::uint64_t m_exposures;
    std::vector<guards::TensorArg> m_args; ///< of the call, as the next
    std::vector<std::uint64_t> m_values;
    replay::Bindings m_bindings;
    void* m_last_native = nullptr;
    std::shared_ptr<backends::Stream> m_last; ///< of the last launch
    bool m_has_launched = false;
    std::unique_ptr<store::LoadMark> m_mark; ///< the load goes on to the first launch; null: none is noted
};

} // namespace warmgraph::replayer
