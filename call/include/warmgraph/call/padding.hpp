// Spec::buckets of one function: what a call's sizes are padded to, and the padding itself.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "warmgraph/backends/device.hpp"
#include "warmgraph/capture/interface.hpp"
#include "warmgraph/profile/buckets.hpp"
#include "warmgraph/warmgraph.hpp"

namespace warmgraph {

/// invalid_argument: an argument or dimension that there is not, or is there twice, a value that the type cannot hold, sizes
/// that are no buckets.
[[nodiscard]] Result<void> check_buckets(const Spec& spec, const Interface& interface);

/// What the groups of a call are padded to.
struct PaddedSizes {
    std::vector<std::int64_t> sizes; ///< of each group
    std::string outside{};           ///< why a size is in no bucket; empty: all are
};

/// Under the function's lock, but for what is const.
class Padding {
public:
    struct Group {
        BucketRule rule = BucketRule::fixed;
        profile::Wish wish;
        std::vector<std::size_t> regions{};  ///< of wish.dimensions
        std::vector<std::int64_t> buckets{}; ///< given, or learnt so far
    };

    /// REQUIRES: check_buckets() holds. `interface` and `device` outlive it.
    Padding(const Spec& spec, const Interface& interface, backends::Device& device);
    Padding(const Padding&) = delete;
    Padding& operator=(const Padding&) = delete;
    ~Padding();

    [[nodiscard]] std::vector<Group>& groups() noexcept { return m_groups; }
    [[nodiscard]] const std::vector<Group>& groups() const noexcept { return m_groups; }
    [[nodiscard]] bool learns() const noexcept;
    /// There is no profile: sizes that were to be learnt are taken as they come.
    void learn_nothing() noexcept;

    /// invalid_argument: a dimension that the call's tensor lacks, other sizes within one group, sizes that cannot be.
    [[nodiscard]] Result<PaddedSizes> choose(const Frame& frame) const;
    /// The same for a shape of the profile; nullopt where it is of no call that could be made now.
    [[nodiscard]] std::optional<PaddedSizes> choose(const profile::Sizes& sizes) const;
    /// `sizes` of one argument as the function sees them.
    void apply(const PaddedSizes& padded, std::size_t region, std::span<std::int64_t> sizes) const;
    [[nodiscard]] profile::Sizes applied(const PaddedSizes& padded, const profile::Sizes& sizes) const;
    [[nodiscard]] const std::vector<std::size_t>& regions() const noexcept { return m_regions; } ///< that are padded

    /// Copies what is padded to memory of its own, of the padded sizes, in the stream's order; `frame` has that then.
    /// invalid_argument: a tensor that is not contiguous, of another type than declared, or that shares memory with one
    /// that is written.
    [[nodiscard]] Result<void> pad(Frame& frame, const PaddedSizes& padded, backends::Stream& stream);
    /// Copies the real part of outputs to where the call wants it.
    [[nodiscard]] Result<void> give_back(backends::Stream& stream);

private:
    struct Saved {
        std::size_t region;
        guards::TensorArg given, padded;
        MemoryRef from, own;
    };
    [[nodiscard]] Result<std::int64_t> target(const Group& group, std::int64_t size, std::string& outside) const;
    [[nodiscard]] Result<void> check(const Frame& frame) const;
    [[nodiscard]] Result<MemoryRef> memory_for(std::size_t region, std::uint64_t bytes);
    [[nodiscard]] Result<void> pad_one(std::size_t region, Frame& frame, const PaddedSizes& padded,
                                       backends::Stream& stream);

    const Interface& m_interface;
    backends::Device& m_device;
    std::vector<Group> m_groups;
    std::vector<std::size_t> m_regions;        ///< each once
    std::map<std::size_t, Bytes> m_values;     ///< one element, by region
    std::map<std::size_t, MemoryRef> m_memory; ///< by region: what is in use
    std::vector<MemoryRef> m_outgrown;         ///< earlier calls may still use it
    std::vector<Saved> m_saved;                ///< of the call that goes on
};

} // namespace warmgraph
