# What others get: libraries, headers, find_package(holdfast), pkg-config, completions, two .deb files.

include(CMakePackageConfigHelpers)

# What is installed is built first, so that `cmake --install` works after a build of any target, such
# as that of `./run demo`. A build that is complete has nothing to do here.
add_custom_target(installed)
install(CODE
  "execute_process(
    COMMAND \"${CMAKE_COMMAND}\" --build \"${CMAKE_BINARY_DIR}\" --target installed
    COMMAND_ERROR_IS_FATAL ANY)"
  ALL_COMPONENTS)

# ---- The library ---------------------------------------------------------------------------------

get_property(floors GLOBAL PROPERTY HOLDFAST_INSTALLED_FLOORS)
set(archives "")
foreach(floor IN LISTS floors)
  install(TARGETS holdfast_${floor} EXPORT holdfast
    ARCHIVE COMPONENT development
    FILE_SET HEADERS COMPONENT development)
  add_dependencies(installed holdfast_${floor})
  # A linker looks for a symbol only in the archives that follow: those who use come first.
  string(PREPEND archives " -lholdfast_${floor}")
endforeach()

set(config_dir ${CMAKE_INSTALL_LIBDIR}/cmake/holdfast)
install(EXPORT holdfast NAMESPACE holdfast:: FILE holdfastTargets.cmake
  DESTINATION ${config_dir} COMPONENT development)
configure_package_config_file(packaging/holdfastConfig.cmake.in
  ${CMAKE_BINARY_DIR}/packaging/holdfastConfig.cmake
  INSTALL_DESTINATION ${config_dir})
write_basic_package_version_file(${CMAKE_BINARY_DIR}/packaging/holdfastConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)  # Before 1.0 a minor version may change anything.
install(FILES
  ${CMAKE_BINARY_DIR}/packaging/holdfastConfig.cmake
  ${CMAKE_BINARY_DIR}/packaging/holdfastConfigVersion.cmake
  DESTINATION ${config_dir} COMPONENT development)

# The prefix is told from where the file lies, so that an installed tree can be moved.
file(RELATIVE_PATH prefix_from_pc /prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig /prefix)
string(REGEX REPLACE "/$" "" prefix_from_pc ${prefix_from_pc})
configure_file(packaging/holdfast.pc.in ${CMAKE_BINARY_DIR}/packaging/holdfast.pc @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/packaging/holdfast.pc
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT development)
install(FILES LICENSE RENAME copyright
  DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/libholdfast-dev COMPONENT development)

# ---- The binary ----------------------------------------------------------------------------------

if(TARGET holdfast)
  install(TARGETS holdfast RUNTIME COMPONENT runtime)
  install(FILES LICENSE RENAME copyright
    DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/holdfast COMPONENT runtime)

  # The binary knows its own verbs, so it writes its completions.
  foreach(shell IN ITEMS bash zsh)
    set(completion ${CMAKE_BINARY_DIR}/packaging/holdfast.${shell})
    add_custom_command(
      OUTPUT ${completion}
      COMMAND sh -c "$<TARGET_FILE:holdfast> completion ${shell} > ${completion}"
      DEPENDS holdfast
      COMMENT "Writing the completion for ${shell}"
      VERBATIM)
    list(APPEND completions ${completion})
  endforeach()
  add_custom_target(completions ALL DEPENDS ${completions})
  add_dependencies(installed holdfast completions)
  install(FILES ${CMAKE_BINARY_DIR}/packaging/holdfast.bash RENAME holdfast
    DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions COMPONENT runtime)
  install(FILES ${CMAKE_BINARY_DIR}/packaging/holdfast.zsh RENAME _holdfast
    DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/vendor-completions COMPONENT runtime)
endif()

# ---- Debian packages -----------------------------------------------------------------------------

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_VENDOR "The Holdfast authors")
set(CPACK_PACKAGE_CONTACT "The Holdfast authors <holdfast@localhost>")
set(CPACK_STRIP_FILES ON)
set(CPACK_COMPONENTS_ALL runtime development)
set(CPACK_COMPONENTS_GROUPING IGNORE)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)

set(CPACK_COMPONENT_RUNTIME_DESCRIPTION
  "Durable execution and coordination on the SQL database you already have\n The command line: schemas, benchmarks, and what the library does, from a shell.")
set(CPACK_DEBIAN_RUNTIME_PACKAGE_NAME holdfast)
set(CPACK_DEBIAN_RUNTIME_PACKAGE_SECTION database)
set(CPACK_DEBIAN_RUNTIME_PACKAGE_SHLIBDEPS ON)

set(CPACK_COMPONENT_DEVELOPMENT_DESCRIPTION
  "Durable execution and coordination for C++ (library)\n Static libraries, headers, and files for CMake and pkg-config.")
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_NAME libholdfast-dev)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SECTION libdevel)
# An archive does not carry its dependencies: whoever links it needs them.
string(CONCAT CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS
  "pkg-config, libpq-dev, libsqlite3-dev, libssl-dev, libfmt-dev, libspdlog-dev, "
  "libyaml-cpp-dev, prometheus-cpp-dev, libcpp-httplib-dev, libutf8proc-dev, libpg-query-dev, "
  "nlohmann-json3-dev")
include(CPack)
