// Symbols of the shared library that users see. Everything else is hidden.
#pragma once

#if defined(WARMGRAPH_STATIC)
#define WARMGRAPH_API
#else
#define WARMGRAPH_API __attribute__((visibility("default")))
#endif

/// Of code in headers that each library of a program must have for itself.
#define WARMGRAPH_LOCAL __attribute__((visibility("hidden")))
