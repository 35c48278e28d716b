// World size and rank, from arguments or from the launcher's environment.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "warmgraph/base/error.hpp"
#include "warmgraph/cachefmt/key.hpp"

namespace warmgraph::ranks {

struct RankOptions {
    std::optional<int> world_size{}, global_rank{}, tp_rank{},
        pp_rank{}; ///< an explicit value wins over the environment
};

using cachefmt::Rank;

using Lookup = std::function<std::optional<std::string>(const char*)>;

/// Sources in order: arguments; WORLD_SIZE and RANK (torchrun); OMPI_COMM_WORLD_SIZE and _RANK (OpenMPI); SLURM_NTASKS
/// and SLURM_PROCID; else rank 0 of 1. invalid_argument: a value is not a number or is negative, the rank is not below
/// the world size, or only one of a pair is given.
[[nodiscard]] Result<Rank> resolve_rank(const RankOptions& options, const Lookup& environment);

} // namespace warmgraph::ranks
