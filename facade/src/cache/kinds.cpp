#include "cache/kinds.hpp"

namespace warmgraph {

std::string switched_off(std::string_view kind)
{
    return fmt::format("{} are switched off (CacheOptions::kinds, WARMGRAPH_KINDS)", kind);
}

} // namespace warmgraph
