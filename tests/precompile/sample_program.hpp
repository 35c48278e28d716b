// A compiled program in which every field is set.
#pragma once

#include "warmgraph/precompile/compiled_program.hpp"

namespace warmgraph::precompile::test {

inline CompiledProgram sample_program()
{
    CompiledProgram program;
    program.ingredients = {"matmul",
                           "cuda",
                           sha256(as_bytes("source")),
                           {"-D", "ROWS=16", "a \"quoted\" word"},
                           {{"tile.h", sha256(as_bytes("tile"))}, {"types.h", sha256(as_bytes("types"))}},
                           sha256(as_bytes("search")),
                           "sm_90",
                           "NVRTC 13.0 (build 65be0db342ad51a0)"};
    program.compiled = {Bytes(300, std::byte{7}), sha256(as_bytes("origin")), {"matmul 16x16x1 small"}};
    program.compile_ms = 180.5;
    program.written = "2026-11-24T11:00:00Z";
    return program;
}

} // namespace warmgraph::precompile::test
