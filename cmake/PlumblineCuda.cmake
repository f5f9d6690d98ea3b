# SPDX-License-Identifier: Apache-2.0
# CUDA for plumbline itself and for projects that use the installed package.

set(PLUMBLINE_CUDA_SOURCE "${CMAKE_CURRENT_LIST_DIR}/plumbline_cuda.cu")

# plumbline_find_cuda(FOUND_VAR REASON_VAR): toolkit (cudart, cublasLt, nvcc) and cuDNN, or the reason why not.
macro(plumbline_find_cuda FOUND_VAR REASON_VAR)
  set(${FOUND_VAR} FALSE)
  find_package(CUDAToolkit 12.0 QUIET)
  if(CUDAToolkit_FOUND)
    find_package(CUDNN 9.0 QUIET)
  endif()
  if(NOT CUDAToolkit_FOUND)
    set(${REASON_VAR} "no CUDA toolkit >= 12.0 was found (set CUDAToolkit_ROOT or put nvcc into PATH)")
  elseif(NOT TARGET CUDA::cudart OR NOT TARGET CUDA::cublasLt)
    set(${REASON_VAR} "the CUDA toolkit in ${CUDAToolkit_ROOT} ${CUDAToolkit_BIN_DIR} has no cudart or no cublasLt")
  elseif(NOT CUDAToolkit_NVCC_EXECUTABLE)
    set(${REASON_VAR} "the CUDA toolkit in ${CUDAToolkit_BIN_DIR} has no nvcc")
  elseif(NOT CUDNN_FOUND)
    set(${REASON_VAR} "no cuDNN >= 9.0 whose header and library agree was found (set CUDNN_ROOT)")
  else()
    set(${FOUND_VAR} TRUE)
  endif()
endmacro()

# plumbline_cuda_architectures(VAR): PLUMBLINE_CUDA_ARCHITECTURES if set, else CMAKE_CUDA_ARCHITECTURES, else those of
# the GPUs in this machine, else 90. Asks nvidia-smi and not nvcc: `native` fails where there is no GPU.
function(plumbline_cuda_architectures VAR)
  set(chosen "${PLUMBLINE_CUDA_ARCHITECTURES}")
  if(NOT chosen AND NOT CMAKE_CUDA_ARCHITECTURES STREQUAL "")
    set(chosen "${CMAKE_CUDA_ARCHITECTURES}")
  endif()
  if(NOT chosen)
    find_program(PLUMBLINE_NVIDIA_SMI nvidia-smi)
    mark_as_advanced(PLUMBLINE_NVIDIA_SMI)
    if(PLUMBLINE_NVIDIA_SMI)
      execute_process(COMMAND "${PLUMBLINE_NVIDIA_SMI}" --query-gpu=compute_cap --format=csv,noheader
        OUTPUT_VARIABLE said ERROR_QUIET RESULT_VARIABLE failed TIMEOUT 30)
      if(failed EQUAL 0)
        string(REGEX MATCHALL "[0-9]+\\.[0-9]+" chosen "${said}")
        string(REPLACE "." "" chosen "${chosen}")
        list(REMOVE_DUPLICATES chosen)
      endif()
    endif()
  endif()
  if(NOT chosen)
    set(chosen 90)
  endif()
  set(${VAR} "${chosen}" PARENT_SCOPE)
endfunction()

# plumbline_enable_cuda(): switches the CUDA language on if it is not. A macro: languages are enabled at file scope.
macro(plumbline_enable_cuda)
  if(NOT CMAKE_CUDA_COMPILER_LOADED)
    plumbline_cuda_architectures(_plumbline_architectures)
    # Named before the compiler is tried: CMake 3.25 would test CUDA 13 with an architecture that it no longer has.
    if(NOT CMAKE_CUDA_ARCHITECTURES)
      set(CMAKE_CUDA_ARCHITECTURES "${_plumbline_architectures}")
    endif()
    if(NOT CMAKE_CUDA_COMPILER AND NOT DEFINED ENV{CUDACXX} AND CUDAToolkit_NVCC_EXECUTABLE)
      set(CMAKE_CUDA_COMPILER "${CUDAToolkit_NVCC_EXECUTABLE}")
    endif()
    enable_language(CUDA)
  endif()
endmacro()

# plumbline_add_cuda(TARGET...): gives programs the CUDA backend and the one .cu file with its device code, which
# is compiled once for all of them. Call it at file scope. The CUDA runtime is the shared one, so that the
# process has exactly one and the fingerprint can say which.
macro(plumbline_add_cuda)
  plumbline_enable_cuda()
  if(NOT TARGET plumbline_cuda_program)
    add_library(plumbline_cuda_program OBJECT "${PLUMBLINE_CUDA_SOURCE}")
    target_link_libraries(plumbline_cuda_program PUBLIC plumbline::cuda)
    plumbline_cuda_architectures(_plumbline_architectures)
    set_target_properties(plumbline_cuda_program PROPERTIES
      CUDA_ARCHITECTURES "${_plumbline_architectures}" CUDA_RUNTIME_LIBRARY Shared POSITION_INDEPENDENT_CODE ON)
    # By flag: CMake 3.25 knows no C++20 for nvcc 13, and would refuse cxx_std_20 for the CUDA language.
    target_compile_options(plumbline_cuda_program PRIVATE "$<$<COMPILE_LANGUAGE:CUDA>:-std=c++20>")
  endif()
  foreach(_plumbline_target ${ARGN})
    target_link_libraries(${_plumbline_target} PRIVATE plumbline_cuda_program)
    # RUNPATH, not RPATH: LD_LIBRARY_PATH must be able to put another library version in front.
    target_link_options(${_plumbline_target} PRIVATE LINKER:--enable-new-dtags)
    set_target_properties(${_plumbline_target} PROPERTIES CUDA_RUNTIME_LIBRARY Shared)
    # A program that was there before the language was switched on has no architectures for .cu files of its own.
    get_target_property(_plumbline_own ${_plumbline_target} CUDA_ARCHITECTURES)
    if(NOT _plumbline_own)
      plumbline_cuda_architectures(_plumbline_architectures)
      set_target_properties(${_plumbline_target} PROPERTIES CUDA_ARCHITECTURES "${_plumbline_architectures}")
    endif()
  endforeach()
endmacro()
