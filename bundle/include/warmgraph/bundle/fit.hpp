// Whether an entry would be used here, asked of its guards alone: nothing of it is read or extracted.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "warmgraph/bundle/bundle.hpp"
#include "warmgraph/guards/evaluate.hpp"

namespace warmgraph::bundle {

enum class Verdict : std::uint8_t {
    fits,
    fits_after, ///< what `field` names is accepted
    does_not,   ///< because of `field`
};

struct Fit {
    Verdict verdict = Verdict::fits;
    std::string field{};  ///< the first fact that differs: "device.architecture"
    std::string detail{}; ///< "sm_80 recorded, sm_90 now", and what to do
    std::string after{};  ///< of fits_after: what is to be accepted, where it is not a newer `field`
};

/// What is known here. A fact that is in no list is not judged: only a call knows its inputs, and only the program its code.
using Here = std::vector<cachefmt::Fact>;

/// `here` is canonical (guards::canonicalize).
[[nodiscard]] Fit judge(const cachefmt::Guards& recorded, const Here& here, const guards::Relaxation& relaxation = {});

/// "fits", "fits after accept_newer_driver", "does not, because device.architecture"
[[nodiscard]] std::string to_text(const Fit& fit);

/// The facts of guards/environment.hpp that all of `entries` have with one value: the environment of a bundle.
[[nodiscard]] std::vector<cachefmt::Fact> shared_environment(const std::vector<cachefmt::EntryHeader>& entries);
/// guards::environment_key of the entries, where it is one; "" where they have several, or one has none.
[[nodiscard]] std::string common_environment_key(const std::vector<cachefmt::EntryHeader>& entries);
/// "backend opencl, driver.version 3.1"; "" for none.
[[nodiscard]] std::string environment_text(const std::vector<cachefmt::Fact>& facts);

/// The device that an entry was recorded on: "opencl:0".
[[nodiscard]] std::string device_of(const cachefmt::Guards& guards);

} // namespace warmgraph::bundle
