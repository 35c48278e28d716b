#include "warmgraph/base/bytes.hpp"

#include <bit>

// load() and append() copy fields without swapping bytes, and every format is little-endian.
static_assert(std::endian::native == std::endian::little, "warmgraph needs a little-endian host");
