// Finds and mends texts in messages that are not UTF-8: protobuf serializes such a `string`, but
// then refuses to parse it. All functions are pure.
#pragma once

#include <google/protobuf/message.h>

#include <cstddef>
#include <optional>
#include <string>

namespace wan::server {

// Returns whether the message, when serialized, can be parsed again. The function takes about as
// long as serializing and parsing the message. If the result is false, FieldNotUtf8 finds the
// invalid field.
bool ReadsBack(const google::protobuf::Message& message);

// Returns the path of the first field that is not UTF-8, such as "request.labels[team]"; nothing if
// there is none. Does not look into fields of type google.protobuf.Any.
std::optional<std::string> FieldNotUtf8(const google::protobuf::Message& message);

// Applies ToUtf8 to every text of the message. Use MendTexts only if no program depends on the
// exact texts.
void MendTexts(google::protobuf::Message& message);

// Returns `text` if it has at most `most_bytes`; otherwise its beginning, cut between UTF-8
// characters, and "...", together at most `most_bytes`.
std::string Shortened(const std::string& text, size_t most_bytes);

}  // namespace wan::server
