# SPDX-License-Identifier: Apache-2.0
# plumbline_add_test(NAME SOURCES... [LIBS targets...] [LABELS labels...])
# One doctest program; doctest's main comes from tests/main.cpp.
plumbline_require_doctest()
if(NOT TARGET plumbline_test_main)
  add_library(plumbline_test_main OBJECT "${PROJECT_SOURCE_DIR}/tests/main.cpp")
  target_link_libraries(plumbline_test_main PUBLIC doctest::doctest)
  target_compile_features(plumbline_test_main PRIVATE cxx_std_20)
endif()

function(plumbline_add_test NAME)
  cmake_parse_arguments(ARG "" "TIMEOUT" "SOURCES;LIBS;LABELS" ${ARGN})
  add_executable(test_${NAME} ${ARG_SOURCES} ${ARG_UNPARSED_ARGUMENTS})
  target_link_libraries(test_${NAME} PRIVATE plumbline_test_main plumbline::core plumbline_warnings doctest::doctest
    ${ARG_LIBS})
  target_compile_definitions(test_${NAME} PRIVATE PLUMBLINE_TEST_DATA="${PROJECT_SOURCE_DIR}/tests/data")
  add_test(NAME ${NAME} COMMAND test_${NAME} --no-version)
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 120)
  endif()
  set_tests_properties(${NAME} PROPERTIES TIMEOUT ${ARG_TIMEOUT} LABELS "${ARG_LABELS}" SKIP_RETURN_CODE 77)
endfunction()
