// Benchmarks that measure themselves in one iteration and give counters.
#pragma once

#include <exception>
#include <iostream>

#include <benchmark/benchmark.h>

namespace warmgraph::bench {

/// Number of benchmarks that failed in this process.
inline int& failures() noexcept
{
    static int count = 0;
    return count;
}

/// Runs `body` as the only iteration. Prints and counts an exception; the table then lacks its lines.
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
