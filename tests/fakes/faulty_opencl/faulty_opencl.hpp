// The system's OpenCL loader with one function changed: it fails if a test wants so. Tests put the path of this library
// into $WARMGRAPH_OPENCL.
#pragma once

extern "C" int warmgraph_next_build_gives; ///< the result of the next clBuildProgram; with 0, the system's runs
