# warmgraph_flatc(target schema.fbs): generates <schema>_generated.h with the installed flatc into the build folder and
# lets only `target`'s own sources include it. flatc and the flatbuffers headers must come from one release (the generated
# header asserts it), so both are taken from the system. Debian 12 has 2.0.8, Ubuntu 24.04 23.5.26.
include_guard(GLOBAL)

find_program(WARMGRAPH_FLATC NAMES flatc DOC "the flatbuffers compiler")
find_path(WARMGRAPH_FLATBUFFERS_INCLUDE flatbuffers/flatbuffers.h DOC "folder of the flatbuffers headers")
mark_as_advanced(WARMGRAPH_FLATC WARMGRAPH_FLATBUFFERS_INCLUDE)
if(NOT WARMGRAPH_FLATC OR NOT WARMGRAPH_FLATBUFFERS_INCLUDE)
  # An installation outside the usual folders is found through its CMake package, whose name has two spellings.
  find_package(FlatBuffers CONFIG QUIET NAMES FlatBuffers Flatbuffers flatbuffers)
  if(TARGET flatbuffers::flatc AND TARGET flatbuffers::flatbuffers)
    set(WARMGRAPH_FLATC $<TARGET_FILE:flatbuffers::flatc>)
    set(WARMGRAPH_FLATBUFFERS_INCLUDE $<TARGET_PROPERTY:flatbuffers::flatbuffers,INTERFACE_INCLUDE_DIRECTORIES>)
  else()
    message(FATAL_ERROR "flatc or the flatbuffers headers were not found: install flatbuffers-compiler and libflatbuffers-dev")
  endif()
endif()

function(warmgraph_flatc target schema)
  get_filename_component(schema ${schema} ABSOLUTE)
  get_filename_component(stem ${schema} NAME_WE)
  set(folder ${CMAKE_CURRENT_BINARY_DIR}/generated)
  set(header ${folder}/${stem}_generated.h)
  add_custom_command(
    OUTPUT ${header}
    COMMAND ${WARMGRAPH_FLATC} --cpp --scoped-enums -o ${folder} ${schema}
    DEPENDS ${schema}
    COMMENT "flatc ${stem}.fbs"
    VERBATIM)
  target_sources(${target} PRIVATE ${header})
  # SYSTEM turns our warnings off for generated code.
  target_include_directories(${target} SYSTEM PRIVATE ${folder} ${WARMGRAPH_FLATBUFFERS_INCLUDE})
endfunction()
