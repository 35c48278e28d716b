// The C interface: pairs.
#include "c_api.hpp"
#include "warmgraph/facade/cache_access.hpp"

using namespace warmgraph;        // NOLINT: the functions of the C interface are in no namespace
using namespace warmgraph::c_api; // NOLINT

namespace {

wg_pair& need_pair(wg_pair* pair) { return need(pair, "pair", "one from wg_wrap_pair"); }
const wg_pair& need_pair(const wg_pair* pair) { return need(pair, "pair", "one from wg_wrap_pair"); }

} // namespace

PairHalf warmgraph::c_api::to_half(wg_pair_half half)
{
    switch (half) {
    case wg_pair_forward_half: return PairHalf::forward;
    case wg_pair_backward_half: return PairHalf::backward;
    default: refuse("half is {}, expected a wg_pair_half", half);
    }
}

wg_status wg_wrap_pair(wg_cache* cache, const wg_device* device, const wg_pair_spec* spec, wg_callback forward,
                       wg_callback backward, void* user, wg_pair** out)
{
    return guarded_handle(out, [&] {
        auto& owner = need(cache, "cache", "one from wg_cache_open").cache;
        const auto& target = need_device(device).device;
        wg_pair_spec known{};
        copy_versioned(&known, sizeof known, &need(spec, "spec", "a wg_pair_spec"), k_least_pair_spec, "wg_pair_spec");
        const std::string name = known_spec(&need(known.forward, "forward's spec", "a wg_function_spec")).name;
        PairSpec declared{to_unnamed_spec(known.forward, "forward's spec"),
                          to_unnamed_spec(known.backward, "backward's spec"),
                          to_tensors(known.saved, known.saved_count, "saved"),
                          to_map(known.gradients, known.gradient_count, "the gradients")};
        if (forward == nullptr || backward == nullptr)
            refuse("the {} callback of '{}' is null: pass the function that enqueues its work",
                   forward == nullptr ? "forward" : "backward", name);
        return new wg_pair{CacheAccess::wrap_pair(owner, name, target, std::move(declared),
                                                  to_callable(name, forward, user), to_callable(name, backward, user),
                                                  reinterpret_cast<const void*>(forward),
                                                  reinterpret_cast<const void*>(backward))};
    });
}

wg_status wg_pair_destroy(wg_pair* pair)
{
    return guarded([&] { delete pair; });
}

wg_status wg_pair_bind(wg_pair* pair, const char* state, wg_memory memory)
{
    return guarded([&] { need_pair(pair).pair.bind(need_text(state, "state name"), to_memory(memory)); });
}

wg_status wg_pair_forward(wg_pair* pair, wg_stream* stream, const wg_arg* args, uint64_t count, uint64_t* generation,
                          wg_outcome* outcome)
{
    return guarded([&] {
        auto& its = need_pair(pair).pair;
        need(generation, "generation", "a variable for the generation that wg_pair_backward takes") = 0;
        const ForwardCall call = its.forward(need_stream(stream).stream, to_args(args, count));
        *generation = call.generation;
        if (outcome != nullptr) *outcome = static_cast<wg_outcome>(call.outcome);
    });
}

wg_status wg_pair_backward(wg_pair* pair, wg_stream* stream, uint64_t generation, const wg_arg* args, uint64_t count,
                           wg_outcome* outcome)
{
    return guarded([&] {
        auto& its = need_pair(pair).pair;
        const Outcome happened =
            its.backward({Outcome::eager, generation}, need_stream(stream).stream, to_args(args, count));
        if (outcome != nullptr) *outcome = static_cast<wg_outcome>(happened);
    });
}

wg_status wg_pair_report(const wg_pair* pair, wg_pair_half half, wg_report** out)
{
    return guarded_handle(out, [&] { return new wg_report{need_pair(pair).pair.report(to_half(half))}; });
}

wg_status wg_pair_misses(const wg_pair* pair, wg_pair_half half, char* text, uint64_t capacity, uint64_t* length)
{
    return guarded(
        [&] { write_text(misses_text(need_pair(pair).pair.misses(to_half(half))), text, capacity, length); });
}
