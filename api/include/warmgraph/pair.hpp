// Forward and backward of a training step: two callables, two entries of one recording.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "warmgraph/arguments.hpp"
#include "warmgraph/function.hpp"
#include "warmgraph/spec.hpp"

namespace warmgraph {

/// Declares a pair. A pair has one set of guards, so facts on which both halves depend (code, tuned, config,
/// environment, version, policy, metadata) may stand in either Spec.
struct PairSpec {
    Spec forward{};
    /// The inputs of backward are the gradients of forward's outputs, and other tensors that backward reads. The
    /// outputs of backward are gradients.
    Spec backward{};
    /// Tensors that forward saves for backward. They lie in an arena that the pair owns, and no call passes them: each
    /// callable asks Recorder::address for them. Forward writes them like outputs, backward reads them like inputs.
    std::vector<TensorDecl> saved{};
    /// Maps an input or output of backward (key) to the tensor of forward (value) whose gradient it is. Both have the
    /// same shape.
    std::map<std::string, std::string> gradients{};
};

/// A call of forward. Pair::backward takes it to run the backward of this call.
struct ForwardCall {
    Outcome outcome = Outcome::eager;
    std::uint64_t generation = 0; ///< the number of the saved contents; no other call of the process has it
};

enum class PairHalf : std::uint8_t { forward, backward };

/// A cached pair of functions. Cheap to move; may outlive its Cache and its Device. Thread-safe: calls run one at a
/// time.
///
/// Both halves run as they are until both are recorded. From the next forward call on, both are replayed. Where one
/// half cannot be recorded, both run as they are. The callables share declared and saved memory only: a variable of the
/// host, or memory that Recorder::alloc gave to forward, has no contents for backward when forward is replayed.
class WARMGRAPH_API Pair {
public:
    Pair(Pair&&) noexcept;
    Pair& operator=(Pair&&) noexcept;
    ~Pair(); ///< may run within a callable of the pair, as the destructor of Function may

    /// Enqueues forward in the device's default stream, or in `stream`, as Function::call does and with its errors. It
    /// overwrites the tensors that an earlier call saved. invalid_argument also: the name of a saved tensor, memory
    /// that overlaps a saved tensor, or a stream of another device.
    ForwardCall forward(std::initializer_list<Arg> args) { return forward(std::span{args.begin(), args.size()}); }
    ForwardCall forward(Stream& stream, std::initializer_list<Arg> args)
    {
        return forward(stream, std::span{args.begin(), args.size()});
    }
    ForwardCall forward(std::span<const Arg> args);
    ForwardCall forward(Stream& stream, std::span<const Arg> args);

    /// Enqueues backward for the forward call `of`; it may be called more than once for one forward call. In another
    /// stream it is ordered after forward. stale: a later forward call has overwritten the saved tensors.
    /// invalid_argument: `of` is not a call of this pair, or a tensor has another shape than the tensor of that name in
    /// forward, or than the tensor whose gradient it is.
    Outcome backward(const ForwardCall& of, std::initializer_list<Arg> args)
    {
        return backward(of, std::span{args.begin(), args.size()});
    }
    Outcome backward(const ForwardCall& of, Stream& stream, std::initializer_list<Arg> args)
    {
        return backward(of, stream, std::span{args.begin(), args.size()});
    }
    Outcome backward(const ForwardCall& of, std::span<const Arg> args);
    Outcome backward(const ForwardCall& of, Stream& stream, std::span<const Arg> args);

    /// Moves a state to other memory of the same size, in each half that declares it. invalid_argument: neither half
    /// declares it, or the memory has another size.
    void bind(std::string_view state, const MemoryRef& memory);

    /// Return one half's report and misses, as Function::report and Function::misses do. A miss of the pair is listed
    /// with forward; backward lists only misses whose forward was a hit.
    [[nodiscard]] Report report(PairHalf half) const;
    [[nodiscard]] std::vector<Miss> misses(PairHalf half) const;

    struct Impl; ///< opaque

private:
    friend class Cache;
    explicit Pair(std::shared_ptr<Impl> impl) noexcept;
    std::shared_ptr<Impl> m_impl;
};

} // namespace warmgraph
