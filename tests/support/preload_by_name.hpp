// Calls Cache::preload for a function that may not be wrapped yet.
#pragma once

#include <string>
#include <utility>

#include "warmgraph/warmgraph.hpp"

namespace warmgraph::test {

/// Preloads in the background. It ends at the latest when the cache closes.
inline void preload_by_name(Cache& cache, std::string name, const Device& device)
{
    cache.preload({.functions = {std::move(name)}, .device = &device, .wait = PreloadWait::none}).detach();
}

} // namespace warmgraph::test
