#include <holdfast/testing/dynamodb.hpp>

#include <array>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <vector>

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/core.h>
#include <netinet/in.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <holdfast/base/assert.hpp>
#include <holdfast/base/clock.hpp>
#include <holdfast/base/random.hpp>
#include <holdfast/base/unique_fd.hpp>

namespace holdfast::test {
namespace {

constexpr std::chrono::seconds patience{30};
constexpr std::chrono::milliseconds look_every{5};

sockaddr_in loopback(int port) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<std::uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return address;
}

// Below the kernel's ephemeral ports, which begin at 32768: another process could get one of those
// before the emulator has it, or while it is stopped. A client that keeps connecting to a free
// ephemeral port is given that very port one day, and connects to itself.
int free_port() {
    constexpr int lowest = 10'240;
    constexpr std::uint64_t count = 22'000;
    Random random(secure_seed());
    for (;;) {
        const int port = lowest + static_cast<int>(random.below(count));
        const UniqueFd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
        const sockaddr_in address = loopback(port);
        HOLDFAST_ASSERT(socket);
        if (::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) ==
            0) {
            return port;
        }
    }
}

bool answers(int port) {
    const UniqueFd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const sockaddr_in address = loopback(port);
    return ::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) ==
           0;
}

}  // namespace

std::optional<std::string> DynamoEmulator::program() {
    namespace fs = std::filesystem;
    // NOLINTNEXTLINE(concurrency-mt-unsafe): the environment does not change.
    const char* const told = std::getenv("HOLDFAST_NODE_MODULES");
    fs::path modules = told == nullptr ? "" : told;
    // Else the one beside the build tree that this program is in.
    for (fs::path at = fs::read_symlink("/proc/self/exe");
         modules.empty() && at.has_relative_path();
         at = at.parent_path()) {
        if (fs::exists(at / "build/node/node_modules")) {
            modules = at / "build/node/node_modules";
        }
    }
    const fs::path program = modules / "@dynoxide/linux-x64/dynoxide";
    return fs::exists(program) ? std::optional(program.string()) : std::nullopt;
}

DynamoEmulator::DynamoEmulator(std::string file) : file_(std::move(file)), port_(free_port()) {
    start();
}

DynamoEmulator::~DynamoEmulator() {
    stop();
}

std::string DynamoEmulator::url() const {
    return fmt::format("http://127.0.0.1:{}", port_);
}

void DynamoEmulator::start() {
    const std::optional<std::string> found = program();
    HOLDFAST_ASSERT(found.has_value());
    std::vector<std::string> words{*found, "--port", std::to_string(port_)};
    if (!file_.empty()) {
        words.insert(words.end(), {"--db-path", file_});
    }
    std::vector<char*> arguments;
    arguments.reserve(words.size() + 1);
    for (std::string& word : words) {
        arguments.push_back(word.data());
    }
    arguments.push_back(nullptr);
    const pid_t parent = ::getpid();
    pid_ = ::fork();
    HOLDFAST_ASSERT(pid_ >= 0);
    if (pid_ == 0) {
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);
        const int nothing = ::open("/dev/null", O_RDWR | O_CLOEXEC);
        for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
            ::dup2(nothing, stream);
        }
        if (::getppid() == parent) {
            ::execv(arguments[0], arguments.data());
        }
        ::_exit(127);
    }
    const Deadline deadline = Deadline::after(patience);
    while (!answers(port_)) {
        HOLDFAST_ASSERT(!deadline.passed());
        HOLDFAST_ASSERT(::waitpid(pid_, nullptr, WNOHANG) == 0);
        system_clock().sleep_until(std::chrono::steady_clock::now() + look_every, {});
    }
}

void DynamoEmulator::stop() {
    if (pid_ > 0) {
        ::kill(pid_, SIGKILL);
        ::waitpid(pid_, nullptr, 0);
        pid_ = -1;
    }
}

}  // namespace holdfast::test
