# One folder, one component: warmgraph_component(store SOURCES ... LINKS cachefmt LIBRARIES OpenSSL::Crypto)
#   target warmgraph_<name>: a static library with C++23 and the folder's include/ as its public face.
# APART keeps a component out of libwarmgraph, e.g. the replayer (a library of its own) and the tests' fake backend.
include_guard(GLOBAL)
# Packages that one folder finds are visible to all, because the library links them too.
set(CMAKE_FIND_PACKAGE_TARGETS_GLOBAL ON)
if(WARMGRAPH_RELOCATABLE)
  include(WarmgraphRelocatable)
endif()
find_package(OpenSSL REQUIRED COMPONENTS Crypto)
find_package(spdlog REQUIRED)
find_package(fmt REQUIRED)
find_package(Threads REQUIRED)
find_package(PkgConfig REQUIRED)
pkg_check_modules(ZSTD REQUIRED IMPORTED_TARGET libzstd)
set(WARMGRAPH_FMT fmt::fmt)
set(WARMGRAPH_SPDLOG spdlog::spdlog)
set(WARMGRAPH_ZSTD PkgConfig::ZSTD)
if(WARMGRAPH_RELOCATABLE)
  warmgraph_own_archives()
  find_library(WARMGRAPH_ZSTD_ARCHIVE libzstd.a REQUIRED)
  set(WARMGRAPH_ZSTD ${WARMGRAPH_ZSTD_ARCHIVE})
endif()

# This is needed, because the same objects go into the archive and into the shared library.
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE RelWithDebInfo CACHE STRING "" FORCE)
endif()

add_library(warmgraph_options INTERFACE)
target_compile_options(warmgraph_options INTERFACE -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion)
if(WARMGRAPH_WERROR)
  # Warnings are errors, except those that follow values through inlined library code: gcc 12 and 13 give false ones (gcc bugs
  # 105329, 105651).
  target_compile_options(warmgraph_options INTERFACE -Werror -Wno-error=restrict -Wno-error=stringop-overflow
                         -Wno-error=stringop-overread -Wno-error=array-bounds -Wno-error=maybe-uninitialized)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_GREATER_EQUAL 13)
    target_compile_options(warmgraph_options INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wno-error=dangling-reference>)
  endif()
endif()

if(WARMGRAPH_LLD)
  find_program(WARMGRAPH_LD_LLD ld.lld)
  mark_as_advanced(WARMGRAPH_LD_LLD)
  if(WARMGRAPH_LD_LLD)
    add_link_options(-fuse-ld=lld)
  endif()
endif()

# Every object of a process needs the sanitizer's flags, so they are global.
if(WARMGRAPH_SANITIZE STREQUAL "address")
  add_compile_options(-fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer)
  add_link_options(-fsanitize=address,undefined)
elseif(WARMGRAPH_SANITIZE STREQUAL "thread")
  add_compile_options(-fsanitize=thread -fno-omit-frame-pointer)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # std::atomic_thread_fence is unknown to gcc's ThreadSanitizer; with -Werror its warning would stop the build.
    add_compile_options(-Wno-error=tsan)
  endif()
  add_link_options(-fsanitize=thread)
elseif(WARMGRAPH_SANITIZE)
  message(FATAL_ERROR "WARMGRAPH_SANITIZE is '${WARMGRAPH_SANITIZE}', expected address or thread")
