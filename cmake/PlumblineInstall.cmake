# SPDX-License-Identifier: Apache-2.0
# What `cmake --install` and cpack make. Install components:
#   dev        headers, package configuration, pkg-config file: for developers, independent of the machine
#   tools      bench and bench-compare with the suites and schemas they read
#   libraries  the libraries bench needs beside glibc and NVIDIA's, for the archive only
include(CMakePackageConfigHelpers)

get_target_property(plumbline_json_imported nlohmann_json::nlohmann_json IMPORTED)
if(NOT plumbline_json_imported)
  # A package must not promise a dependency that only lives in this build tree.
  message(STATUS "plumbline: no install rules, because nlohmann_json is built here and not installed")
  return()
endif()

set(plumbline_package_dir "${CMAKE_INSTALL_DATADIR}/cmake/plumbline")

install(DIRECTORY "${PROJECT_SOURCE_DIR}/include/plumbline" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}" COMPONENT dev
  FILES_MATCHING PATTERN "*.hpp" PATTERN "*.cuh")

# One export for each component, so that asking for core never names a target of CUDA or oneDNN.
foreach(name IN ITEMS core cpu cuda gbench)
  set_target_properties(plumbline_${name} PROPERTIES EXPORT_NAME ${name})
  install(TARGETS plumbline_${name} EXPORT plumbline-${name} COMPONENT dev)
  install(EXPORT plumbline-${name} NAMESPACE plumbline:: FILE plumbline-${name}.cmake
    DESTINATION "${plumbline_package_dir}" COMPONENT dev)
endforeach()

configure_package_config_file("${CMAKE_CURRENT_LIST_DIR}/plumbline-config.cmake.in"
  "${CMAKE_CURRENT_BINARY_DIR}/plumbline-config.cmake" INSTALL_DESTINATION "${plumbline_package_dir}"
  NO_SET_AND_CHECK_MACRO)
# Before 1.0 a new minor version may break callers.
write_basic_package_version_file("${CMAKE_CURRENT_BINARY_DIR}/plumbline-config-version.cmake"
  COMPATIBILITY SameMinorVersion ARCH_INDEPENDENT)
install(FILES
  "${CMAKE_CURRENT_BINARY_DIR}/plumbline-config.cmake" "${CMAKE_CURRENT_BINARY_DIR}/plumbline-config-version.cmake"
  "${CMAKE_CURRENT_LIST_DIR}/PlumblineBuildFacts.cmake" "${CMAKE_CURRENT_LIST_DIR}/PlumblineCuda.cmake"
  "${CMAKE_CURRENT_LIST_DIR}/plumbline_cuda.cu"
  "${CMAKE_CURRENT_LIST_DIR}/FindCUDNN.cmake" "${CMAKE_CURRENT_LIST_DIR}/FindoneDNN.cmake"
  "${CMAKE_CURRENT_LIST_DIR}/FindCLI11.cmake" "${CMAKE_CURRENT_LIST_DIR}/PlumblineFind.cmake"
  DESTINATION "${plumbline_package_dir}" COMPONENT dev)

configure_file("${CMAKE_CURRENT_LIST_DIR}/plumbline.pc.in" "${CMAKE_CURRENT_BINARY_DIR}/plumbline.pc" @ONLY)
install(FILES "${CMAKE_CURRENT_BINARY_DIR}/plumbline.pc" DESTINATION "${CMAKE_INSTALL_DATADIR}/pkgconfig" COMPONENT dev)

foreach(component IN ITEMS dev tools)
  # Each Debian package has a folder of its own, since two packages must not bring the same file.
  set(folder plumbline-${component})
  install(FILES "${PROJECT_SOURCE_DIR}/LICENSE" "${PROJECT_SOURCE_DIR}/THIRD-PARTY.md"
    DESTINATION "${CMAKE_INSTALL_DATADIR}/doc/${folder}" COMPONENT ${component})
endforeach()

set(plumbline_programs "")
foreach(program IN ITEMS bench bench-compare)
  if(TARGET ${program})
    list(APPEND plumbline_programs ${program})
  endif()
