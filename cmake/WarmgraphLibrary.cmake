# The library that users link, in two kinds from the same objects: warmgraph_static and warmgraph_shared. Both are built
# and installed; `warmgraph::warmgraph` is the kind that BUILD_SHARED_LIBS names.
include_guard(GLOBAL)
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

# Only headers that users may include are installed.
set(WARMGRAPH_PUBLIC_INCLUDE_DIRS
    ${PROJECT_SOURCE_DIR}/base/include ${PROJECT_SOURCE_DIR}/backends/api/include ${PROJECT_SOURCE_DIR}/api/include
    ${PROJECT_SOURCE_DIR}/c/include ${PROJECT_SOURCE_DIR}/replayer/include)
set(WARMGRAPH_PUBLIC_HEADERS
    base/include/warmgraph/export.hpp
    base/include/warmgraph/base/artifact_kind.hpp
    base/include/warmgraph/base/dtype.hpp
    base/include/warmgraph/base/error_code.hpp
    backends/api/include/warmgraph/backends/address.hpp
    api/include/warmgraph/adoption.hpp
    api/include/warmgraph/arguments.hpp
    api/include/warmgraph/artifacts.hpp
    api/include/warmgraph/cache.hpp
    api/include/warmgraph/detail/code_address.hpp
    api/include/warmgraph/device.hpp
    api/include/warmgraph/exception.hpp
    api/include/warmgraph/function.hpp
    api/include/warmgraph/pair.hpp
    api/include/warmgraph/preload.hpp
    api/include/warmgraph/profile.hpp
    api/include/warmgraph/recorder.hpp
    api/include/warmgraph/spec.hpp
    api/include/warmgraph/statistics.hpp
    api/include/warmgraph/stored_entry.hpp
    api/include/warmgraph/stream.hpp
    api/include/warmgraph/tier.hpp
    api/include/warmgraph/tuning.hpp
    api/include/warmgraph/warmgraph.hpp
    c/include/warmgraph/warmgraph.h
    replayer/include/warmgraph/replay.h)

get_property(components GLOBAL PROPERTY WARMGRAPH_COMPONENTS)
get_property(libraries GLOBAL PROPERTY WARMGRAPH_LIBRARIES)
list(REMOVE_DUPLICATES libraries)
# nlohmann_json is header-only and compiled into the objects: users do not need it.
list(REMOVE_ITEM libraries nlohmann_json::nlohmann_json)
set(objects "")
foreach(component IN LISTS components)
  list(APPEND objects $<TARGET_OBJECTS:${component}>)
endforeach()

foreach(kind IN ITEMS static shared)
  string(TOUPPER ${kind} type)
  set(target warmgraph_${kind})
  add_library(${target} ${type} ${objects})
  add_library(warmgraph::${kind} ALIAS ${target})
  target_compile_features(${target} INTERFACE cxx_std_20)
  foreach(directory IN LISTS WARMGRAPH_PUBLIC_INCLUDE_DIRS)
    target_include_directories(${target} INTERFACE $<BUILD_INTERFACE:${directory}>)
  endforeach()
  target_link_libraries(${target} PRIVATE ${libraries})
  set_target_properties(${target} PROPERTIES OUTPUT_NAME warmgraph EXPORT_NAME ${kind} LINKER_LANGUAGE CXX)
  install(TARGETS ${target} EXPORT warmgraph-${kind} INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
          ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
  if(NOT WARMGRAPH_RELOCATABLE) # a relocatable build links its own archives, which it does not install
    install(EXPORT warmgraph-${kind} NAMESPACE warmgraph:: FILE warmgraph-${kind}.cmake
            DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/warmgraph)
  endif()
endforeach()

target_compile_definitions(warmgraph_static INTERFACE WARMGRAPH_STATIC)
# Templates of fmt, spdlog and flatbuffers have default visibility: the version script hides them.
set(map ${CMAKE_CURRENT_LIST_DIR}/warmgraph.map)
target_link_options(warmgraph_shared PRIVATE LINKER:--version-script=${map} ${WARMGRAPH_NO_UNDEFINED})
set_target_properties(warmgraph_shared PROPERTIES VERSION ${PROJECT_VERSION} SOVERSION 0 LINK_DEPENDS ${map})

set(WARMGRAPH_DEFAULT_KIND static)
if(BUILD_SHARED_LIBS)
  set(WARMGRAPH_DEFAULT_KIND shared)
endif()
add_library(warmgraph::warmgraph ALIAS warmgraph_${WARMGRAPH_DEFAULT_KIND})

foreach(header IN LISTS WARMGRAPH_PUBLIC_HEADERS)
  string(REGEX REPLACE "^.*/include/" "" path ${header})
  get_filename_component(folder ${path} DIRECTORY)
  install(FILES ${PROJECT_SOURCE_DIR}/${header} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/${folder})
endforeach()

set(package ${CMAKE_INSTALL_LIBDIR}/cmake/warmgraph)
configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/warmgraph-config.cmake.in
  ${PROJECT_BINARY_DIR}/package/warmgraph-config.cmake INSTALL_DESTINATION ${package})
# Before 1.0 a minor version may change the interface.
write_basic_package_version_file(${PROJECT_BINARY_DIR}/package/warmgraph-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/package/warmgraph-config.cmake
              ${PROJECT_BINARY_DIR}/package/warmgraph-config-version.cmake DESTINATION ${package})

file(RELATIVE_PATH WARMGRAPH_PC_TO_PREFIX /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
string(REGEX REPLACE "/$" "" WARMGRAPH_PC_TO_PREFIX "${WARMGRAPH_PC_TO_PREFIX}")
configure_file(${CMAKE_CURRENT_LIST_DIR}/warmgraph.pc.in ${PROJECT_BINARY_DIR}/package/warmgraph.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/package/warmgraph.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
# Keeps the layout of the repository, so that links between these files still work.
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE ${PROJECT_SOURCE_DIR}/README.md ${PROJECT_SOURCE_DIR}/CHANGELOG.md
        DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/docs DESTINATION ${CMAKE_INSTALL_DOCDIR} FILES_MATCHING PATTERN "*.md")
