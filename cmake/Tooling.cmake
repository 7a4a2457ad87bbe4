# How everything is compiled: cache, linker, warnings, sanitizers.

find_program(CCACHE_PROGRAM ccache)
if(CCACHE_PROGRAM)
  # Clones share what they have compiled: paths count from the top of each. And without the last two,
  # ccache steps aside for every file that uses a precompiled header.
  set(launcher ${CMAKE_COMMAND} -E env
    CCACHE_BASEDIR=${CMAKE_SOURCE_DIR} CCACHE_NOHASHDIR=1
    CCACHE_SLOPPINESS=pch_defines,time_macros ${CCACHE_PROGRAM})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${launcher})
  set(CMAKE_C_COMPILER_LAUNCHER ${launcher})
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-fpch-preprocess>)
  else()
    add_compile_options("$<$<COMPILE_LANGUAGE:CXX>:SHELL:-Xclang -fno-pch-timestamp>")
  endif()
  # __FILE__ counts from the top as well: batches of files include by absolute paths.
  add_compile_options(-fmacro-prefix-map=${CMAKE_SOURCE_DIR}/=)
endif()

if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  find_program(HOLDFAST_LLD NAMES ld.lld-19 ld.lld)
  if(HOLDFAST_LLD)
    add_link_options(--ld-path=${HOLDFAST_LLD})
  endif()
else()
  find_program(HOLDFAST_MOLD NAMES mold)
  if(HOLDFAST_MOLD)
    add_link_options(-fuse-ld=mold)
  endif()
endif()

# A program loads only the libraries it calls: a worker on a file needs neither TLS nor HTTP.
add_link_options(-Wl,--as-needed)

if(HOLDFAST_SANITIZE)
  add_compile_options(-fsanitize=${HOLDFAST_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${HOLDFAST_SANITIZE})
endif()
# The floors under test must report their branches, or a fuzzer is blind; nobody else needs to.
add_library(holdfast_branches INTERFACE)
if(HOLDFAST_FUZZERS)
  target_compile_options(holdfast_branches INTERFACE -fsanitize=fuzzer-no-link)
endif()

# What the tests run is to be fast; their own lines need not be. A sanitizer takes them as they are
# written, which compiles in half the time; elsewhere they are optimised a little, in two thirds of it.
add_library(holdfast_unoptimised INTERFACE)
if(HOLDFAST_SANITIZE)
  target_compile_options(holdfast_unoptimised INTERFACE -O0)
elseif(CMAKE_BUILD_TYPE MATCHES "^Rel")
  target_compile_options(holdfast_unoptimised INTERFACE -O1)
endif()

# Warnings for our own code only; third-party include directories are SYSTEM.
add_library(holdfast_warnings INTERFACE)
target_compile_options(holdfast_warnings INTERFACE
  -Wall -Wextra -Wconversion -Wshadow -Wnon-virtual-dtor -Woverloaded-virtual -Werror)
if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  target_compile_options(holdfast_warnings INTERFACE -Wthread-safety)
else()
  # g++ 12 sees overlapping copies inside std::string's operator+ when it optimises (its bug 105329).
  target_compile_options(holdfast_warnings INTERFACE -Wno-restrict)
endif()

# Neighbours include the same headers and instantiate the same templates: one by one they take three
# times as long to compile. Clang-tidy looks at every file alone, so a file that leans on what its
# neighbour includes is found there.
option(HOLDFAST_TOGETHER "Compile the sources of a target several files at a time" ON)
set(HOLDFAST_TOGETHER_FILES 8)

# In one translation unit a local may hide a neighbour's name, and a class of a source file lies in a
# file that is not the main one; neither is a mistake.
add_library(holdfast_neighbours INTERFACE)
target_compile_options(holdfast_neighbours INTERFACE
  -Wno-shadow $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>)

# For those who change one floor again and again: its targets are compiled file by file, unoptimised.
set(HOLDFAST_QUICK "" CACHE STRING "Regular expression of targets that are rebuilt often")

# holdfast_compile_together(TARGET)
function(holdfast_compile_together target)
  if(HOLDFAST_QUICK AND target MATCHES "${HOLDFAST_QUICK}")
    target_compile_options(${target} PRIVATE -O0)
  elseif(HOLDFAST_TOGETHER)
    set_target_properties(${target} PROPERTIES
      UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE ${HOLDFAST_TOGETHER_FILES})
    target_link_libraries(${target} PRIVATE $<BUILD_INTERFACE:holdfast_neighbours>)
  endif()
endfunction()
