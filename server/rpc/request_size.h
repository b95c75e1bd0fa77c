// How large a request is where its memory may be a multiple of its bytes.
#pragma once

#include <google/protobuf/descriptor.h>
#include <google/protobuf/io/zero_copy_stream.h>

#include <cstdint>
#include <optional>
#include <string>

namespace wan::server {

// Looks for the place where a serialised `type` gets more than `limit` bytes beside the contents of
// its `bytes` fields, at any depth. Those contents (images) take no more memory than they have
// bytes, while an element of two bytes can become an object of a hundred. Returns the path of the
// field that is too much, without indices ("request.loras.name"); nothing if there is none, and for
// bytes that are no message, which a parser finds. Nothing is parsed: the work is bounded by
// `limit`, and no memory is needed.
std::optional<std::string> FieldPastPlainBytes(const google::protobuf::Descriptor& type,
                                               google::protobuf::io::ZeroCopyInputStream& stream,
                                               int64_t limit);

}  // namespace wan::server
