#include <holdfast/flow_engine/message.hpp>

#include "stored/layout.hpp"

namespace holdfast::flow {

std::string_view kind_name(const MessageBody& body) noexcept {
    return stored::Kinds<MessageBody>::names[body.index()];
}

}  // namespace holdfast::flow
