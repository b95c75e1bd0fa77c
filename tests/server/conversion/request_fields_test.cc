// Every field of a request passes through the engine's request, so that nobody can forget one.
#include <google/protobuf/descriptor.h>

#include <set>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/conversion/convert.h"

namespace wan::server {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

// The fields that are the server's own business, and the files, which are passed beside the
// request.
const std::set<std::string>& FieldsOfTheServer() {
  static const auto* const fields = new std::set<std::string>{
      "priority", "deadline",        "request_id", "labels", "webhook_url",
      "image",    "initial_latents", "latents",    "resume"};
  return *fields;
}

std::string TextFor(const FieldDescriptor& field) {
  return field.name() == "background" ? "#102030" : "text";
}

void SetEveryField(Message& message);

void AddTo(const FieldDescriptor& field, Message& message) {
  const Reflection& reflection = *message.GetReflection();
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_DOUBLE:
      reflection.AddDouble(&message, &field, 2.5);
      return;
    case FieldDescriptor::CPPTYPE_ENUM:
      reflection.AddEnumValue(&message, &field, 1);
      return;
    case FieldDescriptor::CPPTYPE_MESSAGE:
      SetEveryField(*reflection.AddMessage(&message, &field));
      return;
    default:
      FAIL() << "this test cannot add to " << field.full_name() << "; teach it";
  }
}

void SetField(const FieldDescriptor& field, Message& message) {
  const Reflection& reflection = *message.GetReflection();
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32:
      reflection.SetInt32(&message, &field, 7);
      return;
    case FieldDescriptor::CPPTYPE_INT64:
      reflection.SetInt64(&message, &field, 7);
      return;
    case FieldDescriptor::CPPTYPE_DOUBLE:
      reflection.SetDouble(&message, &field, 2.5);
      return;
    case FieldDescriptor::CPPTYPE_BOOL:
      reflection.SetBool(&message, &field, true);
      return;
    case FieldDescriptor::CPPTYPE_ENUM:
      reflection.SetEnumValue(&message, &field, 1);
      return;
    case FieldDescriptor::CPPTYPE_STRING:
      reflection.SetString(&message, &field, TextFor(field));
      return;
    default:
      FAIL() << "this test cannot set " << field.full_name() << "; teach it";
  }
}

void SetEveryField(Message& message) {
  for (int i = 0; i < message.GetDescriptor()->field_count(); ++i) {
    const FieldDescriptor& field = *message.GetDescriptor()->field(i);
    if (FieldsOfTheServer().contains(std::string(field.name()))) continue;
    field.is_repeated() ? AddTo(field, message) : SetField(field, message);
  }
}

TEST(RequestFieldsTest, EveryFieldGoesThroughTheEnginesRequest) {
  wan::v1::GenerationRequest request;
  SetEveryField(request);
  EXPECT_EQ(ToProto(ToEngineRequest(request)).DebugString(), request.DebugString());
}

}  // namespace
}  // namespace wan::server
