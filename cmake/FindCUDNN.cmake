# SPDX-License-Identifier: Apache-2.0
#[=[
FindCUDNN: NVIDIA cuDNN, headers and library of one and the same installation.

Looks in CUDNN_ROOT (variable or environment), the CUDA toolkit, the system folders, and the layout of the pip wheels
(<site-packages>/nvidia/cudnn/{include,lib}, where the library has no unversioned name). A header and a library of
different versions count as not found, with the reason: such a pair compiles and then fails at run time.

Sets CUDNN_FOUND, CUDNN_VERSION, CUDNN_INCLUDE_DIR, CUDNN_LIBRARY and the target CUDNN::cudnn.
#]=]

# Folders of pip wheels: the active virtual environment first, then the usual site folders.
set(_CUDNN_wheels "")
foreach(_CUDNN_prefix IN ITEMS "$ENV{VIRTUAL_ENV}" "$ENV{CONDA_PREFIX}" "$ENV{HOME}/.local" /usr/local /usr)
  if(NOT _CUDNN_prefix STREQUAL "" AND IS_DIRECTORY "${_CUDNN_prefix}/lib")
    file(GLOB _CUDNN_found LIST_DIRECTORIES true
      "${_CUDNN_prefix}/lib/python3*/site-packages/nvidia/cudnn"
      "${_CUDNN_prefix}/lib/python3*/dist-packages/nvidia/cudnn")
    list(APPEND _CUDNN_wheels ${_CUDNN_found})
  endif()
endforeach()

find_path(CUDNN_INCLUDE_DIR NAMES cudnn_version.h
  HINTS ${CUDNN_ROOT} ENV CUDNN_ROOT ${CUDAToolkit_INCLUDE_DIRS} ${CUDAToolkit_ROOT} /usr/local/cuda
  PATHS ${_CUDNN_wheels}
  PATH_SUFFIXES include)

unset(CUDNN_VERSION)
if(CUDNN_INCLUDE_DIR)
  file(STRINGS "${CUDNN_INCLUDE_DIR}/cudnn_version.h" _CUDNN_lines
    REGEX "^#define[ \t]+CUDNN_(MAJOR|MINOR|PATCHLEVEL)[ \t]+[0-9]+")
  foreach(_CUDNN_part IN ITEMS MAJOR MINOR PATCHLEVEL)
    if("${_CUDNN_lines}" MATCHES "CUDNN_${_CUDNN_part}[ \t]+([0-9]+)")
      set(_CUDNN_${_CUDNN_part} "${CMAKE_MATCH_1}")
    else()
      set(_CUDNN_${_CUDNN_part} 0)
    endif()
  endforeach()
  set(CUDNN_VERSION "${_CUDNN_MAJOR}.${_CUDNN_MINOR}.${_CUDNN_PATCHLEVEL}")

  # The library beside the headers first, so that the pair comes from one installation where that is possible.
  get_filename_component(_CUDNN_prefix "${CUDNN_INCLUDE_DIR}" DIRECTORY)
  find_library(CUDNN_LIBRARY NAMES cudnn libcudnn.so.${_CUDNN_MAJOR}
    HINTS ${CUDNN_ROOT} ENV CUDNN_ROOT "${_CUDNN_prefix}" ${CUDAToolkit_LIBRARY_DIR}
    PATHS ${_CUDNN_wheels}
    PATH_SUFFIXES lib lib64 lib/${CMAKE_LIBRARY_ARCHITECTURE})
endif()

set(_CUDNN_reason "")
if(CUDNN_LIBRARY)
  # libcudnn.so -> libcudnn.so.9.19.0 (packages) or libcudnn.so.9 (wheels): compare as much as the name tells.
  get_filename_component(_CUDNN_real "${CUDNN_LIBRARY}" REALPATH)
  if(_CUDNN_real MATCHES "\\.so\\.([0-9]+(\\.[0-9]+)*)$")
    set(_CUDNN_file_version "${CMAKE_MATCH_1}")
    string(FIND "${CUDNN_VERSION}." "${_CUDNN_file_version}." _CUDNN_at)
    if(NOT _CUDNN_at EQUAL 0)
      set(_CUDNN_reason "headers in ${CUDNN_INCLUDE_DIR} are ${CUDNN_VERSION}, but the library ${_CUDNN_real} is \
${_CUDNN_file_version}: set CUDNN_ROOT to one complete installation")
    endif()
  endif()
endif()

include(FindPackageHandleStandardArgs)
if(_CUDNN_reason STREQUAL "")
  find_package_handle_standard_args(CUDNN
    REQUIRED_VARS CUDNN_LIBRARY CUDNN_INCLUDE_DIR VERSION_VAR CUDNN_VERSION HANDLE_VERSION_RANGE)
else()
  set(_CUDNN_agrees "")
  find_package_handle_standard_args(CUDNN REQUIRED_VARS _CUDNN_agrees REASON_FAILURE_MESSAGE "${_CUDNN_reason}")
endif()
mark_as_advanced(CUDNN_INCLUDE_DIR CUDNN_LIBRARY)

if(CUDNN_FOUND AND NOT TARGET CUDNN::cudnn)
  add_library(CUDNN::cudnn UNKNOWN IMPORTED)
  set_target_properties(CUDNN::cudnn PROPERTIES
    IMPORTED_LOCATION "${CUDNN_LIBRARY}" INTERFACE_INCLUDE_DIRECTORIES "${CUDNN_INCLUDE_DIR}")
  if(CMAKE_FIND_PACKAGE_TARGETS_GLOBAL)
    set_target_properties(CUDNN::cudnn PROPERTIES IMPORTED_GLOBAL TRUE)
  endif()
endif()
