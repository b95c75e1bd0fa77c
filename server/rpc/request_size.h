// Bounds the memory of parsing a request, which may be a multiple of the request's bytes.
#pragma once

#include <google/protobuf/descriptor.h>
#include <google/protobuf/io/zero_copy_stream.h>

#include <cstdint>
#include <optional>
#include <string>

namespace wan::server {

// Counts the bytes of a serialized `type`, without the contents of `bytes` fields at any depth
// (images, which parsing does not enlarge; other elements may grow from 2 bytes to 100). Returns
// the path, without indices ("request.loras.name"), of the field that exceeds `limit`. Returns
// nothing if no field does, and for damaged messages, which the parser refuses. Stops at the limit
// and needs no memory.
std::optional<std::string> FieldPastPlainBytes(const google::protobuf::Descriptor& type,
                                               google::protobuf::io::ZeroCopyInputStream& stream,
                                               int64_t limit);

}  // namespace wan::server
