// The texts of messages: protobuf writes a `string` that is not UTF-8, and refuses to read it back.
// All functions are pure.
#pragma once

#include <google/protobuf/message.h>

#include <cstddef>
#include <optional>
#include <string>

namespace wan::server {

// Returns whether parsers accept what `message` serialises to. It costs about as much as writing
// and reading the message, and finds no names; FieldNotUtf8 does.
bool ReadsBack(const google::protobuf::Message& message);

// Returns the first field whose text is not UTF-8, such as "request.labels[team]"; nothing if there
// is none. Does not look into google.protobuf.Any, which holds bytes.
std::optional<std::string> FieldNotUtf8(const google::protobuf::Message& message);

// Applies ToUtf8 to every text of the message. For messages whose texts only inform.
void MendTexts(google::protobuf::Message& message);

// Returns `text` if it has at most `most_bytes`. Otherwise returns its beginning, cut between
// characters of UTF-8, and "...", which together have at most `most_bytes`.
std::string Shortened(const std::string& text, size_t most_bytes);

}  // namespace wan::server
