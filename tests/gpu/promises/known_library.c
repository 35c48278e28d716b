// Stands for cuBLAS: a library with its file name, whose data contain device code, as nvcc puts it there. The test
// fills it.
__attribute__((visibility("default"))) unsigned char code[1 << 20] = {0};
