// Guards: data in, every mismatch out. Pure: no driver call, no file, no clock.
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

/// The device of a tensor in page-locked host memory, in its guards: copies differ, so it is another variant.
inline constexpr const char* k_host_memory = "host";

/// How strictly versions are compared.
enum class VersionRule { exact, same_or_newer };

struct Relaxation {
    VersionRule driver = VersionRule::exact; ///< facts "driver.version" and "runtime.version"
};

struct Mismatch {
    std::string fact;     ///< "driver.version", "input token: dtype"
    std::string recorded; ///< "(absent)" where there was none, "unknown" where the probe failed
    std::string now;
    std::string cure; ///< may be empty
    bool operator==(const Mismatch&) const = default;
};

/// Every must_match and identity fact, tensor property and value that differs; empty means that the entry is valid
/// here. Advisory facts never count. Order: facts by name, then tensors, then values.
[[nodiscard]] std::vector<Mismatch> evaluate(const Guards& recorded, const Guards& now,
                                             const Relaxation& relaxation = {});

/// The same of facts alone.
[[nodiscard]] std::vector<Mismatch> evaluate_facts(const std::vector<Fact>& recorded, const std::vector<Fact>& now,
                                                   const Relaxation& relaxation = {});

/// Of the facts that a device tells, those that an entry has otherwise: the rest is the functions' own. `here` is
/// canonical.
[[nodiscard]] std::vector<Mismatch> device_mismatches(const Guards& recorded, const std::vector<Fact>& here,
                                                      const Relaxation& relaxation);

/// How many things evaluate() compares between these two (for "everything else (31 facts) agrees").
[[nodiscard]] std::size_t compared_count(const Guards& recorded, const Guards& now);

/// One line for logs: "driver.version 580.159.04 recorded, 580.126.20 now; and 2 more".
[[nodiscard]] std::string summarize(const std::vector<Mismatch>& mismatches);

/// Versions compare by their numeric components, left to right; true when now >= recorded.
[[nodiscard]] bool same_or_newer(const std::string& recorded, const std::string& now);

/// Sorts by name; a duplicated name keeps the last value. Gives the canonical form that Guards requires.
void canonicalize(std::vector<Fact>& facts);

} // namespace warmgraph::guards
