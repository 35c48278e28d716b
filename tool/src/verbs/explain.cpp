// `warmgraph explain`: why a function missed, and whether it would miss here. "Now" comes from two sources: the missed
// calls, which the facade stores beside the function, and the facts that this process can find itself.
#include "commands.hpp"
#include "selection.hpp"
#include "verbs/explanation.hpp"

namespace warmgraph::tool {

namespace {

/// The function that the user means; if several fit, the one that missed last.
Result<cachefmt::FunctionKey> meant(const Context& context, const store::LocalStore* store, const std::string& target)
{
    auto key = select(context, store, target);
    if (key || key.error().code != ErrorCode::invalid_argument || store == nullptr) return key;
    const auto fitting = choose(context, store, target);
    if (!fitting || fitting->size() < 2 || target.find('/') == std::string::npos) return key;
    if (auto last = missed_last(*store, *fitting)) return *last;
    return key;
}

} // namespace

Result<int> explain(const Context& context, const std::string& target, const ExplainOptions& options)
{
    const auto store = open_store(context);
    if (!store) return std::unexpected(store.error());
    const auto key = meant(context, store->get(), target);
    if (!key) return std::unexpected(key.error());
    const auto explanation = make_explanation(**store, *key, options.relaxation);
    if (!explanation) return std::unexpected(explanation.error());
    if (context.output == Output::json)
        print(to_json(*explanation));
    else
        print(to_text(context, *explanation, options.shows_all ? MissCount::all : MissCount::last));
    return explanation->verdict == CallVerdict::hit ? k_ok : k_found_wrong;
}

} // namespace warmgraph::tool
