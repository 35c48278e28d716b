// Padding of calls by Spec::buckets: chooses the padded sizes of a call, and pads its arguments.
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

/// Checks Spec::buckets. invalid_argument: an argument or dimension does not exist or is listed twice, a value does not
/// fit its type, or sizes are not buckets.
[[nodiscard]] Result<void> check_buckets(const Spec& spec, const Interface& interface);

/// The padded sizes of a call's groups.
struct PaddedSizes {
    std::vector<std::int64_t> sizes; ///< one size for each group
    std::string outside{};           ///< why a size is in no bucket; empty: each size is in a bucket
};

/// Used under the function's lock, except const functions.
class Padding {
public:
    struct Group {
        BucketRule rule = BucketRule::fixed;
        profile::BucketRequest wish;
        std::vector<std::size_t> regions{};  ///< indices of the regions in wish.dimensions
        std::vector<std::int64_t> buckets{}; ///< the given buckets, or the buckets learnt so far
    };

    /// REQUIRES: check_buckets() succeeds. `interface` and `device` must outlive this object.
    Padding(const Spec& spec, const Interface& interface, backends::Device& device);
    Padding(const Padding&) = delete;
    Padding& operator=(const Padding&) = delete;
    ~Padding();

    [[nodiscard]] std::vector<Group>& groups() noexcept { return m_groups; }
    [[nodiscard]] const std::vector<Group>& groups() const noexcept { return m_groups; }
    [[nodiscard]] bool learns() const noexcept;
    /// Call this if there is no profile: if buckets would be learnt, sizes are then only rounded up to the rule's
    /// multiple.
    void stop_learning() noexcept;

    /// Returns the padded sizes for a call. invalid_argument: a tensor of the call lacks a dimension, sizes in one
    /// group differ, or a size is impossible.
    [[nodiscard]] Result<PaddedSizes> choose(const Frame& frame) const;
    /// Returns the padded sizes for a shape from the profile; nullopt if no call can have this shape now.
    [[nodiscard]] std::optional<PaddedSizes> choose(const profile::Sizes& sizes) const;
    /// Changes `sizes` of one argument to the padded sizes, which the function sees.
    void apply(const PaddedSizes& padded, std::size_t region, std::span<std::int64_t> sizes) const;
    [[nodiscard]] profile::Sizes applied(const PaddedSizes& padded, const profile::Sizes& sizes) const;
    [[nodiscard]] const std::vector<std::size_t>& regions() const noexcept { return m_regions; } ///< the padded regions

    /// Copies padded arguments to larger memory of this object, in the stream's order, and puts that memory in `frame`.
    /// invalid_argument: a tensor is not contiguous, has another type than declared, or shares memory with a written
    /// tensor.
    [[nodiscard]] Result<void> pad(Frame& frame, const PaddedSizes& padded, backends::Stream& stream);
    /// Copies the real part of outputs to the call's own memory.
    [[nodiscard]] Result<void> give_back(backends::Stream& stream);

private:
    struct PaddedRegion {
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
    std::vector<std::size_t> m_regions;        ///< indices of the padded regions, without duplicates
    std::map<std::size_t, Bytes> m_values;     ///< by region: the value of one padding element
    std::map<std::size_t, MemoryRef> m_memory; ///< by region: the memory that padded arguments use now
    std::vector<MemoryRef> m_outgrown;         ///< smaller memory that earlier calls may still use
    std::vector<PaddedRegion> m_saved;         ///< padded arguments of the current call
};

} // namespace warmgraph
