// Decides whether an entry would be used on this machine, from its guards alone. Reads no member and extracts nothing.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "warmgraph/bundle/bundle.hpp"
#include "warmgraph/guards/evaluate.hpp"

namespace warmgraph::bundle {

enum class Verdict : std::uint8_t {
    fits,
    fits_after, ///< fits if the user accepts the option `after`, or a newer `field`
    does_not,   ///< does not fit, because `field` differs
};

struct Compatibility {
    Verdict verdict = Verdict::fits;
    std::string field{};  ///< the first fact that differs: "device.architecture"
    std::string detail{}; ///< both values and the cure: "sm_80 recorded, sm_90 now"
    std::string after{};  ///< for fits_after: the option that the user must accept; empty: a newer `field`
};

/// This machine's facts. Other recorded facts are not compared, because only a call knows its inputs, and only a
/// program knows its code.
using MachineFacts = std::vector<cachefmt::Fact>;

/// Judges an entry by its guards. `here` must be canonical (guards::canonicalize).
[[nodiscard]] Compatibility judge(const cachefmt::Guards& recorded, const MachineFacts& here,
                                  const guards::Relaxation& relaxation = {});

/// Returns a text such as "fits", "fits after accept_newer_driver" or "does not, because device.architecture".
[[nodiscard]] std::string to_text(const Compatibility& fit);

/// Returns the bundle's environment: the facts of guards/environment.hpp that are equal in all `entries`.
[[nodiscard]] std::vector<cachefmt::Fact> shared_environment(const std::vector<cachefmt::EntryHeader>& entries);
/// Returns the guards::environment_key of the entries if it is the same for all; otherwise "".
[[nodiscard]] std::string common_environment_key(const std::vector<cachefmt::EntryHeader>& entries);
/// Returns a text such as "backend opencl, driver.version 3.1"; "" if there are no facts.
[[nodiscard]] std::string environment_text(const std::vector<cachefmt::Fact>& facts);

/// Returns the device on which an entry was recorded, such as "opencl:0".
[[nodiscard]] std::string device_of(const cachefmt::Guards& guards);

} // namespace warmgraph::bundle
