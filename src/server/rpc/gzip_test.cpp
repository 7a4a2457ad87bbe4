#include "rpc/gzip.hpp"

#include <string>

#include <gtest/gtest.h>
#include <zlib.h>

namespace holdfast::server::rpc {

namespace {

std::string gzipped(const std::string& text) {
    z_stream stream{};
    deflateInit2(&stream, Z_BEST_COMPRESSION, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY);
    std::string bytes(deflateBound(&stream, text.size()), '\0');
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
    stream.avail_in = static_cast<uInt>(text.size());
    stream.next_out = reinterpret_cast<Bytef*>(bytes.data());
    stream.avail_out = static_cast<uInt>(bytes.size());
    deflate(&stream, Z_FINISH);
    bytes.resize(stream.total_out);
    deflateEnd(&stream);
    return bytes;
}

TEST(GzipTest, ATextUpToTheBoundIsGivenBack) {
    for (const std::size_t size : {0U, 1U, 16'384U, 16'385U, 100'000U}) {
        const std::string text(size, 'x');
        EXPECT_TRUE(is_gzip(gzipped(text)));
        EXPECT_EQ(gunzip(gzipped(text), 100'000), text) << size;
    }
}

TEST(GzipTest, ALongerTextEndsOneByteAboveTheBound) {
    const std::string bomb = gzipped(std::string(2'000'000, 'x'));
    const auto text = gunzip(bomb, 100'000);
    ASSERT_TRUE(text);
    EXPECT_EQ(text->size(), 100'001U);
    EXPECT_LE(text->capacity(), 200'100U);
}

TEST(GzipTest, DamagedBytesAreNotAText) {
    const std::string bytes = gzipped("a text that is long enough to be damaged in its middle");
    EXPECT_FALSE(gunzip("", 1000));
    for (std::size_t kept = 0; kept < bytes.size(); ++kept) {
        EXPECT_FALSE(gunzip(bytes.substr(0, kept), 1000)) << kept;
    }
    std::string flipped = bytes;
    flipped[bytes.size() / 2] = static_cast<char>(~flipped[bytes.size() / 2]);
    EXPECT_FALSE(gunzip(flipped, 1000));
    EXPECT_FALSE(gunzip(bytes + "more", 1000));
}

}  // namespace

}  // namespace holdfast::server::rpc
