# What a user types. It must say what it put where, and how it is tried.
cmake_minimum_required(VERSION 3.25)
file(REMOVE_RECURSE ${PREFIX})
execute_process(COMMAND ${SOURCE}/../../dev install --from ${BUILD} --prefix=${PREFIX} OUTPUT_VARIABLE output
                COMMAND_ERROR_IS_FATAL ANY)
foreach(expected IN ITEMS "warmgraph ${VERSION} is in ${PREFIX}:" "bin/warmgraph" "${LIBDIR}/libwarmgraph.so" "${LIBDIR}/libwarmgraph_replay.so"
                          "include/warmgraph/warmgraph.hpp" "include/warmgraph/replay.h" "${LIBDIR}/pkgconfig/warmgraph.pc" "share/doc/warmgraph/README.md"
                          "export PATH=\"${PREFIX}/bin:$PATH\"" "export LD_LIBRARY_PATH=\"${PREFIX}/${LIBDIR}"
                          "Try: ${PREFIX}/bin/warmgraph doctor")
  string(FIND "${output}" "${expected}" at)
  if(at EQUAL -1)
    message(FATAL_ERROR "./dev install printed\n${output}\nexpected in it: ${expected}")
  endif()
endforeach()
