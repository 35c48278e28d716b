// What a function declares: its inputs, outputs, states and scalars, and what else its entries depend on.
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
        strides{}; ///< elements, one for each size; empty: contiguous. A call's Tensor has its own
};

/// Memory of the caller's that lives across calls: a KV cache (read_write) or weights (read_only). The type decides how
/// what is written there is compared: as bytes it must be the same to the bit, floats may differ as much as the
/// function's own runs do.
struct StateDecl {
    std::string name;
    MemoryRef memory; ///< may be moved later with Function::bind. At any address where the device allows it (CUDA)
    Access access = Access::read_write;
    DType dtype = DType::u8;
    std::vector<std::int64_t> sizes{};   ///< elements; empty: as many in one dimension as the memory holds
    std::vector<std::int64_t> strides{}; ///< elements, one for each size; empty: contiguous
};

/// Memory of the caller's whose *contents* the entry carries: a rope table, a mask, scales. The function only reads it.
/// A process that restores the entry gets a copy of its own, once for all functions with the same contents, and needs
/// none to begin with. Where a process has the memory, its contents must be those of the recording: else the function
/// runs as it is. No guard, so what they depend on belongs in Spec::config.
struct ConstantDecl {
    std::string name;
    MemoryRef memory{}; ///< null where entries are only loaded
};

/// What a function's work reads and nobody declared: allocations of libraries (cuFFT's tables); of an adopted graph
/// also scratch that it did not write itself.
enum class Undeclared : std::uint8_t {
    refuse,
    constants, ///< kept as constants, where the graph only reads them and they hold no addresses
};

struct ScalarDecl {
    std::string name;
    DType dtype = DType::i32; ///< i32, u32, i64, u64, f32 or f64
    /// The values it may take (inclusive); a call outside is an error. Recording captures the function at several of
    /// them to prove where the scalar goes, and runs it at one. Without a range it is captured over the whole type, and
    /// run at the call's value alone: so declare the handle of a texture, a u64, whose neighbours are nobody's.
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

/// A dimension of an input or output that is padded, and what with.
struct PaddedDimension {
    std::string argument;
    std::size_t dimension = 0; ///< 0: the outermost
    double value = 0;          ///< the argument's type must be able to hold it
};

enum class BucketRule : std::uint8_t {
    fixed,  ///< sizes as they come: each is a variant
    given,  ///< padded to the smallest of Buckets::sizes that holds them
    learnt, ///< likewise, to buckets that were learnt from the shape profile: none yet in the first start
};

/// Dimensions that have one size in each call (the tokens of a prompt, and their mask), and what they are padded to: fewer
/// sizes are fewer variants. The function sees the padded sizes, in memory of the library's own; what it computes there must
/// not reach the rest, so give it the real size as a scalar. Of outputs the real part comes back. A call whose size no bucket
/// holds is not recorded: the function runs as it is. docs/profile.md.
struct Buckets {
    std::vector<PaddedDimension> dimensions{}; ///< the first one's size is the group's; at most two of one argument
    BucketRule rule = BucketRule::fixed;
    std::vector<std::int64_t> sizes{}; ///< given: ascending, multiples of multiple_of
    std::uint32_t most = 8;            ///< learnt: at most so many, up to 256
    std::int64_t multiple_of = 1;      ///< what the function needs: every size is padded to one, also in no bucket
};

enum class Policy : std::uint8_t {
    read_write,  ///< replay a hit, record a miss (default)
    read_only,   ///< replay a hit, run a miss as it is
    refresh,     ///< record anew and replace; a different graph under the same guards is tombstoned
    off,         ///< never look, never record
    require_hit, ///< throw miss_forbidden where anything would be recorded
    no_compile,  ///< as read_write, and throw miss_forbidden where a program would have to be compiled
};

// The braces keep -Wmissing-field-initializers quiet where a user names only some members.
struct Spec {
    std::vector<TensorDecl> inputs{};
    std::vector<TensorDecl> outputs{};
    std::vector<StateDecl> states{};
    std::vector<ScalarDecl> scalars{}; ///< patched at every call
    std::vector<ScalarDecl> values{};  ///< host values that the function specialises on: guards, one variant each
    std::vector<Program> code{};       ///< their source and options become guards
    /// Kernels whose configurations `code` was built with. Each configuration is a guard, and a stored one is held to the
    /// default's results before the callable first runs (Tuned::validate); a call that replays does without.
    std::vector<Tuned> tuned{};
    std::map<std::string, std::string> config{}; ///< further guards of this function
    std::vector<std::string> environment{};      ///< environment variables that become guards
    /// Code identity given by you; empty: the build id of the calling binary. Cache::load and Cache::adopt, which see
    /// no code, need it.
    std::string version{};
    std::optional<Policy> policy{}; ///< instead of the cache's
    /// Events that the graph shares with work outside it, by name: the driver's handles (CUevent), which outlive the
    /// function. A restored graph gets an event of its own for each name that is not here.
    std::map<std::string, void*> events{};
    /// External semaphores that the graph signals or waits for, by name: the driver's handles (CUexternalSemaphore),
    /// which outlive the function. What they are signalled with may be a constant or follow a scalar. Such a function
    /// is never run on copies with its semaphores, where a signal would be taken for results: trials leave them out.
    /// The call never waits for its own work: a later call records it, when that is done.
    std::map<std::string, void*> semaphores{};
    /// Module variables (`__device__`, `__constant__`) whose contents you vouch for: nobody writes them while the
    /// function is in use, so they may be stored with the entry. "*": all. Others that differ from their image are a
    /// refusal, and so are others whose address the program asked for (`cudaMemcpyToSymbol` does).
    std::vector<std::string> frozen_variables{};
    /// Inputs, outputs, states and constants that hold no addresses, whatever some of their words look like. Recording
    /// searches those that were not declared as floating point for addresses, which no replay could follow.
    std::vector<std::string> no_addresses{};
    /// Refuse words in kernels' parameters that nobody initialised: in a recording those that nobody wrote, in an
    /// adopted graph those that differ between the captures and follow nothing. Else they are stored as zeros, and
    /// refused where the results depend on them.
    bool strict = false;
    std::vector<ConstantDecl> constants{};
    std::uint64_t max_constant_bytes = 64ULL << 20U; ///< of all constants together; more is neither recorded nor loaded
    Undeclared undeclared = Undeclared::refuse;
    /// Sizes that calls are padded to. An argument's dimension is in one of them at most.
    std::vector<Buckets> buckets{};
    /// For Cache::load in a process that has none of the code: the facts by which an entry knows its own, `code.` and
    /// `program.` by full name, from StoredEntry::spec. They replace `version` and `code`. A wrong one is a miss.
    std::map<std::string, std::string> recorded_code{};
    /// A text that recorded and adopted entries carry, for processes that list them (Cache::entries). It is not a guard.
    std::string metadata{};
};

} // namespace warmgraph
