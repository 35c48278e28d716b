// The system's OpenCL loader with one changed function, which fails on request. $WARMGRAPH_OPENCL names it.
#pragma once

extern "C" int warmgraph_next_build_gives; ///< result of the next clBuildProgram; 0: the system's
