# SPDX-License-Identifier: Apache-2.0
# The library's targets. All are INTERFACE: plumbline is headers only.
#
#   plumbline::core    everything up to report and run; free of CUDA
#   plumbline::cpu     + the CPU backend (oneDNN)          exists where PLUMBLINE_HAVE_CPU
#   plumbline::cuda    + the CUDA backend (cublasLt, cuDNN) exists where PLUMBLINE_HAVE_CUDA
#   plumbline::gbench  + the Google Benchmark adapter      exists where PLUMBLINE_HAVE_GBENCH
#
# The plain targets plumbline_cpu, plumbline_cuda and plumbline_gbench always exist, because the installed package
# offers every component whatever this machine has; link the :: names, which exist only where they work.

include(PlumblineDependencies)
include(PlumblineCuda)
include(PlumblineBuildFacts)

# Targets found here serve the whole build tree, also a project that adds plumbline as a subdirectory.
set(CMAKE_FIND_PACKAGE_TARGETS_GLOBAL TRUE)

add_library(plumbline_core INTERFACE)
add_library(plumbline::core ALIAS plumbline_core)
target_compile_features(plumbline_core INTERFACE cxx_std_20)
target_include_directories(plumbline_core INTERFACE
  "$<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>" "$<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>")
plumbline_require_json()
find_package(Threads REQUIRED)
# CLI11 is needed by run/ alone and libjpeg-turbo by loader/jpeg/ alone: programs that have them get them, the others
# are not asked for them.
target_link_libraries(plumbline_core INTERFACE nlohmann_json::nlohmann_json Threads::Threads ${CMAKE_DL_LIBS}
  "$<TARGET_NAME_IF_EXISTS:CLI11::CLI11>" "$<TARGET_NAME_IF_EXISTS:JPEG::JPEG>")
if(NOT TARGET JPEG::JPEG)
  find_package(JPEG QUIET)
endif()
if(PLUMBLINE_BUILD_BENCH OR PLUMBLINE_BUILD_TOOLS)
  plumbline_require_cli()
elseif(NOT TARGET CLI11::CLI11)
  find_package(CLI11 2.1 QUIET)
endif()

add_library(plumbline_cpu INTERFACE)
target_link_libraries(plumbline_cpu INTERFACE plumbline_core oneDNN::dnnl)
if(PLUMBLINE_CPU)
  find_package(oneDNN 2.6 QUIET)
endif()
plumbline_decide(PLUMBLINE_HAVE_CPU CPU "${PLUMBLINE_CPU}" "${oneDNN_FOUND}"
  "oneDNN was not found (Debian and Ubuntu: apt-get install libdnnl-dev, or set oneDNN_ROOT)")
if(PLUMBLINE_HAVE_CPU)
  add_library(plumbline::cpu ALIAS plumbline_cpu)
  message(STATUS "plumbline: CPU backend with oneDNN ${oneDNN_VERSION}")
endif()

add_library(plumbline_cuda INTERFACE)
target_link_libraries(plumbline_cuda INTERFACE plumbline_core CUDA::cudart CUDA::cublasLt CUDNN::cudnn)
# Device code calls the constexpr generators of workload/random.hpp, so that host and device share them.
target_compile_options(plumbline_cuda INTERFACE "$<$<COMPILE_LANGUAGE:CUDA>:--expt-relaxed-constexpr>")
set(plumbline_cuda_found FALSE)
if(PLUMBLINE_CUDA)
  plumbline_find_cuda(plumbline_cuda_found plumbline_cuda_reason)
endif()
plumbline_decide(PLUMBLINE_HAVE_CUDA CUDA "${PLUMBLINE_CUDA}" "${plumbline_cuda_found}" "${plumbline_cuda_reason}")
if(PLUMBLINE_HAVE_CUDA)
  add_library(plumbline::cuda ALIAS plumbline_cuda)
  message(STATUS "plumbline: CUDA backend with toolkit ${CUDAToolkit_VERSION}, cuDNN ${CUDNN_VERSION}")
endif()

add_library(plumbline_gbench INTERFACE)
target_link_libraries(plumbline_gbench INTERFACE plumbline_core benchmark::benchmark)
if(NOT TARGET benchmark::benchmark)
  find_package(benchmark 1.7 QUIET)
endif()
set(PLUMBLINE_HAVE_GBENCH FALSE)
if(TARGET benchmark::benchmark)
  set(PLUMBLINE_HAVE_GBENCH TRUE)
  add_library(plumbline::gbench ALIAS plumbline_gbench)
  # Google Benchmark before 1.9 does not say which version it is; the fingerprint wants to know.
  if(benchmark_VERSION)
    target_compile_definitions(plumbline_gbench INTERFACE
      "$<BUILD_INTERFACE:PLUMBLINE_GBENCH_VERSION=\"${benchmark_VERSION}\">")
  endif()
  message(STATUS "plumbline: adapter for Google Benchmark ${benchmark_VERSION}")
endif()

# Warnings for our own code only: never handed to users.
add_library(plumbline_warnings INTERFACE)
target_compile_options(plumbline_warnings INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-Wall;-Wextra;-Wconversion;-Wshadow>
  # g++ 12 warns of overlapping copies inside std::string where there are none (GCC bug 105651).
  $<$<AND:$<COMPILE_LANG_AND_ID:CXX,GNU>,$<VERSION_LESS:$<CXX_COMPILER_VERSION>,13>>:-Wno-restrict>)
