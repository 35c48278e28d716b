// Takes the place of cuBLAS: a library with the same file name. The test writes device code into its data.
__attribute__((visibility("default"))) unsigned char code[1 << 20] = {0};
