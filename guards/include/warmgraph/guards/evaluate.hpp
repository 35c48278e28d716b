// Compares two sets of guards and returns every mismatch between them. Pure: no driver call, no file, no clock.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "warmgraph/cachefmt/guard_data.hpp"

namespace warmgraph::guards {

using cachefmt::Fact;
using cachefmt::Guards;
using cachefmt::Role;
using cachefmt::TensorSpec;
using cachefmt::ValueSpec;

/// A tensor's device in guards if it lies in page-locked host memory. A copy from host memory is another operation, so
/// such a call needs another variant.
inline constexpr const char* k_host_memory = "host";

/// How strictly versions are compared.
enum class VersionRule { exact, same_or_newer };

struct Relaxation {
    VersionRule driver = VersionRule::exact; ///< for the facts "driver.version" and "runtime.version"
};

struct Mismatch {
    std::string fact;     ///< the fact's name, such as "driver.version" or "input token: dtype"
    std::string recorded; ///< recorded value; "(absent)" if the fact was absent, "unknown" if its probe failed
    std::string now;
    std::string cure; ///< advice for the user; may be empty
    bool operator==(const Mismatch&) const = default;
};

/// Returns every must_match and identity fact, tensor property and value that differs; empty if the entry is valid
/// here. Advisory facts never count. Order: facts by name, then tensors, then values.
[[nodiscard]] std::vector<Mismatch> evaluate(const Guards& recorded, const Guards& now,
                                             const Relaxation& relaxation = {});

/// Does the same for facts alone.
[[nodiscard]] std::vector<Mismatch> evaluate_facts(const std::vector<Fact>& recorded, const std::vector<Fact>& now,
                                                   const Relaxation& relaxation = {});

/// Returns the facts about the device that differ from the entry's facts. Other facts depend on the functions and are
/// not compared. `here` must be canonical.
[[nodiscard]] std::vector<Mismatch> device_mismatches(const Guards& recorded, const std::vector<Fact>& here,
                                                      const Relaxation& relaxation);

/// Returns how many comparisons evaluate() makes between the two Guards (for the text "everything else (31 facts)
/// agrees").
[[nodiscard]] std::size_t compared_count(const Guards& recorded, const Guards& now);

/// Returns one line for logs, such as "driver.version 580.159.04 recorded, 580.126.20 now; and 2 more".
[[nodiscard]] std::string summarize(const std::vector<Mismatch>& mismatches);

/// Compares versions by their numeric components, left to right. Returns true if `now` is at least `recorded`.
[[nodiscard]] bool same_or_newer(const std::string& recorded, const std::string& now);

/// Sorts by name; of facts with the same name, the last one stays. This is the canonical form that Guards requires.
void canonicalize(std::vector<Fact>& facts);

} // namespace warmgraph::guards
