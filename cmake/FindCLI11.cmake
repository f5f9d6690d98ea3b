# SPDX-License-Identifier: Apache-2.0
#[=[
FindCLI11: CLI11 by its own package configuration, else as a plain folder of headers (CLI11_ROOT or a prefix in
CMAKE_PREFIX_PATH that has CLI/CLI.hpp, with or without include/), as carried to machines that have no package of it.

Sets CLI11_FOUND, CLI11_VERSION and the target CLI11::CLI11.
#]=]

include(FindPackageHandleStandardArgs)
if(NOT TARGET CLI11::CLI11)
  find_package(CLI11 CONFIG QUIET)
endif()
if(TARGET CLI11::CLI11)
  set(_CLI11_how "${CLI11_DIR}")
  if(NOT _CLI11_how)
    set(_CLI11_how "target that exists already")
  endif()
else()
  find_path(CLI11_INCLUDE_DIR NAMES CLI/CLI.hpp HINTS ${CLI11_ROOT} ENV CLI11_ROOT PATH_SUFFIXES include)
  mark_as_advanced(CLI11_INCLUDE_DIR)
  set(_CLI11_how "${CLI11_INCLUDE_DIR}")
  if(CLI11_INCLUDE_DIR)
    foreach(_CLI11_file IN ITEMS Version.hpp CLI.hpp) # the single-header release has it in CLI.hpp
      if(NOT CLI11_VERSION AND EXISTS "${CLI11_INCLUDE_DIR}/CLI/${_CLI11_file}")
        file(STRINGS "${CLI11_INCLUDE_DIR}/CLI/${_CLI11_file}" _CLI11_line REGEX "#define CLI11_VERSION \"[0-9.]+\"")
        if("${_CLI11_line}" MATCHES "\"([0-9.]+)\"")
          set(CLI11_VERSION "${CMAKE_MATCH_1}")
        endif()
      endif()
    endforeach()
  endif()
endif()

find_package_handle_standard_args(CLI11 REQUIRED_VARS _CLI11_how VERSION_VAR CLI11_VERSION)
if(CLI11_FOUND AND NOT TARGET CLI11::CLI11)
  add_library(CLI11::CLI11 INTERFACE IMPORTED)
  set_target_properties(CLI11::CLI11 PROPERTIES INTERFACE_INCLUDE_DIRECTORIES "${CLI11_INCLUDE_DIR}")
  if(CMAKE_FIND_PACKAGE_TARGETS_GLOBAL)
    set_target_properties(CLI11::CLI11 PROPERTIES IMPORTED_GLOBAL TRUE)
  endif()
endif()
