# SPDX-License-Identifier: Apache-2.0
# Read by cpack for each generator. The archive is one file that runs where it is unpacked, so it carries the
# libraries; a Debian package depends on the packages that have them.
if(CPACK_GENERATOR STREQUAL "TGZ")
  set(CPACK_COMPONENTS_ALL tools libraries)
  set(CPACK_ARCHIVE_COMPONENT_INSTALL ON)
  set(CPACK_COMPONENT_INCLUDE_TOPLEVEL_DIRECTORY ON) # it unpacks into one folder
  set(CPACK_COMPONENTS_GROUPING ALL_COMPONENTS_IN_ONE)
endif()
