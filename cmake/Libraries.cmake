# Every third-party library, found once. A floor names the ones it uses as LIBS, which link PRIVATE.

find_package(Threads REQUIRED)
find_package(PkgConfig REQUIRED)
find_package(PostgreSQL REQUIRED)
find_package(SQLite3 3.40 REQUIRED)
find_package(OpenSSL REQUIRED)
find_package(fmt REQUIRED)
find_package(spdlog REQUIRED)
find_package(yaml-cpp REQUIRED)
find_package(prometheus-cpp REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(CLI11 REQUIRED)
# The flags from pkg-config matter: without them our view of httplib's classes differs from the library's.
pkg_check_modules(CPP_HTTPLIB REQUIRED IMPORTED_TARGET cpp-httplib)
pkg_check_modules(UTF8PROC REQUIRED IMPORTED_TARGET libutf8proc)

# libpq for who loads it when it is needed, and so does not link it.
add_library(libpq_headers INTERFACE)
target_include_directories(libpq_headers SYSTEM INTERFACE ${PostgreSQL_INCLUDE_DIRS})

if(HOLDFAST_SERVER)
  # Debian's protobuf has no CMake package, and that of gRPC asks for it.
  pkg_check_modules(PROTOBUF REQUIRED IMPORTED_TARGET protobuf)
  pkg_check_modules(GRPC REQUIRED IMPORTED_TARGET grpc++)
  find_package(ZLIB REQUIRED)  # gRPC's development package brings it.
endif()

# holdfast_api_protos(RESULT)
#
# The folder of the API's .proto files. They are in a published package, which `./run` fetches into the
# user's cache and unpacks there; src/api/package.sha256 has its name and checksum.
function(holdfast_api_protos result)
  file(STRINGS ${PROJECT_SOURCE_DIR}/src/api/package.sha256 package)
  string(REGEX REPLACE "^[0-9a-f]+ +(.*)\\.tar\\.gz$" "\\1" package "${package}")
  if(DEFINED ENV{XDG_CACHE_HOME})
    set(cache $ENV{XDG_CACHE_HOME})
  else()
    set(cache $ENV{HOME}/.cache)
  endif()
  set(HOLDFAST_API_PROTOS ${cache}/holdfast/${package} CACHE PATH
    "The folder of the API's .proto files, as the package ${package} has them")
  if(NOT EXISTS ${HOLDFAST_API_PROTOS}/api_upstream/temporal/api)
    message(FATAL_ERROR
      "There are no .proto files of the API in ${HOLDFAST_API_PROTOS}. `./run build` fetches them; "
      "or configure with -DHOLDFAST_API_PROTOS=DIR, a folder that has api_upstream/ and "
      "testsrv_upstream/; or with -DHOLDFAST_SERVER=OFF, which leaves the server out.")
  endif()
  set(${result} ${HOLDFAST_API_PROTOS} PARENT_SCOPE)
endfunction()
