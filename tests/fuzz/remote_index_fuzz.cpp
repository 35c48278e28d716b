// Reads the index of a folder of objects on an HTTP server, which may be anything.
#include "fuzz.hpp"
#include "http/index.hpp"

namespace {

using namespace warmgraph;
using namespace warmgraph::remote::http;

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size)
{
    const ByteView bytes{reinterpret_cast<const std::byte*>(data), size};
    const auto index = decode_index(bytes);
    if (!index) {
        fuzz::require(index.error().code == ErrorCode::corrupt, "a refusal is corrupt");
        return 0;
    }
    fuzz::require(index->size() <= k_most_items, "an index has at most its limit of items");
    fuzz::require(decode_index(encode(*index)).value() == *index, "an index that was read is written and read again");
    return 0;
}
