#include "warmgraph/ranks/launcher.hpp"

#include <array>
#include <charconv>

#include "warmgraph/base/printable.hpp"

namespace warmgraph::ranks {

namespace {

struct Launcher {
    const char* name;
    const char* world_size;
    const char* global_rank;
};

constexpr std::array k_launchers{
    Launcher{"torchrun", "WORLD_SIZE", "RANK"},
    Launcher{"OpenMPI", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK"},
    Launcher{"Slurm", "SLURM_NTASKS", "SLURM_PROCID"},
};

/// A number and its source, which messages name.
struct Setting {
    std::string source;
    int value = 0;
};

Result<Setting> parse(const char* variable, const std::string& text)
{
    int value = -1;
    const char* end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data(), end, value);
    if (error != std::errc{} || stop != end || value < 0)
        return fail(ErrorCode::invalid_argument,
                    "{} is '{}', expected a number from 0 to 2147483647: correct or unset it", variable,
                    printable(text));
    return Setting{variable, value};
}

/// Returns the argument if given, else the launcher's variable, else nullopt.
Result<std::optional<Setting>> choose(const char* argument, const std::optional<int>& given, const char* variable,
                                      const std::optional<std::string>& text)
{
    if (given) return Setting{argument, *given};
    if (!text) return std::optional<Setting>{};
    return parse(variable, *text);
}

Result<void> check_not_negative(const char* argument, const std::optional<int>& given)
{
    if (given && *given < 0) return fail(ErrorCode::invalid_argument, "{} is {}, expected 0 or more", argument, *given);
    return {};
}

} // namespace

Result<Rank> resolve_rank(const RankOptions& options, const Lookup& environment)
{
    for (const auto& [argument, given] :
         {std::pair{"world_size", options.world_size}, std::pair{"global_rank", options.global_rank},
          std::pair{"tp_rank", options.tp_rank}, std::pair{"pp_rank", options.pp_rank}})
        if (Result<void> good = check_not_negative(argument, given); !good) return std::unexpected(good.error());

    Rank rank{.tp_rank = options.tp_rank, .pp_rank = options.pp_rank};
    Launcher launcher = k_launchers.front();
    std::optional<std::string> world_text, rank_text;
    if (!options.world_size || !options.global_rank) {
        for (const Launcher& candidate : k_launchers) {
            world_text = environment(candidate.world_size);
            rank_text = environment(candidate.global_rank);
            if (!world_text && !rank_text) continue;
            launcher = candidate;
            break;
        }
    }

    const auto world = choose("world_size", options.world_size, launcher.world_size, world_text);
    if (!world) return std::unexpected(world.error());
    const auto global = choose("global_rank", options.global_rank, launcher.global_rank, rank_text);
    if (!global) return std::unexpected(global.error());
    if (!*world && !*global) return rank;
    if (!*world || !*global)
        return fail(ErrorCode::invalid_argument,
                    "{} is {}, but no {} is given: give both or neither, as arguments or as {} and {}",
                    (*world ? **world : **global).source, (*world ? **world : **global).value,
                    *world ? "rank" : "world size", launcher.world_size, launcher.global_rank);
    if ((*global)->value >= (*world)->value)
        return fail(ErrorCode::invalid_argument, "{} is {}, expected less than {}, which is {}", (*global)->source,
                    (*global)->value, (*world)->source, (*world)->value);
    rank.world_size = (*world)->value;
    rank.global_rank = (*global)->value;
    return rank;
}

} // namespace warmgraph::ranks
