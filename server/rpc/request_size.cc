#include "server/rpc/request_size.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/wire_format_lite.h>

#include "absl/strings/str_cat.h"

namespace wan::server {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::internal::WireFormatLite;

// Fields of messages that are nested deeper than this are not looked at.
constexpr int kDepth = 8;

class Walk {
 public:
  Walk(google::protobuf::io::ZeroCopyInputStream& stream, int64_t limit)
      : input_(&stream), limit_(limit) {}

  // Reads a message to its end. Returns false if the message is damaged or exceeds the limit.
  bool Read(const Descriptor& type, int depth) {
    while (const uint32_t tag = input_.ReadTag()) {
      const int number = WireFormatLite::GetTagFieldNumber(tag);
      const FieldDescriptor* const field = type.FindFieldByNumber(number);
      const bool delimited =
          WireFormatLite::GetTagWireType(tag) == WireFormatLite::WIRETYPE_LENGTH_DELIMITED;
      const bool well =
          delimited ? ReadDelimited(field, depth) : WireFormatLite::SkipField(&input_, tag);
      if (well && !TooMuch(0)) continue;
      if (TooMuch(0) || ahead_too_much_) {
        const std::string name = field == nullptr ? absl::StrCat(number) : field->name();
        path_ = path_.empty() ? name : absl::StrCat(name, ".", path_);
      }
      return false;
    }
    return true;
  }

  // The path of the field that exceeded the limit; empty if none did.
  const std::string& path() const { return path_; }

 private:
  bool TooMuch(int64_t more) const { return input_.CurrentPosition() - contents_ + more > limit_; }

  bool ReadDelimited(const FieldDescriptor* field, int depth) {
    uint32_t length = 0;
    if (!input_.ReadVarint32(&length)) return false;
    if (field != nullptr && field->type() == FieldDescriptor::TYPE_MESSAGE && depth < kDepth) {
      const auto outer = input_.PushLimit(static_cast<int>(length));
      const bool well = Read(*field->message_type(), depth + 1);
      input_.PopLimit(outer);
      return well;
    }
    if (field != nullptr && field->type() == FieldDescriptor::TYPE_BYTES) {
      contents_ += length;
    } else if (TooMuch(length)) {
      ahead_too_much_ = true;
      return false;
    }
    return input_.Skip(static_cast<int>(length));
  }

  google::protobuf::io::CodedInputStream input_;
  const int64_t limit_;
  int64_t contents_ = 0;         // number of bytes in fields of type `bytes`
  bool ahead_too_much_ = false;  // whether the next field would exceed the limit
  std::string path_;
};

}  // namespace

std::optional<std::string> FieldPastPlainBytes(const Descriptor& type,
                                               google::protobuf::io::ZeroCopyInputStream& stream,
                                               int64_t limit) {
  Walk walk(stream, limit);
  if (walk.Read(type, 0) || walk.path().empty()) return std::nullopt;
  return walk.path();
}

}  // namespace wan::server
