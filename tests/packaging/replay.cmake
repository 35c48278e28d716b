# samples/replay_only as a user's project: it has nothing but the installation, and finds the component replay alone.
cmake_minimum_required(VERSION 3.25)
file(REMOVE_RECURSE ${WORK})
execute_process(COMMAND ${CMAKE_COMMAND} -S ${SOURCE}/../../samples/replay_only -B ${WORK}/build -G ${GENERATOR}
    -DCMAKE_PREFIX_PATH=${PREFIX} -DCMAKE_C_COMPILER=${C_COMPILER}
  COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND ${CMAKE_COMMAND} --build ${WORK}/build COMMAND_ERROR_IS_FATAL ANY)
set(environment ${CMAKE_COMMAND} -E env LD_LIBRARY_PATH=${PREFIX}/${LIBDIR} POCL_CACHE_DIR=${WORK}/pocl WARMGRAPH_CACHE_DIR=${WORK}/cache)
execute_process(COMMAND ${environment} ${HELLO} COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND ${environment} ${WORK}/build/warmgraph_replay_only OUTPUT_VARIABLE output COMMAND_ERROR_IS_FATAL ANY)
if(NOT output STREQUAL "y begins with 42, replayed\n")
  message(FATAL_ERROR "warmgraph_replay_only printed '${output}'")
endif()
