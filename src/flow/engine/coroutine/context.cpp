#include <holdfast/flow_engine/context.hpp>

#include <algorithm>
#include <array>
#include <cstddef>

#include <fmt/core.h>

#include <holdfast/base/error.hpp>
#include <holdfast/base/uuid.hpp>
#include <holdfast/flow_engine/saga.hpp>
#include <holdfast/flow_engine/stored.hpp>

namespace holdfast::flow {
namespace {

// Text that is not JSON would make the whole history unreadable.
Payload checked(Payload input) {
    if (!is_json(input.json)) {
        throw InvalidArgument("the input is not JSON");
    }
    return input;
}

}  // namespace

Op<Payload> Context::activity(std::string name, Payload input) {
    return make<Payload>(
        ActivityScheduled{std::move(name), checked(std::move(input)), std::nullopt, std::nullopt});
}

Op<Payload> Context::child(std::string name, Payload input) {
    return make<Payload>(ChildScheduled{std::move(name), {}, checked(std::move(input)), {}});
}

Op<void> Context::sleep(milliseconds duration) {
    auto timer = std::make_shared<detail::Operation>(core_, TimerCreated{});
    timer->modifiers.delay = std::max(duration, milliseconds{0});
    return Op<void>(std::move(timer));
}

Op<void> Context::sleep_until(Moment moment) {
    return make<void>(TimerCreated{std::min(moment, last_moment).time_since_epoch().count()});
}

Detached Context::detach_by_name(std::string name,
                                 std::string id,
                                 Payload input,
                                 std::string version) {
    return Detached(core_.ask(WorkflowDetached{
        std::move(name), std::move(id), checked(std::move(input)), std::move(version)}));
}

std::string Context::uuid() {
    Uuid id;
    for (std::size_t half = 0; half < 2; ++half) {
        const std::uint64_t bits = core_.random();
        for (std::size_t i = 0; i < 8; ++i) {
            id.bytes.at(half * 8 + i) = static_cast<std::byte>(bits >> (8 * i));
        }
    }
    id.bytes[6] = (id.bytes[6] & std::byte{0x0F}) | std::byte{0x40};
    id.bytes[8] = (id.bytes[8] & std::byte{0x3F}) | std::byte{0x80};
    return id.text();
}

void Context::set_attribute(std::string name, std::optional<Payload> value) {
    core_.note(AttributeSet{std::move(name), std::move(value)});
}

Task<void> Saga::run(Context& ctx, Undos undos) {
    const Shield shield = ctx.shield();
    std::size_t failures = 0;
    std::string first;
    while (!undos.empty()) {
        const std::function<Op<Payload>()> undo = std::move(undos.back());
        undos.pop_back();
        try {
            co_await undo();
        } catch (const Failure& failure) {
            if (++failures == 1) {
                first = failure.info().text();
            }
        }
    }
    if (failures > 0) {
        throw Failure("CompensationFailed",
                      fmt::format("{} undo step(s) failed; the first said: {}", failures, first));
    }
}

namespace detail {

std::string join_arguments(const std::vector<std::string>& values) {
    return join_array(values);
}

std::vector<std::string_view> split_arguments(const Payload& input, std::size_t expected) {
    std::vector<std::string_view> values;
    try {
        values = split_array(input.json);
    } catch (const std::exception& error) {
        undecodable(error);
    }
    if (values.size() != expected) {
        undecodable(std::runtime_error(
            fmt::format("there are {} arguments; the function takes {}", values.size(), expected)));
    }
    return values;
}

}  // namespace detail

}  // namespace holdfast::flow
