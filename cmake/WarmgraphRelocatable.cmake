# Programs that run on another machine of the same architecture with no package of ours installed: dependencies are linked
# statically, all programs lie in one folder, and what must stay shared (the OpenCL loader) lies beside them.
include_guard(GLOBAL)
set(OPENSSL_USE_STATIC_LIBS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)
set(CMAKE_BUILD_WITH_INSTALL_RPATH ON)
set(CMAKE_INSTALL_RPATH $ORIGIN)
add_link_options(-static-libstdc++ -static-libgcc LINKER:--gc-sections)
add_compile_options(-ffunction-sections -fdata-sections)
