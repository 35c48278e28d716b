#include <map>

#include "expect_error.hpp"
#include "warmgraph/ranks/launcher.hpp"

namespace warmgraph::ranks::launcher_test {
namespace {

Lookup environment(std::map<std::string, std::string> variables)
{
    return [variables = std::move(variables)](const char* name) -> std::optional<std::string> {
        const auto found = variables.find(name);
        return found == variables.end() ? std::nullopt : std::optional(found->second);
    };
}

void expect_rank(const RankOptions& options, const Lookup& lookup, int global_rank, int world_size)
{
    const Result<Rank> rank = resolve_rank(options, lookup);
    ASSERT_TRUE(rank) << rank.error().message;
    EXPECT_EQ(rank->global_rank, global_rank);
    EXPECT_EQ(rank->world_size, world_size);
}

const std::map<std::string, std::string> k_torchrun{{"WORLD_SIZE", "8"}, {"RANK", "3"}};
const std::map<std::string, std::string> k_openmpi{{"OMPI_COMM_WORLD_SIZE", "4"}, {"OMPI_COMM_WORLD_RANK", "2"}};
const std::map<std::string, std::string> k_slurm{{"SLURM_NTASKS", "16"}, {"SLURM_PROCID", "15"}};

TEST(ResolveRank, IsZeroOfOneByDefault) { expect_rank({}, environment({}), 0, 1); }

TEST(ResolveRank, ReadsEachLauncher)
{
    expect_rank({}, environment(k_torchrun), 3, 8);
    expect_rank({}, environment(k_openmpi), 2, 4);
    expect_rank({}, environment(k_slurm), 15, 16);
}

TEST(ResolveRank, PrefersArgumentsThenTorchrunThenOpenMpiThenSlurm)
{
    auto all = k_slurm;
    all.insert(k_openmpi.begin(), k_openmpi.end());
    expect_rank({}, environment(all), 2, 4);
    all.insert(k_torchrun.begin(), k_torchrun.end());
    expect_rank({}, environment(all), 3, 8);
    expect_rank({.world_size = 2, .global_rank = 1}, environment(all), 1, 2);
}

TEST(ResolveRank, LetsOneArgumentReplaceOneVariable)
{
    expect_rank({.global_rank = 7}, environment(k_torchrun), 7, 8);
    expect_rank({.world_size = 4}, environment(k_torchrun), 3, 4);
}

TEST(ResolveRank, DoesNotReadVariablesThatArgumentsReplace)
{
    expect_rank({.world_size = 2, .global_rank = 0}, environment({{"WORLD_SIZE", "many"}, {"RANK", "-1"}}), 0, 2);
}

TEST(ResolveRank, RefusesBadValuesAndNamesThem)
{
    const std::vector<std::pair<std::map<std::string, std::string>, std::string>> rows{
        {{{"WORLD_SIZE", "eight"}, {"RANK", "0"}}, "WORLD_SIZE is 'eight'"},
        {{{"WORLD_SIZE", "8"}, {"RANK", "-1"}}, "RANK is '-1'"},
        {{{"WORLD_SIZE", "8"}, {"RANK", ""}}, "RANK is ''"},
        {{{"WORLD_SIZE", "8"}, {"RANK", "3 "}}, "RANK is '3 '"},
        {{{"WORLD_SIZE", "8"}, {"RANK", "0x1"}}, "RANK is '0x1'"},
        {{{"WORLD_SIZE", "99999999999"}, {"RANK", "1"}}, "WORLD_SIZE is '99999999999'"},
        {{{"WORLD_SIZE", "8"}, {"RANK", "8"}}, "RANK is 8, expected less than WORLD_SIZE, which is 8"},
        {{{"WORLD_SIZE", "0"}, {"RANK", "0"}}, "RANK is 0, expected less than WORLD_SIZE"},
        {{{"WORLD_SIZE", "8"}}, "WORLD_SIZE is 8, but no rank is given"},
        {{{"SLURM_PROCID", "1"}}, "SLURM_PROCID is 1, but no world size is given"},
        {{{"OMPI_COMM_WORLD_SIZE", "2"}, {"OMPI_COMM_WORLD_RANK", "5"}}, "OMPI_COMM_WORLD_RANK is 5"},
    };
    for (const auto& [variables, message] : rows) {
        const Result<Rank> rank = resolve_rank({}, environment(variables));
        EXPECT_TRUE(failed_with(rank, ErrorCode::invalid_argument, message)) << message;
    }
}

TEST(ResolveRank, RefusesBadArguments)
{
    for (const auto& [options, message] :
         {std::pair{RankOptions{.world_size = -1, .global_rank = 0}, "world_size is -1"},
          std::pair{RankOptions{.world_size = 2, .global_rank = 2}, "global_rank is 2, expected less than world_size"},
          std::pair{RankOptions{.global_rank = 1}, "global_rank is 1, but no world size is given"},
          std::pair{RankOptions{.tp_rank = -2}, "tp_rank is -2"},
          std::pair{RankOptions{.pp_rank = -1}, "pp_rank is -1"}}) {
        const Result<Rank> rank = resolve_rank(options, environment({}));
        EXPECT_TRUE(failed_with(rank, ErrorCode::invalid_argument, message)) << message;
    }
}

TEST(RankFolder, IsNamedByWorldAndRanks)
{
    EXPECT_EQ(cachefmt::folder_name({}), "world1global_rank0");
    EXPECT_EQ(cachefmt::folder_name({.world_size = 8, .global_rank = 3, .tp_rank = 1, .pp_rank = 0}),
              "world8global_rank3_tp_rank1_pp_rank0");
    EXPECT_EQ(cachefmt::folder_name({.world_size = 8, .global_rank = 3, .pp_rank = 2}), "world8global_rank3_pp_rank2");
}

} // namespace
} // namespace warmgraph::ranks::launcher_test
