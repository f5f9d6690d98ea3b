# SPDX-License-Identifier: Apache-2.0
# What the find modules of libraries with a version header have in common.

# plumbline_header_version(VAR FILE PREFIX PARTS...): "9.19.0" from the lines "#define PREFIX<part> <number>" of a header,
# a part that is absent counts as 0. Also sets VAR_MAJOR.
function(plumbline_header_version VAR FILE PREFIX)
  file(STRINGS "${FILE}" lines REGEX "^#define[ \t]+${PREFIX}[A-Z]+[ \t]+[0-9]+")
  set(numbers "")
  foreach(part IN LISTS ARGN)
    if("${lines}" MATCHES "${PREFIX}${part}[ \t]+([0-9]+)")
      list(APPEND numbers "${CMAKE_MATCH_1}")
    else()
      list(APPEND numbers 0)
    endif()
  endforeach()
  list(GET numbers 0 major)
  list(JOIN numbers "." version)
  set(${VAR} "${version}" PARENT_SCOPE)
  set(${VAR}_MAJOR "${major}" PARENT_SCOPE)
endfunction()

# plumbline_library_disagrees(VAR LIBRARY VERSION INCLUDE_DIR ROOT): the reason why a library and the headers in INCLUDE_DIR,
# which are of VERSION, do not belong together, "" where they do. Compares as much as the name of the real file tells:
# libcudnn.so.9.19.0 (packages) all, libcudnn.so.9 (wheels) the major version, libdnnl.so.2.6 the first two numbers.
function(plumbline_library_disagrees VAR LIBRARY VERSION INCLUDE_DIR ROOT)
  set(${VAR} "" PARENT_SCOPE)
  get_filename_component(real "${LIBRARY}" REALPATH)
  if(real MATCHES "\\.so\\.([0-9]+(\\.[0-9]+)*)$")
    string(FIND "${VERSION}." "${CMAKE_MATCH_1}." at)
    if(NOT at EQUAL 0)
      set(${VAR} "headers in ${INCLUDE_DIR} are ${VERSION}, but the library ${real} is ${CMAKE_MATCH_1}: set ${ROOT} to \
one complete installation" PARENT_SCOPE)
    endif()
  endif()
endfunction()

# plumbline_found_package(NAME LIBRARY_TARGET REASON): the end of a find module: NAME_FOUND by NAME_LIBRARY, NAME_INCLUDE_DIR
# and NAME_VERSION, not found with REASON where that is not empty, and the imported target.
macro(plumbline_found_package NAME LIBRARY_TARGET REASON)
  include(FindPackageHandleStandardArgs)
  if("${REASON}" STREQUAL "")
    find_package_handle_standard_args(${NAME}
      REQUIRED_VARS ${NAME}_LIBRARY ${NAME}_INCLUDE_DIR VERSION_VAR ${NAME}_VERSION HANDLE_VERSION_RANGE)
  else()
    set(_${NAME}_agrees "")
    find_package_handle_standard_args(${NAME} REQUIRED_VARS _${NAME}_agrees REASON_FAILURE_MESSAGE "${REASON}")
  endif()
  mark_as_advanced(${NAME}_INCLUDE_DIR ${NAME}_LIBRARY)
  if(${NAME}_FOUND AND NOT TARGET ${LIBRARY_TARGET})
    add_library(${LIBRARY_TARGET} UNKNOWN IMPORTED)
    set_target_properties(${LIBRARY_TARGET} PROPERTIES
      IMPORTED_LOCATION "${${NAME}_LIBRARY}" INTERFACE_INCLUDE_DIRECTORIES "${${NAME}_INCLUDE_DIR}")
    if(CMAKE_FIND_PACKAGE_TARGETS_GLOBAL)
      set_target_properties(${LIBRARY_TARGET} PROPERTIES IMPORTED_GLOBAL TRUE)
    endif()
  endif()
endmacro()
