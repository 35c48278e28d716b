// Texts that the compiler puts in global memory: an assertion's, printf's, and a function's name.
#include <cassert>
#include <cstdio>

template <class T>
__device__ const char* name_of()
{
    return __PRETTY_FUNCTION__;
}

extern "C" __global__ void checked(int* p, int i)
{
    assert(i < 3);
    p[i] = i;
    if (i == 2) printf("hello %d, %s\n", i, name_of<float>());
}
