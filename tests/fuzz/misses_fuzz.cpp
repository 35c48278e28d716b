// Reads misses.jsonl, which any process or user may have written. Its first line has the guards of a call.
#include "fuzz.hpp"
#include "usage/miss_file.hpp"
#include "warmgraph/guards/json.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size)
{
    using namespace warmgraph;
    const auto misses = store::parse_misses({reinterpret_cast<const std::byte*>(data), size});
    if (!misses) {
        fuzz::require(misses.error().code == ErrorCode::corrupt && !misses.error().message.empty(),
                      "a refusal is corrupt and says why");
        return 0;
    }
    fuzz::require(misses->list.size() <= store::k_most_misses, "no more are read than are kept");
    const std::string lines = store::to_miss_lines(*misses);
    fuzz::require(lines.size() <= store::k_miss_file_cap, "what is written will be read");
    const auto again = store::parse_misses(as_bytes(lines));
    fuzz::require(again && again->list.size() == misses->list.size(), "what was written reads the same");
    for (std::size_t i = 0; i < misses->list.size(); ++i) {
        const store::Miss &was = misses->list[i], &is = again->list[i];
        fuzz::require(was.call == is.call && was.nearest == is.nearest && was.end == is.end && was.more == is.more &&
                          was.agree == is.agree && was.variants == is.variants && was.process == is.process &&
                          was.differences.size() == is.differences.size(),
                      "a miss that was written reads the same");
    }
    if (const auto call = guards::from_json(misses->newest_call)) {
        const auto twice = guards::from_json(guards::to_json(*call));
        fuzz::require(twice && *twice == *call, "guards that were written read the same");
    }
    return 0;
}
