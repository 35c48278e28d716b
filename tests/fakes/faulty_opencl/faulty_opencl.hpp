// An OpenCL loader that is the system's but for one function, which fails when told to. $WARMGRAPH_OPENCL names it.
#pragma once

extern "C" int warmgraph_next_build_gives; ///< an OpenCL code for the next clBuildProgram; 0: as the system's
