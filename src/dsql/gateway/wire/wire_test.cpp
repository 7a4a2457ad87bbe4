#include <holdfast/dsql/wire.hpp>

#include <string>

#include <gtest/gtest.h>

#include <holdfast/base/error.hpp>
#include <holdfast/testing/check.hpp>

namespace holdfast::dsql {

namespace {

std::string length_of(std::size_t size) {
    return {'\0', '\0', static_cast<char>(size >> 8U), static_cast<char>(size & 0xffU)};
}

std::string typed(char type, const std::string& body) {
    return type + length_of(4 + body.size()) + body;
}

std::string untyped(const std::string& body) {
    return length_of(4 + body.size()) + body;
}

const std::string startup = untyped(std::string("\x00\x03\x00\x00user\0ann\0\0", 15));

TEST(MessageStream, FindsTheSameMessagesInWhateverPortionsTheBytesCome) {
    const std::string bytes = startup + typed('Q', "SELECT 1") + typed('S', "") + typed('X', "");
    for (std::size_t portion = 1; portion <= bytes.size(); ++portion) {
        MessageStream stream(Opening::untyped);
        std::string types;
        std::string copy;
        for (std::size_t at = 0; at < bytes.size(); at += portion) {
            stream.append(bytes.substr(at, portion));
            while (const auto message = stream.next()) {
                types += message->type == '\0' ? '0' : message->type;
                copy += message->bytes;
            }
        }
        EXPECT_EQ(types, "0QSX") << "in portions of " << portion;
        EXPECT_EQ(copy, bytes);
    }
}

TEST(MessageStream, AClientMayAskForEncryptionBeforeItsStartupPacket) {
    MessageStream stream(Opening::untyped);
    stream.append(untyped(std::string("\x04\xd2\x16\x2f", 4)) + startup + typed('Q', "x"));
    EXPECT_EQ(stream.next()->code, ssl_request);
    EXPECT_EQ(stream.next()->code, 0x30000U);
    EXPECT_EQ(stream.next()->type, 'Q');
    EXPECT_FALSE(stream.next());
}

TEST(MessageStream, RefusesALengthThatCannotBe) {
    MessageStream stream(Opening::typed);
    stream.append(std::string("Q\0\0\0\3", 5));
    EXPECT_EQ(test::code_of([&] { (void)stream.next(); }), Code::internal);

    MessageStream huge(Opening::typed);
    huge.append("Q\x7f\x7f\x7f\x7f");
    EXPECT_EQ(test::code_of([&] { (void)huge.next(); }), Code::internal);
}

}  // namespace

}  // namespace holdfast::dsql
