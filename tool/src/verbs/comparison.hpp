// What a process would find here, against what was recorded: the heart of `explain`.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "warmgraph/guards/evaluate.hpp"
#include "warmgraph/store/local_store.hpp"

namespace warmgraph::tool {

/// A recorded entry that is nearest to some facts: the fewest mismatches.
struct Comparison {
    Digest variant;
    std::vector<guards::Mismatch> mismatches;
    std::size_t compared = 0;
    std::optional<cachefmt::EntryInfo> tombstone; ///< the variant is one
};

/// The device and environment facts that this command can find out by itself: those of the device that the entries
/// name (all unknown where it cannot be opened, with `problem` saying why), and each recorded "env." fact.
struct LocalFacts {
    std::vector<cachefmt::Fact> facts;
    std::string problem;
    std::map<std::string, std::string> build_ids{}; ///< of the binaries that entries name, by path
    std::vector<std::string> missing_binaries{};    ///< those that are not here, or have none
};
[[nodiscard]] LocalFacts gather_local_facts(const std::vector<cachefmt::EntryHeader>& recorded);

/// Only the facts named in `local` (and recorded device facts that are absent there) are compared.
[[nodiscard]] Comparison nearest_here(const std::vector<cachefmt::EntryHeader>& recorded, const LocalFacts& local,
                                      const guards::Relaxation& relaxation);

/// All guards of a call. REQUIRES: `recorded` is not empty, here and above.
[[nodiscard]] Comparison nearest(const std::vector<cachefmt::EntryHeader>& recorded, const cachefmt::Guards& now,
                                 const guards::Relaxation& relaxation);

} // namespace warmgraph::tool
