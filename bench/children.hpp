// What the benchmark does in processes that it starts itself: `warmgraph_bench --child NAME ... --json FILE`.
//   chain --cache-dir D --nodes N: one chain, recorded where the cache is empty, else restored, and called once
//   products --cache-dir D --nodes N: the same with N products of cuBLASLt
//   miss --cache-dir D --nodes N --do off or record: N products that nothing is known of, without a cache or recorded when their
//     result is on the host
//   graphs --cache-dir D --nodes N --count C --do record or open: C chains, restored through Cache::preload
#pragma once

#include <span>

namespace warmgraph::bench {

/// The exit code. `arguments` without the program's name.
[[nodiscard]] int run_child(std::span<char* const> arguments);

} // namespace warmgraph::bench
