// Whatever bytes a client or a server sends: they are taken apart, or refused with an Error.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "gateway/wire/error_response.hpp"

#include <holdfast/base/error.hpp>
#include <holdfast/dsql/wire.hpp>

namespace {

using namespace holdfast;

// Every way in which the gateway reads a body.
void read_body(std::string_view body) {
    try {
        (void)dsql::ServerError::read(body);
    } catch (const Error&) {
    }
    try {
        dsql::BodyReader reader(body);
        while (!reader.empty()) {
            (void)reader.text();
            const auto size = reader.int32();
            (void)reader.bytes(size < 0 ? 0 : static_cast<std::size_t>(size));
            (void)reader.int16();
        }
    } catch (const Error&) {
    }
}

}  // namespace

// The first byte says how the stream opens and in what portions the rest comes.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size == 0) {
        return 0;
    }
    constexpr std::size_t longest = std::size_t{1} << 16U;
    std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
    dsql::MessageStream stream(data[0] % 2 == 0 ? dsql::Opening::untyped : dsql::Opening::typed,
                               longest);
    const std::size_t portion = data[0] / 2U + 1U;
    std::size_t given = 0;
    std::size_t taken = 0;
    try {
        while (!bytes.empty()) {
            const std::string_view some = bytes.substr(0, portion);
            bytes.remove_prefix(some.size());
            stream.append(some);
            given += some.size();
            while (const auto message = stream.next()) {
                taken += message->bytes.size();
                if (taken > given || message->body.size() > message->bytes.size()) {
                    __builtin_trap();
                }
                read_body(message->body);
            }
        }
    } catch (const Error&) {
        // No message, or too long a one.
    }
    return 0;
}
