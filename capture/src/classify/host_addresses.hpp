// Host stack addresses in by-value kernel parameters: what a library left in padding that it did not initialise.
//
// cuBLAS 13 does so (H200): of gemmSN_TN_kernel's parameter 0, a struct, byte 0 is a bool, and bytes 1..7 and 8..15 are
// what the struct's place on the stack held before, an address such as 0x00007ffeda86f3a8. Every capture of one process
// has the same ones, another process has others (ASLR), so that a second recording would be a different graph:
// `recompiled`, for nothing.
//
// They are found as all addresses are, by movement. The second capture's stack lies lower by a known distance, the
// shift, and nothing else is elsewhere. A word that went down by exactly the shift, from a place where the first
// capture's frames were, is the address of something in those frames. They are gone when the graph runs, and no kernel
// can read them: the word carries no meaning, and it is set to zero in all captures. What is then verified and
// published is the form with zeros, so a kernel that does use such a word is found out by its results.
//
// Padding is often less than a word, and the rest is real. The shift has non-zero bits from 2^6 to 2^16, so that an
// address can be told when its lower one or two bytes were overwritten (the bytes above went down by the shift's, or
// one more: a borrow) and when only its lower four bytes are left, or three of those. Whatever else differs between two
// captures of the same is refused as ever.
//
// Not told: the address's upper four bytes alone (below is a real int). They do not move with any shift that a stack
// has room for, and 0x7fff may be a number. Nor what does not move: heap and code addresses, frames of the callers of
// warmgraph. Those stay constants.
#pragma once

#include <cstddef>

#include "classify/classify.hpp"
#include "classify/host_stack.hpp"

namespace warmgraph {

/// The first two first.
[[nodiscard]] std::vector<CapturedGraph*> all_of(Captures& captures);

/// Sets the words of kernel parameters to zero, in all captures, that are host stack addresses: in `first` and lower by
/// the shift in `again`, and somewhere in the same stack in the others. Returns how many. Leaves all as it is where
/// captures differ in structure.
std::size_t erase_host_addresses(Captures& captures, const StackMovement& movement);

} // namespace warmgraph
