// Reads .best_config and .module_configs files, which any process or user may have written, and decides whether to use
// them. Also makes the text of kernels, which is a part of a key.
#include "fuzz.hpp"
#include "sample_best_config.hpp"
#include "warmgraph/autotune/code_text.hpp"
#include "warmgraph/autotune/judge.hpp"

namespace {

using namespace warmgraph;

/// Expects that a configuration which may be used is exactly one of the candidates, or that ranges were asked for and
/// it is within them.
void check_judged(const autotune::BestConfig& best)
{
    autotune::ConfigRequest wanted{
        best.kernel, best.key, {autotune::test::sample_candidates(), {{"LANES", {1, 2, 4}}}}};
    wanted.driver = best.driver;
    for (const auto search : {autotune::SearchMethod::enumerate, autotune::SearchMethod::coordinate_descent}) {
        wanted.search = search;
        const auto judged = autotune::judge(best, wanted);
        if (judged.use == autotune::WinnerVerdict::Use::none) {
            fuzz::require(!judged.why_not.empty(), "a miss says why");
            continue;
        }
        const bool is_descended = best.found_by == autotune::FoundBy::coordinate_descent;
        fuzz::require(is_descended ? search == autotune::SearchMethod::coordinate_descent &&
                                         autotune::why_outside(wanted.space, best.config).empty()
                                   : autotune::matches(wanted.space, best.config) == 1,
                      "what is used was declared");
    }
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size)
{
    const ByteView bytes{reinterpret_cast<const std::byte*>(data), size};
    const std::string stripped = autotune::without_comments(as_text(bytes));
    fuzz::require(stripped.size() <= size + 1, "what is left is no longer than what there was");
    if (const auto module = autotune::decode_module(bytes))
        fuzz::require(autotune::encode(*module) == as_text(bytes), "a module that is accepted is what is written");
    const auto best = autotune::decode(bytes);
    if (!best) {
        fuzz::require((best.error().code == ErrorCode::corrupt || best.error().code == ErrorCode::stale) &&
                          !best.error().message.empty(),
                      "a refusal is corrupt or stale, and says why");
        return 0;
    }
    fuzz::require(autotune::encode(*best) == as_text(bytes), "what is accepted is what is written");
    fuzz::require(autotune::gain(*best) > 0, "a gain is a number");
    check_judged(*best);
    return 0;
}
