#include "rpc/gzip.hpp"

#include <algorithm>

#include <zlib.h>

#include <holdfast/base/assert.hpp>

namespace holdfast::server::rpc {

namespace {

constexpr int gzip_only = 16 + MAX_WBITS;  // zlib's word for: with gzip's header, of any window.
constexpr std::size_t first_bytes = std::size_t{16} << 10;

// Releases zlib's memory on every way out.
class Inflating {
public:
    Inflating() { HOLDFAST_ASSERT(inflateInit2(&stream, gzip_only) == Z_OK); }
    ~Inflating() { inflateEnd(&stream); }
    Inflating(const Inflating&) = delete;
    Inflating& operator=(const Inflating&) = delete;

    z_stream stream{};
};

}  // namespace

bool is_gzip(std::string_view bytes) {
    return bytes.starts_with("\x1f\x8b");
}

std::optional<std::string> gunzip(std::string_view bytes, std::size_t bytes_max) {
    Inflating inflating;
    z_stream& stream = inflating.stream;
    // zlib does not write to its input; its type is older than const.
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
    stream.avail_in = static_cast<uInt>(bytes.size());
    std::string text;
    while (text.size() <= bytes_max) {
        const std::size_t before = text.size();
        text.resize(std::min(std::max(first_bytes, 2 * before), bytes_max + 1));
        stream.next_out = reinterpret_cast<Bytef*>(text.data() + before);
        stream.avail_out = static_cast<uInt>(text.size() - before);
        const int result = inflate(&stream, Z_NO_FLUSH);
        text.resize(text.size() - stream.avail_out);
        if (result == Z_STREAM_END) {
            return stream.avail_in == 0 ? std::optional(std::move(text)) : std::nullopt;
        }
        if (result != Z_OK || (stream.avail_in == 0 && stream.avail_out > 0)) {
            return std::nullopt;
        }
    }
    return text;
}

}  // namespace holdfast::server::rpc
