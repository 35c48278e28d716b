// Compares the facts of this machine with recorded ones: the core of `explain`.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "warmgraph/guards/evaluate.hpp"
#include "warmgraph/store/local_store.hpp"

namespace warmgraph::tool {

/// The recorded entry that is nearest to some facts (the fewest mismatches).
struct Comparison {
    Digest variant;
    std::vector<guards::Mismatch> mismatches;
    std::size_t compared = 0;
    std::optional<cachefmt::EntryInfo> tombstone; ///< set when the variant is a tombstone
};

/// The device and environment facts that this command can find without a call: the facts of the entries' device (all
/// unknown when the device cannot be opened; `problem` says why), and each recorded "env." fact.
struct LocalFacts {
    std::vector<cachefmt::Fact> facts;
    std::string problem;
    std::map<std::string, std::string> build_ids{}; ///< build ids of the entries' binaries, by path
    std::vector<std::string> missing_binaries{};    ///< binaries that do not exist here or have no build id
};
[[nodiscard]] LocalFacts gather_local_facts(const std::vector<cachefmt::EntryHeader>& recorded);

/// Compares only the facts in `local`, and recorded device facts that are missing there.
[[nodiscard]] Comparison nearest_here(const std::vector<cachefmt::EntryHeader>& recorded, const LocalFacts& local,
                                      const guards::Relaxation& relaxation);

/// Compares all guards of a call. REQUIRES: `recorded` is not empty, here and above.
[[nodiscard]] Comparison nearest(const std::vector<cachefmt::EntryHeader>& recorded, const cachefmt::Guards& now,
                                 const guards::Relaxation& relaxation);

} // namespace warmgraph::tool
