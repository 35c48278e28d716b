// A function's declaration: its inputs, outputs, states and scalars, and the other facts that its entries depend on.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "warmgraph/base/dtype.hpp"
#include "warmgraph/device.hpp"
#include "warmgraph/tuning.hpp"

namespace warmgraph {

enum class Access : std::uint8_t { read_write, read_only };

struct TensorDecl {
    std::string name;
    DType dtype = DType::u8;
    std::vector<std::int64_t> sizes; ///< elements
    std::vector<std::int64_t>
        strides{}; ///< elements, one for each size; empty: contiguous. A call's Tensor has strides of its own
};

/// The caller's memory that lives across calls: a KV cache (read_write) or weights (read_only). The type decides how
/// written contents are compared: bytes and integers must be equal, floats may differ as much as two runs of the
/// function do.
struct StateDecl {
    std::string name;
    MemoryRef memory; ///< Function::bind may move it later; on CUDA it may have any address
    Access access = Access::read_write;
    DType dtype = DType::u8;
    std::vector<std::int64_t> sizes{};   ///< elements; empty: as many in one dimension as the memory holds
    std::vector<std::int64_t> strides{}; ///< elements, one for each size; empty: contiguous
};

/// The caller's memory whose *contents* the entry carries: a rope table, a mask, scales. The function only reads it. A
/// process that restores the entry gets its own copy, one for all functions with the same contents, and needs no such
/// memory to begin with. If a process has the memory, its contents must equal the recorded ones; otherwise the function
/// runs as it is. A constant is not a guard: facts that its contents depend on belong in Spec::config.
struct ConstantDecl {
    std::string name;
    MemoryRef memory{}; ///< null where entries are only loaded
};

/// The treatment of memory that the function's work reads but that was not declared: allocations of libraries (cuFFT's
/// tables), and in an adopted graph also scratch that the graph reads before it writes it.
enum class Undeclared : std::uint8_t {
    refuse,    ///< the recording or the graph is refused
    constants, ///< the memory is kept as constants, if the graph only reads it and it holds no addresses
};

struct ScalarDecl {
    std::string name;
    DType dtype = DType::i32; ///< i32, u32, i64, u64, f32 or f64
    /// The values that the scalar may take, both ends included; a call with another value is an error. Recording
    /// captures the function at several of these values to prove where the scalar goes, and runs it at one value.
    /// Without a range, recording captures the function at values of the whole type, and runs it at the call's value
    /// alone. Declare a handle (a texture's u64) without a range: with a range, recording would pass other numbers,
    /// which are not valid handles.
    std::optional<std::pair<double, double>> range;
};

[[nodiscard]] inline TensorDecl input(std::string name, DType dtype, std::vector<std::int64_t> sizes)
{
    return {std::move(name), dtype, std::move(sizes), {}};
}
[[nodiscard]] inline TensorDecl output(std::string name, DType dtype, std::vector<std::int64_t> sizes)
{
    return {std::move(name), dtype, std::move(sizes), {}};
}
[[nodiscard]] inline StateDecl state(std::string name, const MemoryRef& memory, DType dtype = DType::u8,
                                     std::vector<std::int64_t> sizes = {})
{
    return {std::move(name), memory, Access::read_write, dtype, std::move(sizes), {}};
}
[[nodiscard]] inline StateDecl weights(std::string name, const MemoryRef& memory, DType dtype = DType::u8,
                                       std::vector<std::int64_t> sizes = {})
{
    return {std::move(name), memory, Access::read_only, dtype, std::move(sizes), {}};
}
[[nodiscard]] inline ConstantDecl constant(std::string name, const MemoryRef& memory = {})
{
    return {std::move(name), memory};
}
[[nodiscard]] inline ScalarDecl scalar(std::string name, DType dtype) { return {std::move(name), dtype, std::nullopt}; }
[[nodiscard]] inline ScalarDecl scalar(std::string name, DType dtype, double low, double high)
{
    return {std::move(name), dtype, std::pair{low, high}};
}

/// A dimension of an input or output that is padded, and the value that fills it.
struct PaddedDimension {
    std::string argument;
    std::size_t dimension = 0; ///< 0: the outermost
    double value = 0;          ///< the argument's type must be able to hold it
};

enum class BucketRule : std::uint8_t {
    fixed,  ///< sizes are not padded: each size is a variant
    given,  ///< sizes are padded to the smallest of Buckets::sizes that holds them
    learnt, ///< sizes are padded to buckets that were learnt from the shape profile; the first start has no buckets yet
};

/// Dimensions that have one common size in each call (the tokens of a prompt, and their mask), and the sizes that they
/// are padded to. Fewer sizes make fewer variants. The function sees the padded sizes, in memory of the library.
/// Results that it computes from the padding must not reach the real part, so give the function the real size as a
/// scalar. The caller gets the real part of outputs. If no bucket holds the size of a call, the function runs as it is
/// and is not recorded. docs/profile.md.
struct Buckets {
    /// All these dimensions must have the same size in a call; messages name the first one. An argument may have at
    /// most two padded dimensions.
    std::vector<PaddedDimension> dimensions{};
    BucketRule rule = BucketRule::fixed;
    std::vector<std::int64_t> sizes{}; ///< for `given`: ascending, multiples of multiple_of
    std::uint32_t most = 8;            ///< for `learnt`: the most buckets, up to 256
    std::int64_t multiple_of = 1;      ///< every size is padded to a multiple of this, with or without a bucket
};

enum class Policy : std::uint8_t {
    read_write,  ///< replays a hit and records a miss (default)
    read_only,   ///< replays a hit and runs a miss as it is
    refresh,     ///< records again and replaces the entry; if the graphs differ in more than scratch, none is used
    off,         ///< looks for no entry and records nothing
    require_hit, ///< throws miss_forbidden where something would be recorded
    no_compile,  ///< does the same as read_write, and throws miss_forbidden where a program would have to be compiled
};

// The braces keep -Wmissing-field-initializers quiet where a user names only some members.
struct Spec {
    std::vector<TensorDecl> inputs{};
    std::vector<TensorDecl> outputs{};
    std::vector<StateDecl> states{};
    std::vector<ScalarDecl> scalars{}; ///< numbers that are patched into the graph at every call
    std::vector<ScalarDecl>
        values{}; ///< host values that the function specialises on: each value is a guard and has a variant of its own
    std::vector<Program> code{}; ///< programs whose source and options become guards
    /// Tuned kernels whose configurations `code` was built with. Each configuration is a guard. Before the callable
    /// first runs, a stored configuration is validated against the default (Tuned::validate); a call that replays does
    /// not need that.
    std::vector<Tuned> tuned{};
    std::map<std::string, std::string> config{}; ///< further guards of this function
    std::vector<std::string> environment{};      ///< names of environment variables that become guards
    /// Identifies the code. Empty: the build id of the calling binary identifies it. Cache::load and Cache::adopt see
    /// no code, so they need a version.
    std::string version{};
    std::optional<Policy> policy{}; ///< used instead of the cache's policy
    /// Events that the graph shares with work outside it, by name: the driver's handles (CUevent), which must outlive
    /// the function. A restored graph makes an event of its own for each other name.
    std::map<std::string, void*> events{};
    /// External semaphores that the graph signals or waits for, by name: the driver's handles (CUexternalSemaphore),
    /// which must outlive the function. A signal's value may be a constant or follow a scalar. Trial runs on copies
    /// leave the semaphores out, because another program would take a signal for real results. The first call that
    /// misses only runs the function. It cannot wait for the work that it enqueued, because that work may wait for
    /// another program. A later call records the function, once that work is done.
    std::map<std::string, void*> semaphores{};
    /// Module variables (`__device__`, `__constant__`) that stay as they are while the function is in use, so that the
    /// entry may store their contents. "*": all. A variable that is not listed makes the recording fail if its contents
    /// differ from those in the module's image, or if the program asked for its address (`cudaMemcpyToSymbol` does).
    std::vector<std::string> frozen_variables{};
    /// Inputs, outputs, states and constants that hold no addresses, although some of their words may look like one.
    /// Recording searches the others for addresses, because no replay could follow an address there. It does not search
    /// floating-point tensors.
    std::vector<std::string> no_addresses{};
    /// Refuses uninitialised words in kernel parameters: in a recording, words that were never written; in an adopted
    /// graph, words that differ between the captures for no known reason. Otherwise they are stored as zeros, and the
    /// function is refused only if its results depend on them.
    bool strict = false;
    std::vector<ConstantDecl> constants{};
    std::uint64_t max_constant_bytes = 64ULL << 20U; ///< limit for all constants together; else nothing is recorded
    Undeclared undeclared = Undeclared::refuse;
    /// Groups of dimensions that are padded. A dimension of an argument is in one group at most.
    std::vector<Buckets> buckets{};
    /// For Cache::load in a process without the code: the facts by which the entry identifies its code (`code.` and
    /// `program.`, by their full names), from StoredEntry::spec. They replace `version` and `code`. A wrong fact makes
    /// a miss.
    std::map<std::string, std::string> recorded_code{};
    /// A text that recorded and adopted entries carry, for processes that list them (Cache::entries). It is not a
    /// guard.
    std::string metadata{};
};

} // namespace warmgraph
