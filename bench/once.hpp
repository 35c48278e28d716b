// Benchmarks that measure by themselves, in one iteration, and give counters.
#pragma once

#include <exception>
#include <iostream>

#include <benchmark/benchmark.h>

namespace warmgraph::bench {

/// Benchmarks of this process that failed.
inline int& failures() noexcept
{
    static int count = 0;
    return count;
}

/// Runs `body` as the only iteration. What it throws is printed and counted; the table then lacks its lines.
template <class Body>
void once(benchmark::State& state, const char* name, Body body)
{
    for (auto _ : state) {
        try {
            body();
        } catch (const std::exception& error) {
            std::cerr << name << ": " << error.what() << "\n";
            ++failures();
            state.SkipWithError(error.what());
            return;
        }
    }
}

} // namespace warmgraph::bench
