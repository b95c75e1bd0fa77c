// Bounds the memory of a request before it is parsed, which may be a multiple of its bytes.
#pragma once

#include <google/protobuf/descriptor.h>
#include <google/protobuf/io/zero_copy_stream.h>

#include <cstdint>
#include <optional>
#include <string>

namespace wan::server {

// Looks for the place where a serialised `type` gets more than `limit` bytes beside the contents of
// its `bytes` fields, at any depth. These contents (images) take only their own bytes of memory,
// while an element of two bytes can become an object of a hundred. Returns the path of the field
// that is too much, without indices ("request.loras.name"); nothing if there is none, and for bytes
// that are no message, which a parser finds. Nothing is parsed: the work is bounded by `limit`, and
// no memory is needed.
std::optional<std::string> FieldPastPlainBytes(const google::protobuf::Descriptor& type,
                                               google::protobuf::io::ZeroCopyInputStream& stream,
                                               int64_t limit);

}  // namespace wan::server
