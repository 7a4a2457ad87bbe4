# cmake -DSOURCE=DIR -DBUILD=DIR -DPROTOS=DIR -DTOP=DIR -P build.cmake
#
# Configures and builds the project beside this file. Builds of several presets may come here at the same
# time: one of them compiles, the others wait and find everything done.

file(LOCK ${BUILD}.lock GUARD PROCESS)

set(launcher "")
find_program(ccache ccache)
if(ccache)
  # As in cmake/Tooling.cmake: clones share what they have compiled.
  set(launcher ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${TOP} CCACHE_NOHASHDIR=1 ${ccache})
endif()

execute_process(
  COMMAND ${CMAKE_COMMAND} -S ${SOURCE} -B ${BUILD} -G Ninja
    -DCMAKE_CXX_COMPILER=g++ "-DCMAKE_CXX_COMPILER_LAUNCHER=${launcher}"
    -DHOLDFAST_API_PROTOS=${PROTOS} --log-level=WARNING
  COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND ${CMAKE_COMMAND} --build ${BUILD} COMMAND_ERROR_IS_FATAL ANY)
