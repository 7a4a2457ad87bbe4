# GoogleTest, rapidcheck, and the test programs of each floor.

find_package(GTest REQUIRED)
find_package(rapidcheck REQUIRED)
include(GoogleTest)

set(HOLDFAST_TEST_TIMEOUT 300 CACHE STRING "Seconds after which a test has failed")

# One private PostgreSQL serves a whole run of ctest. It listens on a unix socket, whose path may have
# 107 bytes at most, so its folder has a short name of its own for each build folder.
string(SHA256 HOLDFAST_TEST_POSTGRES ${CMAKE_BINARY_DIR})
string(SUBSTRING ${HOLDFAST_TEST_POSTGRES} 0 12 HOLDFAST_TEST_POSTGRES)
set(HOLDFAST_TEST_POSTGRES /tmp/holdfast-${HOLDFAST_TEST_POSTGRES})

# Parsing GoogleTest and rapidcheck costs more than most tests do: once for all test programs.
file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/test_headers.cpp CONTENT "// Carries the precompiled headers.\n")
add_library(holdfast_test_headers OBJECT ${CMAKE_BINARY_DIR}/test_headers.cpp)
target_link_libraries(holdfast_test_headers PRIVATE
  holdfast_warnings holdfast_unoptimised GTest::gmock rapidcheck_gtest)
target_precompile_headers(holdfast_test_headers PRIVATE
  <gmock/gmock.h> <gtest/gtest.h> <rapidcheck.h> <rapidcheck/gtest.h>
  <chrono> <string> <thread> <vector>)

add_custom_target(threads_tests)  # Every test program with the label `threads`: what TSan looks at.
add_custom_target(fuzzers)

# holdfast_test_program(TARGET sources... [LABELS label...])
#
# A GoogleTest program whose cases ctest knows one by one, with the private PostgreSQL at hand.
function(holdfast_test_program target)
  cmake_parse_arguments(T "" "" "LABELS" ${ARGN})
  add_executable(${target} ${T_UNPARSED_ARGUMENTS})
  target_link_libraries(${target} PRIVATE
    holdfast_warnings holdfast_unoptimised GTest::gmock GTest::gtest_main rapidcheck_gtest
    Threads::Threads)
  target_precompile_headers(${target} REUSE_FROM holdfast_test_headers)
  holdfast_compile_together(${target})
  set(labels "")
  if(T_LABELS)
    set(labels LABELS "${T_LABELS}")
  endif()
  gtest_discover_tests(${target}
    DISCOVERY_MODE PRE_TEST
    DISCOVERY_TIMEOUT 60  # Seconds; a sanitizer on a busy machine takes its time.
    PROPERTIES
      TIMEOUT ${HOLDFAST_TEST_TIMEOUT}
      FIXTURES_REQUIRED postgres
      ENVIRONMENT HOLDFAST_TEST_POSTGRES=${HOLDFAST_TEST_POSTGRES}
      ${labels})
  if("threads" IN_LIST T_LABELS)
    add_dependencies(threads_tests ${target})
  endif()
endfunction()

# What lies beside a floor's sources: tests x_test.cpp with their fixtures test/x_fixture.cpp, tests
# x_threads_test.cpp, which also run under ThreadSanitizer, fuzzers x_fuzz.cpp, micro benchmarks
# x_bench.cpp.
function(holdfast_floor_tests name uses libs floor_libs)
  list(TRANSFORM uses PREPEND holdfast::)
  set(links holdfast::${name} ${uses} ${libs} ${floor_libs})

  holdfast_own_files(fixtures *.cpp)
  list(FILTER fixtures INCLUDE REGEX "/test/[^/]*_fixture\\.cpp$")
  holdfast_own_files(tests *_test.cpp)
  set(threads_tests ${tests})
  list(FILTER tests EXCLUDE REGEX "_threads_test\\.cpp$")
  list(FILTER threads_tests INCLUDE REGEX "_threads_test\\.cpp$")
  if(tests)
    holdfast_test_program(${name}_tests ${tests} ${fixtures})
    target_include_directories(${name}_tests PRIVATE ${CMAKE_CURRENT_SOURCE_DIR})
    target_link_libraries(${name}_tests PRIVATE ${links})
  endif()
  if(threads_tests)
    holdfast_test_program(${name}_threads_tests ${threads_tests} LABELS threads)
    target_include_directories(${name}_threads_tests PRIVATE ${CMAKE_CURRENT_SOURCE_DIR})
    target_link_libraries(${name}_threads_tests PRIVATE ${links})
  endif()

  holdfast_own_files(fuzzers *_fuzz.cpp)
  if(HOLDFAST_FUZZERS)
    foreach(source IN LISTS fuzzers)
      get_filename_component(fuzzer ${source} NAME_WE)
      add_executable(${fuzzer} ${source})
      add_dependencies(fuzzers ${fuzzer})
      set_target_properties(${fuzzer} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/fuzz)
      target_include_directories(${fuzzer} PRIVATE ${CMAKE_CURRENT_SOURCE_DIR})
      target_link_options(${fuzzer} PRIVATE -fsanitize=fuzzer)
      target_link_libraries(${fuzzer} PRIVATE holdfast_warnings holdfast_branches ${links})
    endforeach()
  endif()

  holdfast_own_files(benchmarks *_bench.cpp)
  if(benchmarks)
    find_package(benchmark REQUIRED)
    add_executable(${name}_bench ${benchmarks})
    target_include_directories(${name}_bench PRIVATE ${CMAKE_CURRENT_SOURCE_DIR})
    target_link_libraries(${name}_bench PRIVATE
      holdfast_warnings benchmark::benchmark_main ${links})
  endif()
endfunction()

# Wires the PostgreSQL that holdfast_test_program's cases ask for.
function(holdfast_postgres_fixture)
  add_test(NAME postgres_start COMMAND holdfast_test_postgres start ${HOLDFAST_TEST_POSTGRES})
  add_test(NAME postgres_stop COMMAND holdfast_test_postgres stop ${HOLDFAST_TEST_POSTGRES})
  set_tests_properties(postgres_start PROPERTIES FIXTURES_SETUP postgres TIMEOUT 120)
  set_tests_properties(postgres_stop PROPERTIES FIXTURES_CLEANUP postgres TIMEOUT 120)
  add_dependencies(threads_tests holdfast_test_postgres)
endfunction()
