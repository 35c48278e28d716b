// Stands for cuBLAS: a library with its file name and with device code in its data, which the test fills in.
__attribute__((visibility("default"))) unsigned char code[1 << 20] = {0};
