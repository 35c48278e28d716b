#include "cuda_names.hpp"

#include <iterator>
#include <string_view>

#include <fmt/format.h>

namespace warmgraph::cachefmt {
namespace {

constexpr std::string_view k_launch_attributes[] = {
    "ignore",                               // 0
    "access policy window",                 // 1
    "cooperative",                          // 2
    "synchronization policy",               // 3
    "cluster dimension",                    // 4
    "cluster scheduling policy preference", // 5
    "programmatic stream serialization",    // 6
    "programmatic event",                   // 7
    "priority",                             // 8
    "memory sync domain map",               // 9
    "memory sync domain",                   // 10
    "preferred cluster dimension",          // 11
    "launch completion event",              // 12
    "device updatable kernel node",         // 13
    "preferred shared memory carveout",     // 14
    "",                                     // 15: not in the header
    "nvlink util centric scheduling",       // 16
};

constexpr std::string_view k_function_attributes[] = {
    "max threads per block",                // 0
    "shared size bytes",                    // 1
    "const size bytes",                     // 2
    "local size bytes",                     // 3
    "num regs",                             // 4
    "ptx version",                          // 5
    "binary version",                       // 6
    "cache mode ca",                        // 7
    "max dynamic shared size bytes",        // 8
    "preferred shared memory carveout",     // 9
    "cluster size must be set",             // 10
    "required cluster width",               // 11
    "required cluster height",              // 12
    "required cluster depth",               // 13
    "non portable cluster size allowed",    // 14
    "cluster scheduling policy preference", // 15
};

template <std::size_t N>
std::string name_of(const std::string_view (&names)[N], std::uint32_t id, std::string_view what)
{
    if (id < N && !names[id].empty()) return std::string{names[id]};
    return fmt::format("{} {}", what, id);
}

} // namespace

std::string launch_attribute_name(std::uint32_t id) { return name_of(k_launch_attributes, id, "attribute"); }
std::string function_attribute_name(std::uint32_t id)
{
    return name_of(k_function_attributes, id, "function attribute");
}

bool is_one_number(std::uint32_t launch_attribute) noexcept
{
    switch (launch_attribute) {
    case 2:  // cooperative
    case 5:  // cluster scheduling policy preference
    case 6:  // programmatic stream serialization
    case 8:  // priority
    case 10: // memory sync domain
    case 14: // preferred shared memory carveout
        return true;
    default: return false;
    }
}

bool is_three_numbers(std::uint32_t launch_attribute) noexcept
{
    return launch_attribute == 4 || launch_attribute == 11; // cluster dimension, preferred cluster dimension
}

} // namespace warmgraph::cachefmt
