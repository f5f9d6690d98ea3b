# SPDX-License-Identifier: Apache-2.0
#[=[
FindCUDNN: NVIDIA cuDNN, headers and library of one and the same installation.

Looks in CUDNN_ROOT (variable or environment), the CUDA toolkit, the system folders, and the layout of the pip wheels
(<site-packages>/nvidia/cudnn/{include,lib}, where the library has no unversioned name). A header and a library of
different versions count as not found, with the reason: such a pair compiles and then fails at run time.

Sets CUDNN_FOUND, CUDNN_VERSION, CUDNN_INCLUDE_DIR, CUDNN_LIBRARY and the target CUDNN::cudnn.
#]=]

include("${CMAKE_CURRENT_LIST_DIR}/PlumblineFind.cmake")

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
  plumbline_header_version(CUDNN_VERSION "${CUDNN_INCLUDE_DIR}/cudnn_version.h" CUDNN_ MAJOR MINOR PATCHLEVEL)

  # The library beside the headers first, so that the pair comes from one installation where that is possible.
  get_filename_component(_CUDNN_prefix "${CUDNN_INCLUDE_DIR}" DIRECTORY)
  find_library(CUDNN_LIBRARY NAMES cudnn libcudnn.so.${CUDNN_VERSION_MAJOR}
    HINTS ${CUDNN_ROOT} ENV CUDNN_ROOT "${_CUDNN_prefix}" ${CUDAToolkit_LIBRARY_DIR}
    PATHS ${_CUDNN_wheels}
    PATH_SUFFIXES lib lib64 lib/${CMAKE_LIBRARY_ARCHITECTURE})
endif()

set(_CUDNN_reason "")
if(CUDNN_LIBRARY)
  plumbline_library_disagrees(_CUDNN_reason "${CUDNN_LIBRARY}" "${CUDNN_VERSION}" "${CUDNN_INCLUDE_DIR}" CUDNN_ROOT)
endif()
plumbline_found_package(CUDNN CUDNN::cudnn "${_CUDNN_reason}")
