# The CUDA backend needs three headers to compile (cuda.h, cupti.h, nvrtc.h) and loads CUDA's libraries when it runs. This file
# finds the headers. WARMGRAPH_CUDA says where they may come from:
#   AUTO   from this machine; without them the CUDA backend is left out (the default of a plain `cmake` call)
#   ON     from this machine, else from PyPI; without them the configuration fails
#   PYPI   from PyPI, so that a build is the same on each machine (the presets of the tests)
#   OFF    the CUDA backend is left out
# Result: WARMGRAPH_CUDA_INCLUDE, WARMGRAPH_NVRTC_INCLUDE, WARMGRAPH_CUPTI_INCLUDE, all set or all unset.
include_guard(GLOBAL)

set(WARMGRAPH_CUDA AUTO CACHE STRING "where CUDA's headers come from: AUTO, ON, PYPI, OFF (cmake/CudaHeaders.cmake)")
set_property(CACHE WARMGRAPH_CUDA PROPERTY STRINGS AUTO ON PYPI OFF)
if(PROJECT_IS_TOP_LEVEL)
  set(folder ${PROJECT_SOURCE_DIR}/build/cuda-headers) # shared by all presets
else()
  set(folder ${PROJECT_BINARY_DIR}/cuda-headers)
endif()
set(WARMGRAPH_CUDA_HEADERS_FOLDER ${folder} CACHE PATH "headers from PyPI are kept here")
set(packages ${CMAKE_CURRENT_LIST_DIR}/cuda-headers.txt)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${packages})
mark_as_advanced(WARMGRAPH_CUDA_HEADERS_FOLDER)

# Fetches the packages with pip, which checks their digests, and unpacks their headers into `folder`.
function(warmgraph_fetch_cuda_headers packages folder)
  file(SHA256 ${packages} wanted)
  if(EXISTS ${folder}/${wanted}/complete)
    return()
  endif()
  find_package(Python3 COMPONENTS Interpreter)
  message(STATUS "CUDA: fetching headers from PyPI into ${folder}")
  set(wheels ${folder}/wheels)
  file(REMOVE_RECURSE ${folder})
  file(MAKE_DIRECTORY ${folder})
  execute_process(
    COMMAND ${Python3_EXECUTABLE} -m pip download --quiet --disable-pip-version-check --no-deps --only-binary=:all: --require-hashes
            --dest ${wheels} --requirement ${packages}
    RESULT_VARIABLE status ERROR_VARIABLE error OUTPUT_QUIET)
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "CUDA's headers are not on this machine, and `${Python3_EXECUTABLE} -m pip download` could not fetch them "
                        "from PyPI (status ${status}): ${error}\nInstall CUDA's headers and set WARMGRAPH_CUDA_INCLUDE to their folder, "
                        "make pip work (Debian and Ubuntu: apt-get install python3-pip), or leave the CUDA backend out with "
                        "-DWARMGRAPH_CUDA=OFF")
  endif()
  file(GLOB files ${wheels}/*.whl)
  foreach(wheel IN LISTS files)
    file(ARCHIVE_EXTRACT INPUT ${wheel} DESTINATION ${folder}/${wanted} PATTERNS "*/include/*" "*/License.txt")
  endforeach()
  file(REMOVE_RECURSE ${wheels})
  file(TOUCH ${folder}/${wanted}/complete)
endfunction()

if(NOT WARMGRAPH_CUDA MATCHES "^(AUTO|ON|PYPI|OFF)$")
  message(FATAL_ERROR "WARMGRAPH_CUDA is '${WARMGRAPH_CUDA}', expected AUTO, ON, PYPI or OFF")
endif()
if(WARMGRAPH_CUDA MATCHES "^(AUTO|ON)$")
  find_package(CUDAToolkit QUIET)
  find_path(WARMGRAPH_CUDA_INCLUDE cuda.h HINTS ${CUDAToolkit_INCLUDE_DIRS} /usr/local/cuda/include DOC "folder of cuda.h")
  find_path(WARMGRAPH_NVRTC_INCLUDE nvrtc.h HINTS ${WARMGRAPH_CUDA_INCLUDE} DOC "folder of nvrtc.h")
  find_path(WARMGRAPH_CUPTI_INCLUDE cupti.h HINTS ${WARMGRAPH_CUDA_INCLUDE} ${WARMGRAPH_CUDA_INCLUDE}/../extras/CUPTI/include
            DOC "folder of cupti.h")
  mark_as_advanced(WARMGRAPH_CUDA_INCLUDE WARMGRAPH_NVRTC_INCLUDE WARMGRAPH_CUPTI_INCLUDE)
  set(found OFF)
  if(WARMGRAPH_CUDA_INCLUDE AND WARMGRAPH_NVRTC_INCLUDE AND WARMGRAPH_CUPTI_INCLUDE)
    set(found ON)
  endif()
endif()
if(WARMGRAPH_CUDA STREQUAL "PYPI" OR (WARMGRAPH_CUDA STREQUAL "ON" AND NOT found))
  warmgraph_fetch_cuda_headers(${packages} ${WARMGRAPH_CUDA_HEADERS_FOLDER})
  file(SHA256 ${packages} fetched)
  foreach(kind CUDA NVRTC CUPTI)
    # Remove it from the CMake cache, so that a later configuration with AUTO or ON searches the machine again.
    unset(WARMGRAPH_${kind}_INCLUDE CACHE)
    set(WARMGRAPH_${kind}_INCLUDE ${WARMGRAPH_CUDA_HEADERS_FOLDER}/${fetched}/nvidia/cu13/include)
  endforeach()
elseif(WARMGRAPH_CUDA STREQUAL "OFF" OR NOT found)
  foreach(kind CUDA NVRTC CUPTI)
    unset(WARMGRAPH_${kind}_INCLUDE CACHE)
    unset(WARMGRAPH_${kind}_INCLUDE)
  endforeach()
endif()

if(WARMGRAPH_CUDA_INCLUDE)
  message(STATUS "CUDA: headers in ${WARMGRAPH_CUDA_INCLUDE}")
elseif(WARMGRAPH_CUDA STREQUAL "OFF")
  message(STATUS "CUDA: the backend is left out (WARMGRAPH_CUDA=OFF)")
else()
  message(WARNING "CUDA: cuda.h, nvrtc.h or cupti.h was not found, so the CUDA backend is left out. -DWARMGRAPH_CUDA=ON fetches "
                  "the headers from PyPI; -DWARMGRAPH_CUDA=OFF leaves the backend out without this warning")
endif()
