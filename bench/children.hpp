// The benchmark's child processes: `warmgraph_bench --child NAME ... --json FILE`.
//   chain --cache-dir D --nodes N: one chain, recorded if the cache is empty, else restored, and called once
//   products --cache-dir D --nodes N: the same with N products of cuBLASLt
//   miss --cache-dir D --nodes N --do off or record: N products that are not in the cache; without a cache, or recorded after
//     their result is on the host
//   graphs --cache-dir D --nodes N --count C --do record or open: C chains, restored through Cache::preload
#pragma once

#include <span>

namespace warmgraph::bench {

/// Returns the exit code. `arguments` excludes the program's name.
[[nodiscard]] int run_child(std::span<char* const> arguments);

} // namespace warmgraph::bench
