# SPDX-License-Identifier: Apache-2.0
#[=[
FindoneDNN: oneDNN 2.x or 3.x by header and library, never through its packaged configuration: Debian's
dnnl-config.cmake requires OpenCL's headers and ends the configure step where they are absent, even with QUIET.

Looks in oneDNN_ROOT or DNNL_ROOT (variable or environment) and the system folders. A header and a library of different
major versions count as not found, with the reason.

Sets oneDNN_FOUND, oneDNN_VERSION, oneDNN_INCLUDE_DIR, oneDNN_LIBRARY and the target oneDNN::dnnl.
#]=]

include("${CMAKE_CURRENT_LIST_DIR}/PlumblineFind.cmake")

find_path(oneDNN_INCLUDE_DIR NAMES oneapi/dnnl/dnnl_version.h
  HINTS ${oneDNN_ROOT} ENV oneDNN_ROOT ${DNNL_ROOT} ENV DNNL_ROOT PATH_SUFFIXES include)
get_filename_component(_oneDNN_prefix "${oneDNN_INCLUDE_DIR}" DIRECTORY)
find_library(oneDNN_LIBRARY NAMES dnnl
  HINTS ${oneDNN_ROOT} ENV oneDNN_ROOT ${DNNL_ROOT} ENV DNNL_ROOT "${_oneDNN_prefix}"
  PATH_SUFFIXES lib lib64 lib/${CMAKE_LIBRARY_ARCHITECTURE})

unset(oneDNN_VERSION)
if(oneDNN_INCLUDE_DIR)
  plumbline_header_version(oneDNN_VERSION "${oneDNN_INCLUDE_DIR}/oneapi/dnnl/dnnl_version.h" DNNL_VERSION_
    MAJOR MINOR PATCH)
endif()

set(_oneDNN_reason "")
if(oneDNN_LIBRARY AND oneDNN_VERSION)
  plumbline_library_disagrees(_oneDNN_reason "${oneDNN_LIBRARY}" "${oneDNN_VERSION}" "${oneDNN_INCLUDE_DIR}" oneDNN_ROOT)
endif()
plumbline_found_package(oneDNN oneDNN::dnnl "${_oneDNN_reason}")
