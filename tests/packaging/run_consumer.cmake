# run_consumer(program): it must print the version and leave its cache in a folder of its own.
function(run_consumer program)
  set(cache ${WORK}/cache)
  file(REMOVE_RECURSE ${cache})
  execute_process(COMMAND ${CMAKE_COMMAND} -E env LD_LIBRARY_PATH=${PREFIX}/${LIBDIR} POCL_KERNEL_CACHE=0 ${program} ${cache}
                  OUTPUT_VARIABLE output COMMAND_ERROR_IS_FATAL ANY)
  string(FIND "${output}" "warmgraph ${VERSION}" at)
  if(at EQUAL -1)
    message(FATAL_ERROR "${program} printed '${output}', expected warmgraph ${VERSION}")
  endif()
  if(NOT IS_DIRECTORY ${cache})
    message(FATAL_ERROR "${program} opened no cache in ${cache}")
  endif()
endfunction()
