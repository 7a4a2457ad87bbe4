# The whole architecture: who may use whom. An edge that is not written here stops the configuration.
set(HOLDFAST_MAY_USE_base         "")
set(HOLDFAST_MAY_USE_pool         base)
set(HOLDFAST_MAY_USE_sim          base pool)
set(HOLDFAST_MAY_USE_sql          base pool)
set(HOLDFAST_MAY_USE_dsql         base pool sql)
set(HOLDFAST_MAY_USE_lock         base sql)
set(HOLDFAST_MAY_USE_store        base sql)
set(HOLDFAST_MAY_USE_api          "")
set(HOLDFAST_MAY_USE_server       base sql store api)
set(HOLDFAST_MAY_USE_flow_engine  base)
set(HOLDFAST_MAY_USE_flow         base sql flow_engine)
set(HOLDFAST_MAY_USE_flow_testing base sql flow_engine flow)
set(HOLDFAST_MAY_USE_testing      base sql dsql)
set(HOLDFAST_MAY_USE_bench        base pool sim sql dsql lock store flow_engine flow testing)
set(HOLDFAST_MAY_USE_server_bench base sql api server bench)
set(HOLDFAST_MAY_USE_apps         base pool sim sql dsql lock store flow_engine flow server bench server_bench)

# holdfast_floor(NAME [USES floor...] [LIBS third-party...]
#                [TEST_USES floor...] [TEST_LIBS third-party...] [NOT_INSTALLED])
#
# Declares the floor that lives in the current folder as the static library holdfast_NAME. Public
# headers are all of include/; sources are the *.cpp beside the CMakeLists.txt and in its sub-folders;
# tests are x_test.cpp, micro benchmarks x_bench.cpp, fuzzers x_fuzz.cpp, programs x_main.cpp; what
# lies in a folder test/ is for the tests only; migrations are schema/NNNN_name.sql, compiled in.
function(holdfast_floor name)
  cmake_parse_arguments(F "NOT_INSTALLED" "" "USES;LIBS;TEST_USES;TEST_LIBS" ${ARGN})
  holdfast_check_edges(${name} "${F_USES}" "${F_TEST_USES}")

  file(GLOB_RECURSE headers CONFIGURE_DEPENDS include/*.hpp)
  holdfast_own_files(sources *.cpp)
  list(FILTER sources EXCLUDE REGEX "_(test|bench|fuzz|main)\\.cpp$|/test/[^/]*$")
  if(NOT sources)  # Headers only; an archive must hold something.
    set(sources ${CMAKE_CURRENT_BINARY_DIR}/headers_only.cpp)
    file(CONFIGURE OUTPUT ${sources} CONTENT "// This floor has headers only.\n")
  endif()

  set(target holdfast_${name})
  add_library(${target} STATIC ${sources})
  add_library(holdfast::${name} ALIAS ${target})
  target_compile_features(${target} PUBLIC cxx_std_20)
  target_sources(${target} PUBLIC FILE_SET HEADERS BASE_DIRS include FILES ${headers})
  target_include_directories(${target} PRIVATE ${CMAKE_CURRENT_SOURCE_DIR})
  set_target_properties(${target} PROPERTIES
    EXPORT_NAME ${name}
    POSITION_INDEPENDENT_CODE ON
    VERIFY_INTERFACE_HEADER_SETS ON)
  target_link_libraries(${target}
    PRIVATE $<BUILD_INTERFACE:holdfast_warnings> $<BUILD_INTERFACE:holdfast_branches>
            Threads::Threads ${F_LIBS})
  foreach(other IN LISTS F_USES)
    target_link_libraries(${target} PUBLIC holdfast::${other})
  endforeach()
  holdfast_embed_schema(${target} ${name} schema)
  holdfast_compile_together(${target})

  set_property(GLOBAL APPEND PROPERTY HOLDFAST_FLOORS ${name})
  if(NOT F_NOT_INSTALLED)
    set_property(GLOBAL APPEND PROPERTY HOLDFAST_INSTALLED_FLOORS ${name})
  endif()

  # Every symbol a floor needs must come from what it declared: an empty program takes the whole
  # archive, so a symbol borrowed through a forward declaration is an undefined reference.
  file(CONFIGURE OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/link_${name}.cpp CONTENT "int main() {}\n")
  add_executable(link_${name} ${CMAKE_CURRENT_BINARY_DIR}/link_${name}.cpp)
  target_link_libraries(link_${name} PRIVATE $<LINK_LIBRARY:WHOLE_ARCHIVE,${target}>)

  if(HOLDFAST_TESTS)
    holdfast_floor_tests(${name} "${F_TEST_USES}" "${F_TEST_LIBS}" "${F_LIBS}")
  endif()
endfunction()

# The files of the current folder and below that match, without those of a floor that lies inside it.
function(holdfast_own_files result pattern)
  file(GLOB_RECURSE files CONFIGURE_DEPENDS ${pattern})
  file(GLOB inner CONFIGURE_DEPENDS */CMakeLists.txt)
  foreach(lists IN LISTS inner)
    get_filename_component(folder ${lists} DIRECTORY)
    list(FILTER files EXCLUDE REGEX "^${folder}/")
  endforeach()
  set(${result} ${files} PARENT_SCOPE)
endfunction()

# Stops at an edge that is not in the table. Tests may use what their floor may use, and `testing`.
function(holdfast_check_edges name uses test_uses)
  if(NOT DEFINED HOLDFAST_MAY_USE_${name})
    message(FATAL_ERROR "floor '${name}' is not in the table of cmake/Floors.cmake")
  endif()
  foreach(other IN LISTS uses)
    if(NOT other IN_LIST HOLDFAST_MAY_USE_${name})
      message(FATAL_ERROR "floor '${name}' may not use '${other}' (the table is in cmake/Floors.cmake)")
    endif()
  endforeach()
  foreach(other IN LISTS test_uses)
    if(NOT other IN_LIST HOLDFAST_MAY_USE_${name} AND NOT other STREQUAL "testing")
      message(FATAL_ERROR
        "tests of floor '${name}' may not use '${other}' (the table is in cmake/Floors.cmake)")
    endif()
  endforeach()
endfunction()

# Compiles the migrations NNNN_name.sql of a folder into a target, as the body of a function which the
# target declares itself:
#
#   namespace holdfast::NAME { std::span<const sql::MigrationFile> schema_files(); }
function(holdfast_embed_schema target name folder)
  file(GLOB migrations CONFIGURE_DEPENDS ${folder}/*.sql)
  if(NOT migrations)
    return()
  endif()
  set(generated ${CMAKE_CURRENT_BINARY_DIR}/${name}_schema.cpp)
  set(generator ${HOLDFAST_CMAKE_DIR}/EmbedSchema.cmake)
  list(JOIN migrations "," files)  # A list would be split by the command line.
  add_custom_command(
    OUTPUT ${generated}
    COMMAND ${CMAKE_COMMAND} -DFLOOR=${name} -DFILES=${files} -DOUTPUT=${generated} -P ${generator}
    DEPENDS ${migrations} ${generator}
    COMMENT "Embedding the migrations of ${name}"
    VERBATIM)
  target_sources(${target} PRIVATE ${generated})
endfunction()

set(HOLDFAST_CMAKE_DIR ${CMAKE_CURRENT_LIST_DIR})
