// Maps of payloads that are merged key by key: memos and search attributes.
#pragma once

#include <google/protobuf/map.h>
#include <temporal/api/common/v1/message.pb.h>

namespace holdfast::server::history {

using PayloadMap = google::protobuf::Map<std::string, temporal::api::common::v1::Payload>;

// Encodes null or an empty list: as a value of a map it removes the key.
[[nodiscard]] bool is_null(const temporal::api::common::v1::Payload& payload);

// Keys of `from` replace those of `to`; null values remove them.
void merge(PayloadMap& to, const PayloadMap& from);

// Without the keys whose value is null.
void drop_nulls(PayloadMap& map);

}  // namespace holdfast::server::history
