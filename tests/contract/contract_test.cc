// What clients rely on about the contract as a whole, read from its descriptors.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "google/api/field_behavior.pb.h"
#include "wan/v1/generation.pb.h"
#include "wan/v1/heartbeat.pb.h"
#include "wan/v1/model_management.pb.h"
#include "wan/v1/stage_report.pb.h"
#include "wan/v1/telemetry.pb.h"
#include "wan/v1/video_generation.pb.h"

namespace wan {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::FileDescriptor;
using google::protobuf::MethodDescriptor;
using ::testing::IsEmpty;

std::vector<const FileDescriptor*> Files() {
  return {v1::Job::descriptor()->file(),         v1::Model::descriptor()->file(),
          v1::JobReport::descriptor()->file(),   v1::CreateJobRequest::descriptor()->file(),
          v1::StageReport::descriptor()->file(), v1::Heartbeat::descriptor()->file()};
}

std::vector<const MethodDescriptor*> Methods() {
  std::vector<const MethodDescriptor*> methods;
  for (const FileDescriptor* file : Files()) {
    for (int i = 0; i < file->service_count(); ++i) {
      for (int k = 0; k < file->service(i)->method_count(); ++k) {
        methods.push_back(file->service(i)->method(k));
      }
    }
  }
  return methods;
}

// The message and, below it, those of wan.v1 that it holds.
void AddMessages(const Descriptor* message, std::vector<const Descriptor*>& found) {
  if (message->file()->package() != "wan.v1" || message->options().map_entry()) return;
  if (std::find(found.begin(), found.end(), message) != found.end()) return;
  found.push_back(message);
  for (int i = 0; i < message->field_count(); ++i) {
    if (message->field(i)->message_type() != nullptr) {
      AddMessages(message->field(i)->message_type(), found);
    }
  }
}

bool HasBehavior(const FieldDescriptor* field) {
  return field->options().ExtensionSize(google::api::field_behavior) > 0;
}

TEST(ContractTest, EachFieldOfARequestSaysHowItBehaves) {
  std::vector<std::string> silent;
  for (const MethodDescriptor* method : Methods()) {
    std::vector<const Descriptor*> messages;
    AddMessages(method->input_type(), messages);
    for (const Descriptor* message : messages) {
      // What a resource holds is the server's to fill in, and said at the resource's own field.
      if (message != method->input_type() && !absl::EndsWith(message->name(), "Request")) continue;
      for (int i = 0; i < message->field_count(); ++i) {
        if (!HasBehavior(message->field(i))) silent.push_back(message->field(i)->full_name());
      }
    }
  }
  EXPECT_THAT(silent, IsEmpty());
}

TEST(ContractTest, EachFieldOfAResourceSaysHowItBehaves) {
  std::vector<std::string> silent;
  for (const Descriptor* resource :
       {v1::Job::descriptor(), v1::Model::descriptor(), v1::Artifact::descriptor()}) {
    for (int i = 0; i < resource->field_count(); ++i) {
      if (!HasBehavior(resource->field(i))) silent.push_back(resource->field(i)->full_name());
    }
  }
  EXPECT_THAT(silent, IsEmpty());
}

TEST(ContractTest, EachListComesInPages) {
  std::vector<std::string> wrong;
  for (const MethodDescriptor* method : Methods()) {
    if (!absl::StartsWith(method->name(), "List")) continue;
    const bool paged = method->input_type()->FindFieldByName("page_size") != nullptr &&
                       method->input_type()->FindFieldByName("page_token") != nullptr &&
                       method->output_type()->FindFieldByName("next_page_token") != nullptr;
    if (!paged) wrong.push_back(method->full_name());
  }
  EXPECT_THAT(wrong, IsEmpty());
}

TEST(ContractTest, EachFileSaysWhereItsCodeGoesInOtherLanguages) {
  for (const FileDescriptor* file : Files()) {
    EXPECT_EQ(file->options().go_package(), "wanserve/wan/v1;wanv1") << file->name();
    EXPECT_EQ(file->options().java_package(), "com.wan.v1") << file->name();
    EXPECT_TRUE(file->options().java_multiple_files()) << file->name();
    EXPECT_EQ(file->options().csharp_namespace(), "Wan.V1") << file->name();
  }
}

}  // namespace
}  // namespace wan
