// Stands for cuBLAS: a library of this file name whose data holds device code, as nvcc puts it there. The test fills it.
__attribute__((visibility("default"))) unsigned char code[1 << 20] = {0};
