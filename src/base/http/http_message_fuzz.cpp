// Any bytes in pieces of any size are read as the same request, or refused, in bounded memory.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "http/http_message.hpp"

namespace {

using holdfast::http::RequestReader;

RequestReader read(std::string_view text, std::size_t piece) {
    RequestReader reader;
    while (!text.empty() && (reader.state() == RequestReader::State::head ||
                             reader.state() == RequestReader::State::body)) {
        reader.take(text.substr(0, piece));
        text.remove_prefix(std::min(piece, text.size()));
    }
    return reader;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size == 0) {
        return 0;
    }
    const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
    const RequestReader whole = read(text, text.size());
    const RequestReader pieces = read(text, std::size_t{data[0]} + 1);
    const bool same = whole.state() == pieces.state() &&
                      whole.request().headers == pieces.request().headers &&
                      whole.request().path == pieces.request().path &&
                      whole.request().body == pieces.request().body &&
                      whole.request().body.size() <= whole.body_bytes();
    if (!same) {
        std::abort();
    }
    return 0;
}
