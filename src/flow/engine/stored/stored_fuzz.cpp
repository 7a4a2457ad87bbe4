// Any text is an event, a message, a failure, a list, or refused; and what was accepted comes back.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include <holdfast/base/assert.hpp>
#include <holdfast/flow_engine/stored.hpp>

namespace holdfast::flow {
namespace {

void check_event(std::string_view text) {
    const Event event = decode_event(text);
    HOLDFAST_ASSERT(decode_event(encode(event)) == event);
}

void check_events(std::string_view text) {
    const ExportedHistory history = decode_export(text);
    HOLDFAST_ASSERT(decode_export(encode(history)) == history);
    const std::vector<Event> events = decode_events(text);
    HOLDFAST_ASSERT(decode_events(encode(events)) == events);
}

void check_message(std::string_view text) {
    const MessageBody message = decode_message(text);
    HOLDFAST_ASSERT(decode_message(encode(message)) == message);
}

void check_failure(std::string_view text) {
    const FailureInfo failure = decode_failure(text);
    HOLDFAST_ASSERT(decode_failure(encode(failure)) == failure);
}

void check_array(std::string_view text) {
    const std::vector<std::string_view> values = split_array(text);
    const std::string joined = join_array({values.begin(), values.end()});
    HOLDFAST_ASSERT(split_array(joined) == values);
}

// Anything but a refusal with a message gets out and stops the fuzzer.
void accept_or_refuse(void (*check)(std::string_view), std::string_view text) {
    try {
        check(text);
    } catch (const Undecodable& error) {
        HOLDFAST_ASSERT(error.what()[0] != '\0');
    }
}

}  // namespace
}  // namespace holdfast::flow

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    for (const auto check : {holdfast::flow::check_event,
                             holdfast::flow::check_events,
                             holdfast::flow::check_message,
                             holdfast::flow::check_failure,
                             holdfast::flow::check_array}) {
        holdfast::flow::accept_or_refuse(check, text);
    }
    return 0;
}
