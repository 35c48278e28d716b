// Host stack addresses in by-value kernel parameters: remains in padding that a library did not initialise.
//
// Example: cuBLAS 13 (H200). Parameter 0 of gemmSN_TN_kernel is a struct whose byte 0 is a bool. Bytes 1..7 and 8..15
// keep what was on the stack before, an address such as 0x00007ffeda86f3a8. The address is the same in every capture of
// one process and differs in other processes (ASLR), so a second recording would make a different graph and be reported
// as `recompiled` for no reason.
//
// Movement finds these words, as it finds all addresses. The second capture's stack lies lower by a known distance, the
// shift, and everything else stays. A word that went down by exactly the shift, from inside the first capture's frames,
// is an address in those frames. The frames are gone when the graph runs and kernels cannot read them, so the word has
// no meaning; all captures get zeros there. The graph with zeros is verified, so that wrong results reveal a kernel
// that does use such a word.
//
// Padding is often shorter than a word, and the other bytes are real. The shift has non-zero bits from 2^6 to 2^16. So
// an address is also found if its lower one or two bytes were overwritten: the bytes above went down by the shift's
// upper bytes, or by one more if the subtraction borrowed. An address is also found if only its lower four bytes are
// left, or three of these four. Other differences between two equal captures are refused.
//
// Two kinds of remains are not found and stay constants. First, the upper four bytes of an address alone, behind a real
// int: no shift that fits on a stack changes them, and 0x7fff may be a number. Second, words that do not move:
// addresses of heap, code, or frames of warmgraph's callers.
#pragma once

#include <cstddef>

#include "classify/classify.hpp"
#include "classify/host_stack.hpp"

namespace warmgraph {

/// Returns pointers to all captures, beginning with `first` and `again`.
[[nodiscard]] std::vector<CapturedGraph*> all_of(Captures& captures);

/// Sets the words of kernel parameters that are host stack addresses to zero in all captures. Such a word is lower in
/// `again` than in `first` by the shift, and lies in the same stack in the other captures. Returns the number of these
/// words. Changes nothing if the captures differ in structure.
std::size_t erase_host_addresses(Captures& captures, const StackMovement& movement);

} // namespace warmgraph
