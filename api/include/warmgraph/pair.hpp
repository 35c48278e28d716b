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

/// What a pair declares. What both halves depend on (code, tuned, config, environment, version, policy, metadata) may be
/// said in either Spec and counts for both: a pair has one set of guards.
struct PairSpec {
    Spec forward{};
    /// Its inputs are gradients of forward's outputs, and whatever else it reads; its outputs are the gradients.
    Spec backward{};
    /// What forward saves for backward. Lies in an arena of the pair's own; each callable asks Recorder::address for it.
    /// Forward writes it as an output, backward reads it as an input; no call is given it.
    std::vector<TensorDecl> saved{};
    /// Of backward's inputs and outputs: which tensor of forward's each is the gradient of. It must have that one's shape.
    std::map<std::string, std::string> gradients{};
};

/// One call of forward, for the backward that belongs to it.
struct ForwardCall {
    Outcome outcome = Outcome::eager;
    std::uint64_t generation = 0; ///< of what it saved; no other call of the process has it
};

enum class PairHalf : std::uint8_t { forward, backward };

/// A cached pair of functions. Cheap to move; may outlive its Cache and its Device. Thread-safe: one call at a time.
///
/// Both halves run as they are until both are recorded: from the next forward call on both are replayed. Where one half
/// cannot be recorded, both run as they are. The callables share nothing but declared and saved memory: what else backward
/// uses of forward's (a variable of the host, memory that Recorder::alloc gave forward) is not there when forward is
/// replayed.
class WARMGRAPH_API Pair {
public:
    Pair(Pair&&) noexcept;
    Pair& operator=(Pair&&) noexcept;
    ~Pair(); ///< as Function's

    /// Enqueues forward in the device's default stream, or in `stream`, as Function::call does, with its errors. What an
    /// earlier call saved is overwritten. invalid_argument also: a name of saved memory, memory that overlaps it, a
    /// stream of another device.
    ForwardCall forward(std::initializer_list<Arg> args) { return forward(std::span{args.begin(), args.size()}); }
    ForwardCall forward(Stream& stream, std::initializer_list<Arg> args)
    {
        return forward(stream, std::span{args.begin(), args.size()});
    }
    ForwardCall forward(std::span<const Arg> args);
    ForwardCall forward(Stream& stream, std::span<const Arg> args);

    /// Enqueues backward of that call, which may be done more than once; in another stream it comes after forward.
    /// stale: a later forward has overwritten what `of` saved. invalid_argument: `of` is no call of this pair's, or a
    /// tensor has another shape than forward's of that name, or than the one whose gradient it is.
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

    /// Moves a state to other memory of the same size, in each half that declares it. invalid_argument: neither does,
    /// another size.
    void bind(std::string_view state, const MemoryRef& memory);

    /// As Function::report and Function::misses, of one half. The pair's own misses are forward's, and those of a
    /// backward whose forward was a hit.
    [[nodiscard]] Report report(PairHalf half) const;
    [[nodiscard]] std::vector<Miss> misses(PairHalf half) const;

    struct Impl; ///< opaque

private:
    friend class Cache;
    explicit Pair(std::shared_ptr<Impl> impl) noexcept;
    std::shared_ptr<Impl> m_impl;
};

} // namespace warmgraph
