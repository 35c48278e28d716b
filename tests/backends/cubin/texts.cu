// Texts that the compiler puts into global memory: the text of an assertion, a format of printf, and the name of a
// function.
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
