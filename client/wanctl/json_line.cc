#include "client/wanctl/json_line.h"

#include <google/protobuf/any.pb.h>
#include <google/protobuf/descriptor.h>
#include <google/protobuf/util/json_util.h>

#include <memory>
#include <vector>

#include "google/rpc/status.pb.h"

namespace wan::client {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

bool Known(const google::protobuf::Any& any) {
  std::string name;
  if (!google::protobuf::Any::ParseAnyTypeUrl(any.type_url(), &name)) return false;
  const auto* type =
      google::protobuf::DescriptorPool::generated_pool()->FindMessageTypeByName(name);
  if (type == nullptr) return false;
  const std::unique_ptr<Message> content(
      google::protobuf::MessageFactory::generated_factory()->GetPrototype(type)->New());
  return content->ParseFromString(any.value());
}

// Removes details of unknown types from every google.rpc.Status within `message`.
void DropUnknownDetails(Message* message) {
  if (message->GetDescriptor() == google::rpc::Status::descriptor()) {
    auto* details = static_cast<google::rpc::Status*>(message)->mutable_details();
    for (int i = details->size() - 1; i >= 0; --i) {
      if (!Known(details->Get(i))) details->DeleteSubrange(i, 1);
    }
    return;
  }
  const google::protobuf::Reflection& reflection = *message->GetReflection();
  std::vector<const FieldDescriptor*> fields;
  reflection.ListFields(*message, &fields);
  for (const FieldDescriptor* field : fields) {
    if (field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE || field->is_map()) continue;
    if (!field->is_repeated()) {
      DropUnknownDetails(reflection.MutableMessage(message, field));
      continue;
    }
    for (int i = 0; i < reflection.FieldSize(*message, field); ++i) {
      DropUnknownDetails(reflection.MutableRepeatedMessage(message, field, i));
    }
  }
}

}  // namespace

std::string JsonLine(const Message& message) {
  const std::unique_ptr<Message> known(message.New());
  known->CopyFrom(message);
  DropUnknownDetails(known.get());
  std::string line;
  const auto status = google::protobuf::util::MessageToJsonString(*known, &line);
  // The conversion cannot fail, because everything except the removed details has a JSON form.
  return status.ok() ? line : "{}";
}

}  // namespace wan::client
