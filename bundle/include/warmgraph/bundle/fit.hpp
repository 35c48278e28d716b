// Decides whether an entry would be used on this machine, from its guards alone. Reads and extracts nothing.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "warmgraph/bundle/bundle.hpp"
#include "warmgraph/guards/evaluate.hpp"

namespace warmgraph::bundle {

enum class Verdict : std::uint8_t {
    fits,
    fits_after, ///< fits once the user accepts `after`, or a newer `field`
    does_not,   ///< does not fit because of `field`
};

struct Fit {
    Verdict verdict = Verdict::fits;
    std::string field{};  ///< the first fact that differs: "device.architecture"
    std::string detail{}; ///< "sm_80 recorded, sm_90 now", and what to do
    std::string after{};  ///< for fits_after: the option to accept, when it is not a newer `field`
};

/// This machine's facts. Other recorded facts are not compared: only a call knows its inputs, and a program its code.
using Here = std::vector<cachefmt::Fact>;

/// `here` is canonical (guards::canonicalize).
[[nodiscard]] Fit judge(const cachefmt::Guards& recorded, const Here& here, const guards::Relaxation& relaxation = {});

/// "fits", "fits after accept_newer_driver", "does not, because device.architecture"
[[nodiscard]] std::string to_text(const Fit& fit);

/// The facts of guards/environment.hpp that are equal in all `entries`: the bundle's environment.
[[nodiscard]] std::vector<cachefmt::Fact> shared_environment(const std::vector<cachefmt::EntryHeader>& entries);
/// The entries' guards::environment_key if all have the same one; else "".
[[nodiscard]] std::string common_environment_key(const std::vector<cachefmt::EntryHeader>& entries);
/// "backend opencl, driver.version 3.1"; "" for none.
[[nodiscard]] std::string environment_text(const std::vector<cachefmt::Fact>& facts);

/// The device that an entry was recorded on: "opencl:0".
[[nodiscard]] std::string device_of(const cachefmt::Guards& guards);

} // namespace warmgraph::bundle
