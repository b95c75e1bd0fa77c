// Limits the memory that parsing a request takes, which may be a multiple of the request's size.
#pragma once

#include <google/protobuf/descriptor.h>
#include <google/protobuf/io/zero_copy_stream.h>

#include <cstdint>
#include <optional>
#include <string>

namespace wan::server {

// Counts the bytes of a serialized message of type `type`, but not the contents of `bytes` fields
// at any depth: these are files, which parsing does not enlarge, while other elements may grow
// from 2 bytes to 100. Returns the path, without indices ("request.loras.name"), of the field at
// which the count exceeds `limit`. Returns nothing if the count stays within the limit, and for
// damaged messages, which the parser refuses. Stops counting at the limit and allocates no memory.
std::optional<std::string> FieldPastPlainBytes(const google::protobuf::Descriptor& type,
                                               google::protobuf::io::ZeroCopyInputStream& stream,
                                               int64_t limit);

}  // namespace wan::server
