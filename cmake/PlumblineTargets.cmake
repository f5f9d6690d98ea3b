# SPDX-License-Identifier: Apache-2.0
# The library's targets. All are INTERFACE: plumbline is headers only.

add_library(plumbline_core INTERFACE)
add_library(plumbline::core ALIAS plumbline_core)
target_compile_features(plumbline_core INTERFACE cxx_std_20)
target_include_directories(plumbline_core INTERFACE
  "$<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>" "$<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>")
find_package(nlohmann_json 3.10 REQUIRED)
find_package(Threads REQUIRED)
target_link_libraries(plumbline_core INTERFACE nlohmann_json::nlohmann_json Threads::Threads ${CMAKE_DL_LIBS})

# Warnings for our own code only: never handed to users.
add_library(plumbline_warnings INTERFACE)
target_compile_options(plumbline_warnings INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-Wall;-Wextra;-Wconversion;-Wshadow>)
