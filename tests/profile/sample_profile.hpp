// A profile of a function `prompt`. Its tests and the inputs of the fuzz target use it.
#pragma once

#include <string>

#include "warmgraph/profile/shapes.hpp"

namespace warmgraph::profile::test {

/// The shape of a call with `tokens` tokens that was padded to `ran` (0: not padded).
inline Shape prompt_of(std::int64_t tokens, std::int64_t ran = 0)
{
    Shape shape{{{"tokens", {tokens}}, {"logits", {512}}}};
    if (ran != 0) shape.ran = {{"tokens", {ran}}};
    return shape;
}

inline Profile empty_profile()
{
    Profile profile;
    profile.model_info = "tiny_static_clgraphcache_0123456789ab";
    profile.function = "prompt";
    profile.arguments = {{"tokens", "i32"}, {"logits", "f32"}};
    profile.key = key_of(profile);
    return profile;
}

inline BucketRequest sample_wish(std::uint32_t most = 4, std::int64_t multiple_of = 8)
{
    return {{{"tokens", 0}}, most, multiple_of};
}

/// A profile of two writers. One of them has padded its calls.
inline Profile sample_profile()
{
    Profile profile = empty_profile();
    Part& first = profile.parts["rank-0"];
    first = {"2026-11-24T10:11:12Z", "host-a"};
    for (int i = 0; i < 3; ++i) count(first, prompt_of(17, 32));
    count(first, prompt_of(5, 16));
    Part& second = profile.parts["rank-1"];
    second = {"2026-11-24T10:11:13Z", "host-b"};
    Shape causal = prompt_of(17);
    causal.values = {{"causal", "1"}};
    count(second, causal);
    profile.learnt[sample_wish()] = {"2026-11-24T10:11:14Z", {16, 32}};
    return profile;
}

} // namespace warmgraph::profile::test
