// Reads usage.json, which any process or user may have written.
#include "fuzz.hpp"
#include "usage/usage_file.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size)
{
    using namespace warmgraph;
    const auto usage = store::parse_usage({reinterpret_cast<const std::byte*>(data), size});
    if (!usage) return 0;
    const std::string text = store::to_usage_json(*usage);
    const auto again = store::parse_usage(as_bytes(text));
    fuzz::require(again && again->hits == usage->hits && again->events == usage->events,
                  "what was written reads the same");
    return 0;
}
