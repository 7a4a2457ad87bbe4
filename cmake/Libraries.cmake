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
