// The kernels of kernels.cu on one device. They are loaded at the first use and run in their own stream.
#pragma once

#include <array>
#include <cstdint>
#include <mutex>
#include <span>
#include <string_view>
#include <variant>
#include <vector>

#include "device/core.hpp"
#include "kernel_work.hpp"

namespace warmgraph::backends::cuda::bulk {

enum class Kernel : std::uint8_t { disturb, first_difference, first_other, departure, fingerprint, words_in, warm_up };
inline constexpr std::size_t k_kernel_count = 7;

inline constexpr std::uint64_t k_word_room = 4096; ///< most words that one launch returns

struct CopyTask {
    CUdeviceptr to = 0, from = 0;
    std::uint64_t size = 0;
};
struct FillTask {
    CUdeviceptr to = 0;
    std::byte pattern{0};
    std::uint64_t size = 0;
};
/// Work of Launcher::run_all(). `tally` is set there.
using Task = std::variant<CopyTask, FillTask, DifferenceWork, OtherWork, FingerprintWork>;

/// Thread-safe; blocking.
class Launcher {
public:
    explicit Launcher(const Core& core) noexcept : m_core(core) {}
    Launcher(const Launcher&) = delete;
    Launcher& operator=(const Launcher&) = delete;
    ~Launcher();

    /// Allows the driver to compile the kernels' text if there is no code for the device (0.3 s, once on a machine).
    enum class Compile : std::uint8_t { never, if_needed };
    /// True if the kernels are available. The first call loads them; false on all calls if the driver refuses them.
    [[nodiscard]] bool is_ready(Compile compile = Compile::if_needed);

    /// REQUIRES: is_ready() was true.
    [[nodiscard]] CUfunction function(Kernel kernel) const noexcept
    {
        return m_functions[static_cast<std::size_t>(kernel)];
    }

    /// Runs a kernel over `size` bytes and returns its tally. Puts up to k_word_room words into `words`, unordered.
    /// REQUIRES: is_ready() was true.
    template <class Work>
    [[nodiscard]] Result<Tally> run(Kernel kernel, Work work, std::uint64_t size, std::vector<Word>* words = nullptr)
    {
        const std::scoped_lock lock(m_mutex);
        const CurrentContext context(m_core);
        const OutsideCapture outside(m_core);
        if (auto prepared = prepare(); !prepared) return std::unexpected(prepared.error());
        if constexpr (requires { work.tally; }) work.tally = Address::from_flat(m_tally).pointer<Tally>();
        if constexpr (requires { work.words; }) {
            work.words = Address::from_flat(m_tally + sizeof(Tally)).pointer<Word>();
            work.room = k_word_room;
        }
        return launch(kernel, &work, size, words);
    }
    /// Runs the tasks in their order, waits once, and returns the tallies of the tasks that have one.
    /// REQUIRES: is_ready() was true.
    [[nodiscard]] Result<std::vector<Tally>> run_all(std::span<const Task> tasks);
    [[nodiscard]] Result<void> copy(CUdeviceptr to, CUdeviceptr from, std::uint64_t size);
    [[nodiscard]] Result<void> fill(CUdeviceptr to, std::byte pattern, std::uint64_t size);

private:
    enum class State : std::uint8_t { unknown, ready, refused };
    [[nodiscard]] Result<void> load(Compile compile);
    [[nodiscard]] Result<void> make_stream();
    [[nodiscard]] Result<void> prepare();
    /// Runs tasks with at most k_most_tallies tallies.
    [[nodiscard]] Result<void> run_some(std::span<const Task> tasks, std::span<Tally> tallies);
    [[nodiscard]] Result<void> enqueue(const Task& task, std::size_t tally);
    [[nodiscard]] Result<void> enqueue(Kernel kernel, void* work, std::uint64_t size);
    [[nodiscard]] Result<void> set(CUdeviceptr to, std::byte pattern, std::uint64_t size);
    [[nodiscard]] Result<void> move(CUdeviceptr to, CUdeviceptr from, std::uint64_t size);
    [[nodiscard]] Result<void> synchronize();
    [[nodiscard]] Result<Tally> launch(Kernel kernel, void* work, std::uint64_t size, std::vector<Word>* words);

    const Core& m_core;
    std::mutex m_mutex; // guards the members below
    State m_state = State::unknown;
    CUmodule m_module = nullptr;
    std::array<CUfunction, k_kernel_count> m_functions{};
    int m_units = 0; ///< multiprocessors
    CUstream m_stream = nullptr;
    CUdeviceptr m_tally = 0; ///< a Tally and k_word_room words; or tallies
};

} // namespace warmgraph::backends::cuda::bulk