endif()
if(WARMGRAPH_FUZZ)
  if(NOT WARMGRAPH_SANITIZE STREQUAL "address" OR NOT CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    message(FATAL_ERROR "WARMGRAPH_FUZZ wants WARMGRAPH_SANITIZE=address and clang, whose libFuzzer it uses")
  endif()
  add_compile_options(-fsanitize=fuzzer-no-link) # lets libFuzzer see which branches an input takes
endif()

# For shared libraries. clang links a sanitizer's functions only into programs: a library cannot resolve them.
set(WARMGRAPH_NO_UNDEFINED LINKER:--no-undefined)
if(WARMGRAPH_SANITIZE AND CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  set(WARMGRAPH_NO_UNDEFINED "")
endif()

# Define gcc's macros for sanitizers with clang too: tests check them.
if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  if(WARMGRAPH_SANITIZE STREQUAL "thread")
    add_compile_definitions(__SANITIZE_THREAD__=1)
  elseif(WARMGRAPH_SANITIZE)
    add_compile_definitions(__SANITIZE_ADDRESS__=1)
  endif()
endif()

if(WARMGRAPH_UNITY)
  # In a unity batch gcc treats every source as a header, and warns about unnamed namespaces.
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    target_compile_options(warmgraph_options INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wno-subobject-linkage>)
  endif()
endif()

# Parsing the headers of the standard library and fmt is a tenth of a component's compile time. Each source still
# includes all headers that it uses: the preset tidy compiles without precompiled headers.
add_library(warmgraph_headers OBJECT EXCLUDE_FROM_ALL ${CMAKE_CURRENT_LIST_DIR}/precompiled.cpp)
target_compile_features(warmgraph_headers PUBLIC cxx_std_23)
target_link_libraries(warmgraph_headers PRIVATE warmgraph_options OpenSSL::Crypto ${WARMGRAPH_SPDLOG} ${WARMGRAPH_FMT} Threads::Threads)
set_target_properties(warmgraph_headers PROPERTIES CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
target_precompile_headers(warmgraph_headers PRIVATE
  <algorithm> <array> <atomic> <bit> <chrono> <cstddef> <cstdint> <cstring> <expected> <filesystem> <functional> <map> <memory> <mutex>
  <optional> <set> <span> <string> <string_view> <unordered_map> <utility> <variant> <vector> <fmt/format.h> <fmt/ranges.h>)

set_property(GLOBAL PROPERTY WARMGRAPH_COMPONENTS "")
set_property(GLOBAL PROPERTY WARMGRAPH_LIBRARIES "")

# Components that read memory word by word, or try thousands of shapes: without -O1 their tests are too slow here.
set(WARMGRAPH_OPTIMISED_UNDER_SANITIZERS backend_api profile)

function(warmgraph_component name)
  cmake_parse_arguments(arg "APART" "" "SOURCES;LINKS;LIBRARIES" ${ARGN})
  set(target warmgraph_${name})
  if(NOT arg_SOURCES) # headers only
    add_library(${target} INTERFACE)
    list(TRANSFORM arg_LINKS PREPEND warmgraph_)
    target_link_libraries(${target} INTERFACE ${arg_LINKS})
    target_include_directories(${target} INTERFACE ${CMAKE_CURRENT_SOURCE_DIR}/include)
    return()
  endif()
  add_library(${target} STATIC ${arg_SOURCES})
  target_compile_features(${target} PUBLIC cxx_std_23)
  target_compile_definitions(${target} PUBLIC WARMGRAPH_VERSION="${PROJECT_VERSION}")
  target_include_directories(${target} PUBLIC ${CMAKE_CURRENT_SOURCE_DIR}/include PRIVATE ${CMAKE_CURRENT_SOURCE_DIR}/src)
  list(TRANSFORM arg_LINKS PREPEND warmgraph_)
  target_link_libraries(${target} PUBLIC ${arg_LINKS} ${arg_LIBRARIES} PRIVATE warmgraph_options)
  set_target_properties(${target} PROPERTIES CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
  if(WARMGRAPH_SANITIZE AND name IN_LIST WARMGRAPH_OPTIMISED_UNDER_SANITIZERS)
    target_compile_options(${target} PRIVATE -O1) # the precompiled headers have other flags
  else()
    target_precompile_headers(${target} REUSE_FROM warmgraph_headers)
  endif()
  if(NOT arg_APART)
    set_property(GLOBAL APPEND PROPERTY WARMGRAPH_COMPONENTS ${target})
    set_property(GLOBAL APPEND PROPERTY WARMGRAPH_LIBRARIES ${arg_LIBRARIES})
  endif()
endfunction()
