#include "launcher.hpp"

#include <algorithm>

#include "embedded_kernels.hpp"
#include "warmgraph/base/log.hpp"

namespace warmgraph::backends::cuda::bulk {
namespace {

constexpr std::uint64_t k_threads = 256;         // threads in a group
constexpr std::uint64_t k_groups = 8;            // the most groups on each multiprocessor: 8 groups fill it
constexpr std::uint64_t k_bytes_per_thread = 16; // the size of a `Block` in kernels.cu

constexpr std::size_t k_tally_bytes = sizeof(Tally) + k_word_room * sizeof(Word);
constexpr std::size_t k_most_tallies = k_tally_bytes / sizeof(Tally); // at once

template <class... Cases>
struct Overloaded : Cases... {
    using Cases::operator()...;
};

bool has_tally(const Task& task)
{
    return !std::holds_alternative<CopyTask>(task) && !std::holds_alternative<FillTask>(task);
}

constexpr std::array<const char*, k_kernel_count> k_names{
    "warmgraph_disturb",     "warmgraph_first_difference", "warmgraph_first_other", "warmgraph_departure",
    "warmgraph_fingerprint", "warmgraph_words_in",         "warmgraph_warm_up"};

CUdeviceptr address_of(void* memory) { return Address::from_pointer(memory).flat(); }

} // namespace

Launcher::~Launcher()
{
    if (m_stream == nullptr && m_module == nullptr) return; // the launcher was never used
    const CurrentContext context(m_core);
    const OutsideCapture outside(m_core);
    const Driver& driver = *m_core.driver;
    const auto warn = [](const Result<void>& done) {
        if (!done) log().warn("cannot free the resources of memory comparisons: {}", done.error().message);
    };
    if (m_stream != nullptr) warn(driver.call("cuStreamDestroy", driver.cuStreamDestroy, m_stream));
    if (m_tally != 0) warn(driver.call("cuMemFree", driver.cuMemFree, m_tally));
    if (m_module != nullptr) warn(driver.call("cuModuleUnload", driver.cuModuleUnload, m_module));
}

bool Launcher::is_ready(Compile compile)
{
    const std::scoped_lock lock(m_mutex);
    if (m_state != State::unknown) return m_state == State::ready;
    const CurrentContext context(m_core);
    const OutsideCapture outside(m_core);
    if (const auto loaded = load(compile); !loaded) {
        // Memory may be free at the next call, but a driver without a compiler stays without one: do not try again.
        if (loaded.error().code != ErrorCode::out_of_memory && compile == Compile::if_needed) m_state = State::refused;
        log().debug("memory is compared on the host instead of the device: {}", loaded.error().message);
        return false;
    }
    m_state = State::ready;
    return true;
}

Result<void> Launcher::load(Compile compile)
{
    const Driver& driver = *m_core.driver;
    auto asked = driver.call("cuDeviceGetAttribute", driver.cuDeviceGetAttribute, &m_units,
                             CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, m_core.device);
    if (!asked) return asked;
    if (m_module == nullptr) {
        // The code is loaded without a CudaModule, because graphs never contain these kernels.
        const auto load_from = [&](const void* code) {
            return driver.call("cuModuleLoadData", driver.cuModuleLoadData, &m_module, code);
        };
        auto loaded = load_from(k_kernels_fatbin);
        if (!loaded && loaded.error().code != ErrorCode::out_of_memory && compile == Compile::if_needed)
            loaded = load_from(k_kernels_ptx);
        if (!loaded) {
            m_module = nullptr;
            return loaded;
        }
    }
    for (std::size_t i = 0; i < k_kernel_count; ++i) {
        auto found =
            driver.call("cuModuleGetFunction", driver.cuModuleGetFunction, &m_functions[i], m_module, k_names[i]);
        if (!found) return found;
    }
    return {};
}

Result<void> Launcher::make_stream()
{
    if (m_stream != nullptr) return {};
    const Driver& driver = *m_core.driver;
    constexpr unsigned k_flags = CU_STREAM_NON_BLOCKING;
    auto made = driver.call("cuStreamCreate", driver.cuStreamCreate, &m_stream, k_flags);
    if (!made) m_stream = nullptr;
    return made;
}

Result<void> Launcher::prepare()
{
    if (auto made = make_stream(); !made) return made;
    if (m_tally != 0) return {};
    const Driver& driver = *m_core.driver;
    auto allocated = driver.call("cuMemAlloc", driver.cuMemAlloc, &m_tally, k_tally_bytes);
    if (!allocated) m_tally = 0;
    return allocated;
}

Result<void> Launcher::move(CUdeviceptr to, CUdeviceptr from, std::uint64_t size)
{
    const Driver& driver = *m_core.driver;
    return driver.call("cuMemcpyAsync", driver.cuMemcpyAsync, to, from, size, m_stream);
}

Result<void> Launcher::synchronize()
{
    const Driver& driver = *m_core.driver;
    return driver.call("cuStreamSynchronize", driver.cuStreamSynchronize, m_stream);
}

Result<void> Launcher::set(CUdeviceptr to, std::byte pattern, std::uint64_t size)
{
    const Driver& driver = *m_core.driver;
    return driver.call("cuMemsetD8Async", driver.cuMemsetD8Async, to, std::to_integer<unsigned char>(pattern), size,
                       m_stream);
}

Result<void> Launcher::enqueue(Kernel kernel, void* work, std::uint64_t size)
{
    const Driver& driver = *m_core.driver;
    const std::uint64_t wanted = (size + k_threads * k_bytes_per_thread - 1) / (k_threads * k_bytes_per_thread);
    const std::uint64_t most = k_groups * static_cast<std::uint64_t>(std::max(m_units, 1));
    CUlaunchConfig config{};
    config.gridDimX = static_cast<unsigned>(std::clamp<std::uint64_t>(wanted, 1, most));
    config.gridDimY = config.gridDimZ = config.blockDimY = config.blockDimZ = 1;
    config.blockDimX = static_cast<unsigned>(k_threads);
    config.hStream = m_stream;
    return driver.call("cuLaunchKernelEx", driver.cuLaunchKernelEx, &config,
                       m_functions[static_cast<std::size_t>(kernel)], &work, static_cast<void**>(nullptr));
}

Result<Tally> Launcher::launch(Kernel kernel, void* work, std::uint64_t size, std::vector<Word>* words)
{
    Tally tally;
    if (auto begun = move(m_tally, address_of(&tally), sizeof tally); !begun) return std::unexpected(begun.error());
    if (auto launched = enqueue(kernel, work, size); !launched) return std::unexpected(launched.error());
    if (auto read = move(address_of(&tally), m_tally, sizeof tally); !read) return std::unexpected(read.error());
    if (auto done = synchronize(); !done) return std::unexpected(done.error());
    if (words == nullptr || tally.count == 0) return tally;
    words->resize(std::min<std::uint64_t>(tally.count, k_word_room));
    if (auto read = move(address_of(words->data()), m_tally + sizeof tally, words->size() * sizeof(Word)); !read)
        return std::unexpected(read.error());
    if (auto done = synchronize(); !done) return std::unexpected(done.error());
    return tally;
}

Result<void> Launcher::enqueue(const Task& task, std::size_t tally)
{
    const auto launch_kernel = [&](Kernel kernel, auto work) {
        work.tally = Address::from_flat(m_tally + tally * sizeof(Tally)).template pointer<Tally>();
        return enqueue(kernel, &work, work.size);
    };
    return std::visit(Overloaded{
                          [&](const CopyTask& copied) { return move(copied.to, copied.from, copied.size); },
                          [&](const FillTask& filled) { return set(filled.to, filled.pattern, filled.size); },
                          [&](const DifferenceWork& work) { return launch_kernel(Kernel::first_difference, work); },
                          [&](const OtherWork& work) { return launch_kernel(Kernel::first_other, work); },
                          [&](const FingerprintWork& work) { return launch_kernel(Kernel::fingerprint, work); },
                      },
                      task);
}

Result<void> Launcher::run_some(std::span<const Task> tasks, std::span<Tally> tallies)
{
    Result<void> done;
    if (!tallies.empty()) done = move(m_tally, address_of(tallies.data()), tallies.size_bytes());
    std::size_t tally = 0;
    for (const Task& task : tasks) {
        if (!done) break;
        done = enqueue(task, tally);
        if (has_tally(task)) ++tally;
    }
    if (done && !tallies.empty()) done = move(address_of(tallies.data()), m_tally, tallies.size_bytes());
    auto waited = synchronize(); // also after an error: the tasks before it use the memory
    return done ? waited : done;
}

Result<std::vector<Tally>> Launcher::run_all(std::span<const Task> tasks)
{
    const std::scoped_lock lock(m_mutex);
    const CurrentContext context(m_core);
    const OutsideCapture outside(m_core);
    if (auto prepared = prepare(); !prepared) return std::unexpected(prepared.error());
    std::vector<Tally> tallies(static_cast<std::size_t>(std::ranges::count_if(tasks, has_tally)));
    std::size_t tally = 0;
    while (!tasks.empty()) {
        std::size_t count = 0, with_tally = 0;
        while (count < tasks.size() && with_tally < k_most_tallies)
            if (has_tally(tasks[count++])) ++with_tally;
        auto done = run_some(tasks.first(count), std::span(tallies).subspan(tally, with_tally));
        if (!done) return std::unexpected(done.error());
        tasks = tasks.subspan(count);
        tally += with_tally;
    }
    return tallies;
}

Result<void> Launcher::copy(CUdeviceptr to, CUdeviceptr from, std::uint64_t size)
{
    const std::scoped_lock lock(m_mutex);
    const CurrentContext context(m_core);
    const OutsideCapture outside(m_core);
    if (auto made = make_stream(); !made) return made;
    if (auto copied = move(to, from, size); !copied) return copied;
    return synchronize();
}

Result<void> Launcher::fill(CUdeviceptr to, std::byte pattern, std::uint64_t size)
{
    const std::scoped_lock lock(m_mutex);
    const CurrentContext context(m_core);
    const OutsideCapture outside(m_core);
    if (auto made = make_stream(); !made) return made;
    if (auto filled = set(to, pattern, size); !filled) return filled;
    return synchronize();
}

} // namespace warmgraph::backends::cuda::bulk
