// Contains only the precompiled headers of all tests (tests/CMakeLists.txt).
int main() { return 0; }
