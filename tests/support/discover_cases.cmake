# Asks a GoogleTest program for its cases and writes a file that makes each of them a ctest test (warmgraph_test in ../CMakeLists.txt).
#   PROGRAM, PREFIX     the program, and what the tests' names begin with
#   LABELS              a file with a line for each source: "<path>|<labels>"
#   TIMEOUT             seconds
#   ENVIRONMENT         a list
#   OUTPUT              the file
cmake_minimum_required(VERSION 3.25)
file(REMOVE ${OUTPUT})
set(listing ${OUTPUT}.json)
execute_process(COMMAND ${CMAKE_COMMAND} -E env ${ENVIRONMENT} ${PROGRAM} --gtest_list_tests --gtest_output=json:${listing}
                OUTPUT_QUIET COMMAND_ERROR_IS_FATAL ANY)
file(STRINGS ${LABELS} lines)
foreach(line IN LISTS lines)
  string(REGEX MATCH "^(.*)[|](.*)$" line "${line}")
  set(labels "${CMAKE_MATCH_2}")
  string(MAKE_C_IDENTIFIER "${CMAKE_MATCH_1}" source)
  set(labels_of_${source} "${labels}")
endforeach()

file(READ ${listing} json)
file(REMOVE ${listing})
set(text "")
string(JSON suites GET "${json}" testsuites)
string(JSON suite_count LENGTH "${json}" testsuites)
math(EXPR last_suite "${suite_count} - 1")
foreach(i RANGE ${last_suite})
  string(JSON suite GET "${suites}" ${i})
  string(JSON suite_name GET "${suite}" name)
  string(JSON cases GET "${suite}" testsuite)
  string(JSON case_count LENGTH "${cases}")
  math(EXPR last_case "${case_count} - 1")
  foreach(j RANGE ${last_case})
    string(JSON case_name GET "${cases}" ${j} name)
    string(JSON source GET "${cases}" ${j} file)
    string(MAKE_C_IDENTIFIER "${source}" source_id)
    if(NOT DEFINED labels_of_${source_id})
      message(FATAL_ERROR "${PROGRAM}: ${suite_name}.${case_name} is in ${source}, which ${LABELS} does not list")
    endif()
    string(APPEND text "add_test([=[${PREFIX}${suite_name}.${case_name}]=] [=[${PROGRAM}]=] "
                       "[=[--gtest_filter=${suite_name}.${case_name}]=] --gtest_also_run_disabled_tests)\n"
                       "set_tests_properties([=[${PREFIX}${suite_name}.${case_name}]=] PROPERTIES LABELS \"${labels_of_${source_id}}\" "
                       "TIMEOUT ${TIMEOUT} ENVIRONMENT \"${ENVIRONMENT}\")\n")
  endforeach()
endforeach()
file(WRITE ${OUTPUT} "${text}")
