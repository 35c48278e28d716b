# What a hand-written makefile does.
cmake_minimum_required(VERSION 3.25)
include(${CMAKE_CURRENT_LIST_DIR}/run_consumer.cmake)
file(REMOVE_RECURSE ${WORK})
file(MAKE_DIRECTORY ${WORK})
set(ENV{PKG_CONFIG_PATH} ${PREFIX}/${LIBDIR}/pkgconfig)
execute_process(COMMAND ${PKG_CONFIG} --modversion warmgraph OUTPUT_VARIABLE version OUTPUT_STRIP_TRAILING_WHITESPACE
                COMMAND_ERROR_IS_FATAL ANY)
if(NOT version STREQUAL VERSION)
  message(FATAL_ERROR "pkg-config says version ${version}, expected ${VERSION}")
endif()
execute_process(COMMAND ${PKG_CONFIG} --cflags --libs warmgraph OUTPUT_VARIABLE flags OUTPUT_STRIP_TRAILING_WHITESPACE
                COMMAND_ERROR_IS_FATAL ANY)
separate_arguments(flags UNIX_COMMAND "${flags}")
if(LANGUAGE STREQUAL "c")
  set(compile ${C_COMPILER} -std=c11)
else()
  set(compile ${CXX_COMPILER} -std=c++20)
endif()
execute_process(COMMAND ${compile} -Wall -Wextra -Wpedantic -Werror ${SOURCE}/consumer/main.${LANGUAGE} -o ${WORK}/consumer ${flags}
                COMMAND_ERROR_IS_FATAL ANY)
run_consumer(${WORK}/consumer)
