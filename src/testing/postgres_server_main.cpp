// Keeps one PostgreSQL for a whole run of the tests:
//
//   holdfast_test_postgres start LINK    the server ends with the process that called this, at last
//   holdfast_test_postgres stop LINK
#include <exception>
#include <string_view>

#include <fmt/core.h>
#include <unistd.h>

#include <holdfast/testing/postgres.hpp>

int main(int argc, char** argv) {
    const std::string_view verb = argc == 3 ? argv[1] : "";
    try {
        if (verb == "start") {
            holdfast::test::start_linked(argv[2], ::getppid());
        } else if (verb == "stop") {
            holdfast::test::stop_linked(argv[2]);
        } else {
            fmt::print(stderr, "usage: holdfast_test_postgres start|stop LINK\n");
            return 2;
        }
        return 0;
    } catch (const std::exception& error) {
        fmt::print(stderr, "{}\n", error.what());
        return 3;
    }
}
