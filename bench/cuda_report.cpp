// The report's lines for `--backend cuda`. The targets are from issue 3.
#include <algorithm>

#include <fmt/format.h>

#include "report.hpp"

namespace warmgraph::bench {
namespace {

void add_stored(Lines& lines, const Collector& collector)
{
    const double stored = collector.counter("first_call", "stored_bytes");
    const double kernels = collector.counter("first_call", "kernel_bytes");
    if (stored <= 0 || kernels <= 0) return;
    lines.add("samples/llm: stored bytes, entries and images", stored / 1e3, "KB");
    lines.add("samples/llm: bytes of the kernels in use", kernels / 1e3, "KB");
    lines.add("samples/llm: stored / used", stored / kernels, "x");
}

void add_replay(Lines& lines, const Collector& collector)
{
    for (const int nodes : {182, 1000}) {
        const std::string name = fmt::format("cuda_replay/{}", nodes);
        const double ratio = collector.counter(name, "ratio");
        if (ratio <= 0) continue;
        lines.add(fmt::format("native replay, {} nodes", nodes), 1e3 * collector.counter(name, "native_ms"), "us");
        lines.add(fmt::format("restored replay, {} nodes", nodes), 1e3 * collector.counter(name, "restored_ms"), "us");
        lines.at_most("restored replay / native replay", ratio, "x", 1.01);
    }
    const std::string calls = "cuda_calls/182";
    if (collector.counter(calls, "native_us") <= 0) return;
    for (const int nodes : {1, 182}) {
        const std::string name = fmt::format("cuda_calls/{}", nodes);
        lines.add(fmt::format("cuGraphLaunch, {} nodes, host time", nodes), collector.counter(name, "native_us"), "us");
        lines.add(fmt::format("steady call, {} nodes, host time", nodes), collector.counter(name, "steady_us"), "us");
        lines.at_most("steady call over cuGraphLaunch", collector.counter(name, "over_us"), "us", 1);
        // The difference between two native executables of one graph.
        lines.add("  the same of a second native graph", collector.counter(name, "other_native_us"), "us");
    }
    lines.at_most("rebinding a moved input, per node", collector.counter(calls, "moved_us_per_node"), "us", 0.6);
    lines.at_most("rebinding a scalar, per node", collector.counter(calls, "scalar_us_per_node"), "us", 0.6);
    lines.add("  of it the driver's (read and set all, relaunch)", collector.counter(calls, "rewritten_us_per_node"),
              "us");
}

/// The phases of the time to the first result of `name`.
void add_phases(Lines& lines, const Collector& collector, const std::string& name)
{
    for (const auto& [counter, value] : collector.counters(name)) {
        if (counter.starts_with("phase")) lines.add("  " + counter.substr(7), value, "ms");
    }
    lines.add("  the same cold", collector.counter(name, "cold_ms"), "ms");
    lines.add("  the context, before it", collector.counter(name, "context_ms"), "ms");
}

void add_products(Lines& lines, const Collector& collector)
{
    const std::string name = "cuda_products/182";
    const double first = collector.counter(name, "first_result_ms");
    if (first <= 0) return;
    lines.at_most("file to first result, 182 cuBLASLt products, context ready", first, "ms", 5);
    add_phases(lines, collector, name);
    const double stored = collector.counter(name, "stored_bytes");
    lines.at_most("  stored bytes, entry and images", stored / 1e6, "MB", 1.2);
    lines.add("  stored / bytes of the kernels in use", stored / collector.counter(name, "kernel_bytes"), "x");
}

/// The targets are from issues 9 and 14.
void add_miss(Lines& lines, const Collector& collector)
{
    const std::string name = "cuda_miss/182";
    const double without = collector.counter(name, "without_ms"), with = collector.counter(name, "with_ms");
    if (without <= 0) return;
    lines.add("182 cuBLASLt products without a cache, to the result on the host", without, "ms");
    lines.at_most("  with a cache that will record them, longer by", with - without, "ms",
                  std::max(30.0, 0.05 * without));
    lines.at_most("  recording them afterwards", collector.counter(name, "record_ms"), "ms",
                  std::max(300.0, 2 * without));
    lines.add("  medians (the rest are lower quartiles): without", collector.counter(name, "without_median_ms"), "ms");
    lines.add("                                          with", collector.counter(name, "with_median_ms"), "ms");
    for (const auto& [counter, value] : collector.counters(name))
        if (counter.starts_with("phase")) lines.add("    " + counter.substr(7), value, "ms");
}

void add_restore(Lines& lines, const Collector& collector)
{
    for (const int nodes : {1, 100, 182, 1000}) {
        const std::string name = fmt::format("cuda_restore/{}", nodes);
        const double first = collector.counter(name, "first_result_ms");
        if (first <= 0) continue;
        lines.add(fmt::format("file to first result, {} nodes, context ready", nodes), first, "ms");
        add_phases(lines, collector, name);
    }
    add_products(lines, collector);
    add_miss(lines, collector);
    const std::string many = "cuda_preload/128";
    if (collector.counter(many, "all_ms") <= 0) return;
    lines.at_most("128 graphs of 1000 nodes, the first result", collector.counter(many, "first_ms"), "ms", 10);
    lines.add("  without Device::warm_up() before", collector.counter(many, "first_cold_ms"), "ms");
    lines.at_most("128 graphs of 1000 nodes, all restored", collector.counter(many, "all_ms"), "ms", 450);
    lines.add("  the driver alone: cuGraphInstantiate, one thread", collector.counter(many, "instantiate_ms"), "ms");
    lines.add("  and uploaded, off the critical path", collector.counter(many, "uploaded_ms"), "ms");
}

} // namespace

void add_cuda(Lines& lines, const Collector& collector)
{
    add_stored(lines, collector);
    add_replay(lines, collector);
    add_restore(lines, collector);
}

} // namespace warmgraph::bench
