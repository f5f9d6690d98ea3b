# SPDX-License-Identifier: Apache-2.0
# plumbline_build_facts(TARGET SOURCE): tells the file of a program that says PLUMBLINE_BUILD_FACTS
# (plumbline/environment/binary.hpp) how the program is built, for the fingerprint. One file, so that a new commit compiles
# one file again.
function(plumbline_build_facts TARGET SOURCE)
  set(git "")
  find_program(PLUMBLINE_GIT_PROGRAM git)
  mark_as_advanced(PLUMBLINE_GIT_PROGRAM)
  if(PLUMBLINE_GIT_PROGRAM)
    execute_process(COMMAND "${PLUMBLINE_GIT_PROGRAM}" describe --always --abbrev=12 --exclude *
      WORKING_DIRECTORY "${CMAKE_CURRENT_SOURCE_DIR}" OUTPUT_VARIABLE git OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
    execute_process(COMMAND "${PLUMBLINE_GIT_PROGRAM}" rev-parse --git-path logs/HEAD
      WORKING_DIRECTORY "${CMAKE_CURRENT_SOURCE_DIR}" OUTPUT_VARIABLE log OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
    get_filename_component(log "${log}" ABSOLUTE BASE_DIR "${CMAKE_CURRENT_SOURCE_DIR}")
    if(NOT git STREQUAL "" AND EXISTS "${log}")
      # Every commit and checkout is written there: CMake then asks again.
      set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${log}")
    endif()
  endif()
  string(TOUPPER "${CMAKE_BUILD_TYPE}" type)
  set(cuda_flags "")
  set(cuda_compiler "")
  set(architectures "")
  if(PLUMBLINE_HAVE_CUDA OR TARGET plumbline_cuda_program)
    string(STRIP "${CMAKE_CUDA_FLAGS} ${CMAKE_CUDA_FLAGS_${type}}" cuda_flags)
    set(cuda_compiler "nvcc ${CUDAToolkit_VERSION}")
    plumbline_cuda_architectures(architectures)
    string(REPLACE ";" "," architectures "${architectures}")
  endif()
  string(STRIP "${CMAKE_CXX_FLAGS} ${CMAKE_CXX_FLAGS_${type}}" flags)
  set_property(SOURCE "${SOURCE}" APPEND PROPERTY COMPILE_DEFINITIONS
    "PLUMBLINE_BUILD_TYPE=\"${CMAKE_BUILD_TYPE}\"" "PLUMBLINE_CXX_FLAGS=\"${flags}\""
    "PLUMBLINE_CUDA_FLAGS=\"${cuda_flags}\"" "PLUMBLINE_CUDA_ARCHITECTURES=\"${architectures}\""
    "PLUMBLINE_CUDA_COMPILER=\"${cuda_compiler}\"" "PLUMBLINE_GIT=\"${git}\"")
endfunction()
