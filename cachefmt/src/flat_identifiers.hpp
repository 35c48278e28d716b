// File identifiers of the two flatbuffers. flatc allows one per schema file, so they are passed by hand.
#pragma once

namespace warmgraph::cachefmt {

inline constexpr const char* k_header_identifier = "WGHD";
inline constexpr const char* k_payload_identifier = "WGPL";

} // namespace warmgraph::cachefmt
