// A program without code. It only compiles the precompiled headers of all tests (tests/CMakeLists.txt).
int main() { return 0; }
