#include "http/http_stream.hpp"

#include <array>
#include <string>

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

namespace holdfast::http {
namespace {

using namespace std::chrono_literals;

class BoundedStreamStory : public testing::Test {
protected:
    BoundedStreamStory() { EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data()), 0); }
    ~BoundedStreamStory() override {
        for (const int end : ends) {
            ::close(end);
        }
    }

    BoundedStream stream(Deadline deadline, std::size_t read_bytes_max = 1000) {
        return {ends[0], deadline, read_bytes_max};
    }
    void peer_sends(std::string_view text) const {
        EXPECT_EQ(::send(ends[1], text.data(), text.size(), 0), static_cast<ssize_t>(text.size()));
    }
    static std::string read(BoundedStream& stream, std::size_t size) {
        std::string text(size, ' ');
        const ssize_t got = stream.read(text.data(), size);
        return got < 0 ? "given up" : text.substr(0, static_cast<std::size_t>(got));
    }

    std::array<int, 2> ends{};
};

TEST_F(BoundedStreamStory, ReadsInPiecesOfAnySize) {
    BoundedStream ours = stream(Deadline::after(20s));
    peer_sends("hello");
    EXPECT_TRUE(ours.is_readable());
    EXPECT_EQ(read(ours, 2), "he");
    EXPECT_TRUE(ours.is_readable());
    EXPECT_EQ(read(ours, 10), "llo");
    ::shutdown(ends[1], SHUT_WR);
    EXPECT_EQ(read(ours, 10), "") << "the end is not an error";
}

TEST_F(BoundedStreamStory, GivesUpOnASilentPeerAtTheDeadline) {
    BoundedStream ours = stream(Deadline::after(10ms));
    EXPECT_EQ(read(ours, 1), "given up");
    EXPECT_FALSE(ours.is_readable());
}

// A limit per read would never be met by this one.
TEST_F(BoundedStreamStory, GivesUpOnABusyPeerAtTheDeadline) {
    BoundedStream ours = stream(Deadline::after(0s));
    peer_sends("more");
    EXPECT_EQ(read(ours, 1), "given up");
}

TEST_F(BoundedStreamStory, GivesUpOnAPeerThatSendsTooMuch) {
    BoundedStream ours = stream(Deadline::after(20s), 5);
    peer_sends("hello, world");
    EXPECT_EQ(read(ours, 100), "hello");
    EXPECT_EQ(read(ours, 100), "given up");
}

TEST_F(BoundedStreamStory, GivesUpOnAPeerThatDoesNotRead) {
    BoundedStream ours = stream(Deadline::after(10ms));
    const std::string much(16 << 20, 'x');  // More than a socket holds.
    EXPECT_EQ(ours.write(much.data(), much.size()), -1);
}

TEST_F(BoundedStreamStory, APeerThatIsGoneIsAnErrorAndNoSignal) {
    BoundedStream ours = stream(Deadline::after(20s));
    ::shutdown(ends[1], SHUT_RDWR);
    EXPECT_EQ(ours.write("x", 1), -1);
}

}  // namespace
}  // namespace holdfast::http
