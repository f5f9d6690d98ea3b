# SPDX-License-Identifier: Apache-2.0
# One place that says which packages plumbline uses. Installed packages come first, and a target that the enclosing
# project already has is taken as it is; pinned releases are downloaded only with PLUMBLINE_FETCH_DEPS=ON.

include(FetchContent)

# plumbline_require(NAME TARGET target [VERSION v] DEBIAN package REPOSITORY url COMMIT sha)
# Finds a package or fails with the command that installs it. The commit is that of a release: a tag can be moved.
macro(plumbline_require NAME)
  cmake_parse_arguments(_plumbline "" "TARGET;VERSION;DEBIAN;REPOSITORY;COMMIT" "" ${ARGN})
  if(NOT TARGET ${_plumbline_TARGET})
    find_package(${NAME} ${_plumbline_VERSION} QUIET)
  endif()
  if(NOT TARGET ${_plumbline_TARGET} AND PLUMBLINE_FETCH_DEPS)
    message(STATUS "plumbline: downloading ${NAME} (PLUMBLINE_FETCH_DEPS=ON)")
    FetchContent_Declare(${NAME} GIT_REPOSITORY ${_plumbline_REPOSITORY} GIT_TAG ${_plumbline_COMMIT} SYSTEM)
    FetchContent_MakeAvailable(${NAME})
  endif()
  if(NOT TARGET ${_plumbline_TARGET})
    message(FATAL_ERROR "plumbline needs ${NAME} ${_plumbline_VERSION}, which was not found. Install it (Debian and "
      "Ubuntu: apt-get install ${_plumbline_DEBIAN}), name its prefix in CMAKE_PREFIX_PATH or ${NAME}_ROOT, or "
      "configure with -DPLUMBLINE_FETCH_DEPS=ON.")
  endif()
endmacro()

macro(plumbline_require_json)
  plumbline_require(nlohmann_json TARGET nlohmann_json::nlohmann_json VERSION 3.10 DEBIAN nlohmann-json3-dev
    REPOSITORY https://github.com/nlohmann/json.git COMMIT 9cca280a4d0ccf0c08f47a99aa71d1b0e52f8d03) # 3.11.3
endmacro()

macro(plumbline_require_cli)
  plumbline_require(CLI11 TARGET CLI11::CLI11 VERSION 2.1 DEBIAN libcli11-dev
    REPOSITORY https://github.com/CLIUtils/CLI11.git COMMIT 6c7b07a878ad834957b98d0f9ce1dbe0cb204fc9) # 2.4.2
endmacro()

macro(plumbline_require_doctest)
  plumbline_require(doctest TARGET doctest::doctest DEBIAN doctest-dev
    REPOSITORY https://github.com/doctest/doctest.git COMMIT ae7a13539fb71f270b87eb2e874fbac80bc8dda2) # 2.4.11
endmacro()

# Sets VAR to TRUE where a backend is to be built: the setting is ON, or AUTO and its packages were found.
# REASON is what AUTO says when it leaves the backend out and what ON fails with.
function(plumbline_decide VAR NAME SETTING FOUND REASON)
  if(NOT SETTING MATCHES "^(AUTO|ON|OFF|TRUE|FALSE|1|0)$")
    message(FATAL_ERROR "plumbline: ${NAME} backend: ${SETTING} is not AUTO, ON or OFF")
  endif()
  set(decided FALSE)
  if(SETTING STREQUAL "AUTO")
    set(decided ${FOUND})
    if(NOT FOUND)
      message(STATUS "plumbline: ${NAME} backend left out: ${REASON}")
    endif()
  elseif(SETTING)
    if(NOT FOUND)
      message(FATAL_ERROR "plumbline: the ${NAME} backend was asked for, but ${REASON}")
    endif()
    set(decided TRUE)
  endif()
  set(${VAR} ${decided} PARENT_SCOPE)
endfunction()
