# SPDX-License-Identifier: Apache-2.0
#[=[
FindoneDNN: oneDNN 2.x or 3.x by header and library, never through its packaged configuration: Debian's
dnnl-config.cmake requires OpenCL's headers and ends the configure step where they are absent, even with QUIET.

Looks in oneDNN_ROOT or DNNL_ROOT (variable or environment) and the system folders. A header and a library of different
major versions count as not found, with the reason.

Sets oneDNN_FOUND, oneDNN_VERSION, oneDNN_INCLUDE_DIR, oneDNN_LIBRARY and the target oneDNN::dnnl.
#]=]

find_path(oneDNN_INCLUDE_DIR NAMES oneapi/dnnl/dnnl_version.h
  HINTS ${oneDNN_ROOT} ENV oneDNN_ROOT ${DNNL_ROOT} ENV DNNL_ROOT PATH_SUFFIXES include)
get_filename_component(_oneDNN_prefix "${oneDNN_INCLUDE_DIR}" DIRECTORY)
find_library(oneDNN_LIBRARY NAMES dnnl
  HINTS ${oneDNN_ROOT} ENV oneDNN_ROOT ${DNNL_ROOT} ENV DNNL_ROOT "${_oneDNN_prefix}"
  PATH_SUFFIXES lib lib64 lib/${CMAKE_LIBRARY_ARCHITECTURE})

unset(oneDNN_VERSION)
if(oneDNN_INCLUDE_DIR)
  file(STRINGS "${oneDNN_INCLUDE_DIR}/oneapi/dnnl/dnnl_version.h" _oneDNN_lines
    REGEX "^#define[ \t]+DNNL_VERSION_(MAJOR|MINOR|PATCH)[ \t]+[0-9]+")
  foreach(_oneDNN_part IN ITEMS MAJOR MINOR PATCH)
    if("${_oneDNN_lines}" MATCHES "DNNL_VERSION_${_oneDNN_part}[ \t]+([0-9]+)")
      set(_oneDNN_${_oneDNN_part} "${CMAKE_MATCH_1}")
    else()
      set(_oneDNN_${_oneDNN_part} 0)
    endif()
  endforeach()
  set(oneDNN_VERSION "${_oneDNN_MAJOR}.${_oneDNN_MINOR}.${_oneDNN_PATCH}")
endif()

set(_oneDNN_reason "")
if(oneDNN_INCLUDE_DIR AND oneDNN_LIBRARY)
  get_filename_component(_oneDNN_real "${oneDNN_LIBRARY}" REALPATH)
  if(_oneDNN_real MATCHES "\\.so\\.([0-9]+)" AND NOT CMAKE_MATCH_1 EQUAL _oneDNN_MAJOR)
    set(_oneDNN_reason "headers in ${oneDNN_INCLUDE_DIR} are ${oneDNN_VERSION}, but the library is ${_oneDNN_real}: \
set oneDNN_ROOT to one complete installation")
  endif()
endif()

include(FindPackageHandleStandardArgs)
if(_oneDNN_reason STREQUAL "")
  find_package_handle_standard_args(oneDNN
    REQUIRED_VARS oneDNN_LIBRARY oneDNN_INCLUDE_DIR VERSION_VAR oneDNN_VERSION HANDLE_VERSION_RANGE)
else()
  set(_oneDNN_agrees "")
  find_package_handle_standard_args(oneDNN REQUIRED_VARS _oneDNN_agrees REASON_FAILURE_MESSAGE "${_oneDNN_reason}")
endif()
mark_as_advanced(oneDNN_INCLUDE_DIR oneDNN_LIBRARY)

if(oneDNN_FOUND AND NOT TARGET oneDNN::dnnl)
  add_library(oneDNN::dnnl UNKNOWN IMPORTED)
  set_target_properties(oneDNN::dnnl PROPERTIES
    IMPORTED_LOCATION "${oneDNN_LIBRARY}" INTERFACE_INCLUDE_DIRECTORIES "${oneDNN_INCLUDE_DIR}")
  if(CMAKE_FIND_PACKAGE_TARGETS_GLOBAL)
    set_target_properties(oneDNN::dnnl PROPERTIES IMPORTED_GLOBAL TRUE)
  endif()
endif()
