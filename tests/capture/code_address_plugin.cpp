// A plugin that wraps a callable. It is built twice, and both plugins have callables of the same type.
#include "warmgraph/detail/code_address.hpp"

namespace {
void function(int) {}
} // namespace

#define EXPORT extern "C" __attribute__((visibility("default")))

EXPORT const void* address_of_pointer() { return warmgraph::detail::code_address(&function); }
EXPORT const void* address_of_wrapping() { return warmgraph::detail::address_of_wrapping<void (*)(int)>(); }
