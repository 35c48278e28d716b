// World size and rank, from arguments or from the launcher's environment.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "warmgraph/base/error.hpp"

namespace warmgraph::guards {

struct RankOptions {
    std::optional<int> world_size{}, global_rank{}, tp_rank{},
        pp_rank{}; ///< an explicit value wins over the environment
};

struct Rank {
    int world_size = 1;
    int global_rank = 0;
    std::optional<int> tp_rank{}, pp_rank{};
};

using Lookup = std::function<std::optional<std::string>(const char*)>;

/// Order: arguments; WORLD_SIZE and RANK (torchrun); OMPI_COMM_WORLD_SIZE/_RANK (OpenMPI); SLURM_NTASKS/SLURM_PROCID;
/// else 0 of 1. invalid_argument when a value is no number, negative, or the rank is not below the world size, or
/// only one of a pair is given.
[[nodiscard]] Result<Rank> resolve_rank(const RankOptions& options, const Lookup& environment);

/// "world8global_rank3", then "_tp_rank1" and "_pp_rank0" where given.
[[nodiscard]] std::string folder_name(const Rank& rank);

} // namespace warmgraph::guards
