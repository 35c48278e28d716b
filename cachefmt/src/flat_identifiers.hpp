// File identifiers of the two flatbuffers. flatc supports one identifier in each schema file, so the code passes these.
#pragma once

namespace warmgraph::cachefmt {

inline constexpr const char* k_header_identifier = "WGHD";
inline constexpr const char* k_payload_identifier = "WGPL";

} // namespace warmgraph::cachefmt