endforeach()
if(plumbline_programs)
  # Beside the program first (the archive), then NVIDIA's usual folder, then where the libraries were at build time.
  set_target_properties(${plumbline_programs} PROPERTIES INSTALL_RPATH "$ORIGIN/../lib;/usr/local/cuda/lib64"
    INSTALL_RPATH_USE_LINK_PATH TRUE)
  # NVIDIA's libraries are what a run measures, and glibc belongs to the node: neither is carried along.
  install(TARGETS ${plumbline_programs}
    RUNTIME_DEPENDENCIES
      PRE_EXCLUDE_REGEXES "^lib(c|m|dl|rt|pthread|resolv)\\.so" "^ld-linux" "^lib(cuda|cudart|cublas|cublasLt|cudnn)[^a-z]"
        "^libnv"
      POST_EXCLUDE_REGEXES "/cuda[^/]*/"
      LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}" COMPONENT libraries EXCLUDE_FROM_ALL
      FRAMEWORK DESTINATION "${CMAKE_INSTALL_LIBDIR}" COMPONENT libraries EXCLUDE_FROM_ALL
    RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}" COMPONENT tools)
  # A program's RUNPATH does not serve the libraries that its libraries need: each carried one looks beside itself.
  install(CODE [[
    find_program(patchelf patchelf)
    if(NOT patchelf)
      message(FATAL_ERROR "the archive needs patchelf (apt-get install patchelf): without it the libraries it carries "
        "would not find each other")
    endif()
    foreach(file IN LISTS CMAKE_INSTALL_MANIFEST_FILES)
      if(file MATCHES "/lib[^/]*\\.so[^/]*$" AND NOT IS_SYMLINK "$ENV{DESTDIR}${file}")
        execute_process(COMMAND "${patchelf}" --set-rpath "\$ORIGIN" "$ENV{DESTDIR}${file}" COMMAND_ERROR_IS_FATAL ANY)
      endif()
    endforeach()
  ]] COMPONENT libraries EXCLUDE_FROM_ALL)
endif()
foreach(data IN ITEMS bench/suites baselines/schema baselines/reference)
  if(IS_DIRECTORY "${PROJECT_SOURCE_DIR}/${data}")
    install(DIRECTORY "${PROJECT_SOURCE_DIR}/${data}" DESTINATION "${CMAKE_INSTALL_DATADIR}/plumbline" COMPONENT tools
      FILES_MATCHING PATTERN "*.json")
  endif()
endforeach()

install(DIRECTORY "${PROJECT_SOURCE_DIR}/tools/recipes" DESTINATION "${CMAKE_INSTALL_DATADIR}/plumbline" COMPONENT tools
  USE_SOURCE_PERMISSIONS)
if(plumbline_programs AND NOT CMAKE_CROSSCOMPILING)
  # Written by the programs themselves, from their option tables.
  set(folder "${CMAKE_CURRENT_BINARY_DIR}/completion")
  file(MAKE_DIRECTORY "${folder}")
  set(made "")
  foreach(program IN LISTS plumbline_programs)
    string(REPLACE "-" "_" function "_${program}")
    add_custom_command(OUTPUT "${folder}/${program}" "${folder}/${function}" VERBATIM
      COMMAND ${program} --completion=bash > "${folder}/${program}"
      COMMAND ${program} --completion=zsh > "${folder}/${function}" DEPENDS ${program})
    list(APPEND made "${folder}/${program}")
    install(FILES "${folder}/${program}" DESTINATION "${CMAKE_INSTALL_DATADIR}/bash-completion/completions"
      COMPONENT tools)
    install(FILES "${folder}/${function}" DESTINATION "${CMAKE_INSTALL_DATADIR}/zsh/site-functions" COMPONENT tools)
  endforeach()
  add_custom_target(plumbline_completion ALL DEPENDS ${made})
endif()

set(CPACK_SYSTEM_NAME "${CMAKE_SYSTEM_NAME}-${CMAKE_SYSTEM_PROCESSOR}")
set(CPACK_PACKAGE_VENDOR "plumbline")
set(CPACK_PACKAGE_CONTACT "plumbline developers <plumbline@localhost>")
set(CPACK_RESOURCE_FILE_LICENSE "${PROJECT_SOURCE_DIR}/LICENSE")
set(CPACK_GENERATOR "TGZ;DEB")
set(CPACK_COMPONENTS_ALL dev tools)
set(CPACK_PROJECT_CONFIG_FILE "${CMAKE_CURRENT_LIST_DIR}/PlumblinePackages.cmake")
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_DEV_PACKAGE_NAME plumbline-dev)
set(CPACK_DEBIAN_DEV_PACKAGE_ARCHITECTURE all)
set(CPACK_DEBIAN_DEV_PACKAGE_DEPENDS "nlohmann-json3-dev (>= 3.10)")
set(CPACK_DEBIAN_DEV_PACKAGE_RECOMMENDS "libdnnl-dev, libbenchmark-dev, libcli11-dev")
set(CPACK_DEBIAN_TOOLS_PACKAGE_NAME plumbline-tools)
set(CPACK_DEBIAN_TOOLS_PACKAGE_SHLIBDEPS ON)
include(CPack)
