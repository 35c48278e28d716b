// The C interface: buckets, and the shape profile.
#include <algorithm>
#include <deque>

#include <nlohmann/json.hpp>

#include "c_api.hpp"

using namespace warmgraph;        // NOLINT: the functions of the C interface are in no namespace
using namespace warmgraph::c_api; // NOLINT

struct wg_profiled_call {
    ProfiledShape shape{};
    std::deque<std::string> names{}; ///< the arguments' names; the arguments only view these strings
    std::vector<Arg> args{};
    bool has_args = false;
};

namespace {

BucketRule to_rule(wg_bucket_rule rule)
{
    switch (rule) {
    case wg_buckets_fixed: return BucketRule::fixed;
    case wg_buckets_given: return BucketRule::given;
    case wg_buckets_learnt: return BucketRule::learnt;
    default: refuse("buckets have the rule {}, expected a wg_bucket_rule", rule);
    }
}

/// The arguments that the callback gave for one shape.
std::vector<Arg> ask(wg_make_arguments make, void* user, const ProfiledShape& shape, wg_profiled_call& call)
{
    call = {};
    call.shape = shape;
    const std::uint64_t failures_before = last_failure().count;
    const int returned = make(&call, user);
    const Failure& failure = last_failure();
    if (failure.count != failures_before) throw Exception(static_cast<ErrorCode>(failure.status), failure.text);
    if (returned != 0)
        throw CallbackFailed{fmt::format("the callback that makes arguments returned {}, expected 0", returned)};
    if (!call.has_args) refuse("the callback made no arguments: call wg_profiled_call_args in it");
    return call.args;
}

nlohmann::ordered_json to_json(const ProfiledShape& shape)
{
    return {{"calls", shape.calls}, {"sizes", shape.sizes}, {"ran", shape.ran}, {"values", shape.values}};
}

} // namespace

std::vector<Buckets> c_api::to_buckets(const wg_function_spec& from)
{
    std::vector<Buckets> result;
    for (const wg_buckets& given : need_array(from.buckets, from.bucket_count, "buckets")) {
        Buckets& buckets = result.emplace_back();
        for (const auto& [argument, dimension, value] :
             need_array(given.dimensions, given.dimension_count, "padded dimensions"))
            buckets.dimensions.push_back(
                {need_text(argument, "an argument in buckets"), static_cast<std::size_t>(dimension), value});
        buckets.rule = to_rule(given.rule);
        if (given.most != 0) buckets.most = given.most;
        const auto sizes = need_array(given.sizes, given.size_count, "bucket sizes");
        buckets.sizes.assign(sizes.begin(), sizes.end());
        if (given.multiple_of != 0) buckets.multiple_of = given.multiple_of;
    }
    return result;
}

wg_status wg_profiled_call_sizes(const wg_profiled_call* call, const char* name, const int64_t** sizes, uint64_t* rank)
{
    return guarded([&] {
        const auto& wanted = need(call, "call", "the one that the callback received").shape.sizes;
        const auto found = wanted.find(need_text(name, "name"));
        if (found == wanted.end()) refuse("the profile has no argument '{}': name an input or output", name);
        need(sizes, "sizes", "a variable for the sizes") = found->second.data();
        need(rank, "rank", "a variable for their number") = found->second.size();
    });
}

wg_status wg_profiled_call_args(wg_profiled_call* call, const wg_arg* args, uint64_t count)
{
    return guarded([&] {
        need(call, "call", "the one that the callback received");
        call->names.clear();
        call->args.clear();
        for (const wg_arg& arg : need_array(args, count, "arguments")) {
            Arg made = to_arg(arg);
            made.name = call->names.emplace_back(made.name);
            call->args.push_back(std::move(made));
        }
        call->has_args = true;
    });
}

wg_status wg_record_profile(wg_cache* cache, wg_function* function, wg_make_arguments make, void* user, uint64_t most,
                            uint64_t* recorded, uint64_t* replayed, char* text, uint64_t capacity, uint64_t* length)
{
    return guarded([&] {
        auto& owner = need(cache, "cache", "one from wg_cache_open").cache;
        auto& of = need(function, "function", "one from wg_wrap").function;
        if (make == nullptr) refuse("the callback that makes arguments is null: pass a function");
        wg_profiled_call call;
        const ProfileRecording done = owner.record_profile(
            of, [&](const ProfiledShape& shape) { return ask(make, user, shape, call); },
            static_cast<std::size_t>(most));
        if (recorded != nullptr) *recorded = done.recorded;
        if (replayed != nullptr) *replayed = done.replayed;
        std::string lines = done.why_not.empty() ? "" : done.why_not + "\n";
        for (const std::string& problem : done.problems) lines += problem + "\n";
        write_text(lines, text, capacity, length);
    });
}

wg_status wg_function_buckets(const wg_function* function, char* text, uint64_t capacity, uint64_t* length)
{
    return guarded([&] {
        const nlohmann::json list = need(function, "function", "one from wg_wrap").function.buckets();
        write_text(list.dump(), text, capacity, length);
    });
}

wg_status wg_function_shapes(const wg_function* function, char* text, uint64_t capacity, uint64_t* length)
{
    return guarded([&] {
        nlohmann::ordered_json list = nlohmann::ordered_json::array();
        for (const ProfiledShape& shape : need(function, "function", "one from wg_wrap").function.shapes())
            list.push_back(to_json(shape));
        write_text(list.dump(), text, capacity, length);
    });
}
