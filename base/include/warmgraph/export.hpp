// WARMGRAPH_API marks the symbols that the shared library exports. All others are hidden.
#pragma once

#if defined(WARMGRAPH_STATIC)
#define WARMGRAPH_API
#else
#define WARMGRAPH_API __attribute__((visibility("default")))
#endif

/// Hides code in public headers that must not be shared between the libraries of one program.
#define WARMGRAPH_LOCAL __attribute__((visibility("hidden")))
