// Private parts of Pair: two functions that share an arena and whose calls belong together.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "cache/function_names.hpp"
#include "warmgraph/call/function_impl.hpp"

namespace warmgraph {

/// Two tensors that must have the same shape in every call.
struct SameShape {
    std::string forward, backward;               ///< the names of the two tensors
    std::size_t in_forward = 0, in_backward = 0; ///< the indices of their regions
    bool same_type = false; ///< true: both are the same tensor; false: one is a gradient, of any type
};

/// The parts of a cache that its pairs use.
struct PairSources {
    /// As make_function() in make_function.hpp, for this cache and device.
    using MakeFunction = std::function<std::shared_ptr<Function::Impl>(std::string name, Spec spec, Interface interface,
                                                                       Callable callable, const void* code,
                                                                       std::unique_ptr<PairRole> role)>;
    FunctionNames& names; ///< lives at least as long as each function that was made
    std::shared_ptr<PairEntries> entries;
    std::shared_ptr<Device::Impl> device;
    MakeFunction make_function;
};

struct Pair::Impl {
    /// Makes a pair. Throws the errors of Cache::wrap_pair.
    static std::shared_ptr<Impl> make(const PairSources& cache, std::string name, PairSpec spec, Callable forward,
                                      Callable backward, const void* forward_code, const void* backward_code);
    Impl() = default;
    Impl(const Impl&) = delete;
    Impl& operator=(const Impl&) = delete;
    ~Impl();

    /// Call the halves of the pair. `stream`: null means the device's default stream.
    [[nodiscard]] ForwardCall forward(Stream* stream, std::span<const Arg> args);
    [[nodiscard]] Outcome backward(const ForwardCall& of, Stream* stream, std::span<const Arg> args);
    void bind(std::string_view state, const MemoryRef& memory);
    [[nodiscard]] const Function::Impl& function(PairHalf half) const;
    /// As retire() in make_function.hpp.
    void retire() noexcept;

private:
    [[nodiscard]] std::shared_ptr<backends::Stream> stream_of(Stream* stream) const;
    void refuse_saved(std::span<const Arg> args) const;
    [[nodiscard]] Result<void> check_forward(const Frame& frame);
    [[nodiscard]] Result<void> check_backward(const Frame& frame) const;
    [[nodiscard]] Result<void> check_apart(const Interface& interface, const Frame& frame) const;
    [[nodiscard]] std::vector<NamedMemory> forward_memory() const;
    void follow(Outcome outcome);

    FunctionNames* m_names = nullptr; ///< null until the pair is finished
    std::string m_name;
    std::vector<SameShape> m_same_shapes;
    std::vector<NamedMemory> m_saved;
    std::shared_ptr<Function::Impl> m_forward, m_backward;

    std::atomic<bool> m_is_retired = false;
    std::mutex m_mutex;                      // one call at a time, because both halves share the saved memory
    std::uint64_t m_generation = 0;          // generation of the saved memory; 0: no call of forward is complete
    std::optional<ServedForward> m_served;   // the forward that made this generation
    std::vector<guards::TensorArg> m_shapes; // the tensors of m_same_shapes in that call of forward
    std::vector<MemoryRef> m_memory;         // the regions of that call of forward
    std::map<cachefmt::RecordingId, int> m_refusals; // number of refusals of backward, by forward
    std::vector<Arg> m_args;                         // arguments of a call of backward
};

} // namespace warmgraph
