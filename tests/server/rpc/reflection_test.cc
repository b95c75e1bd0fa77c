// Reflection is a call like the others: what its callers cannot make the server do.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "grpc/reflection/v1/reflection.grpc.pb.h"
#include "tests/server/rpc/server_fixture.h"
#include "tests/support/http_get.h"
#include "tests/support/prometheus_text.h"
#include "tests/support/rpc_errors.h"

namespace wan::server {
namespace {

using grpc::reflection::v1::ServerReflection;
using grpc::reflection::v1::ServerReflectionRequest;
using grpc::reflection::v1::ServerReflectionResponse;
using ::testing::HasSubstr;

constexpr size_t kMostNameBytes = 1024;

class ReflectionTest : public ServerTest {
 protected:
  struct Conversation {
    explicit Conversation(const std::shared_ptr<grpc::Channel>& channel)
        : stub(ServerReflection::NewStub(channel)), stream(stub->ServerReflectionInfo(&context)) {}

    ServerReflectionResponse Ask(const ServerReflectionRequest& question) {
      ServerReflectionResponse answer;
      EXPECT_TRUE(stream->Write(question) && stream->Read(&answer));
      return answer;
    }

    grpc::ClientContext context;
    std::unique_ptr<ServerReflection::Stub> stub;
    std::unique_ptr<grpc::ClientReaderWriter<ServerReflectionRequest, ServerReflectionResponse>>
        stream;
  };

  static ServerReflectionRequest SymbolOf(size_t bytes) {
    std::string name;
    while (name.size() + 2 <= bytes) name += "a.";
    name.resize(bytes, 'a');
    ServerReflectionRequest question;
    question.set_file_containing_symbol(name);
    return question;
  }

  std::optional<double> Value(const std::string& metric) const {
    const HostPort address = server_->metrics_address();
    const auto answer = support::HttpGet(address.host, address.port, "/metrics");
    EXPECT_TRUE(answer.ok()) << answer.status();
    const auto parsed = support::PrometheusText::Parse(answer.ok() ? answer->body : "");
    return parsed.ok() ? parsed->Value(metric) : std::nullopt;
  }
};

TEST_F(ReflectionTest, ANameMayHaveAKibibyteAndNoMore) {
  StartServing();
  Conversation conversation(channel_);
  const auto fits = conversation.Ask(SymbolOf(kMostNameBytes));
  EXPECT_EQ(fits.error_response().error_code(), grpc::StatusCode::NOT_FOUND);
  const std::string too_long(kMostNameBytes + 1, 'a');
  ServerReflectionRequest questions[4];
  questions[0].set_file_containing_symbol(too_long);
  questions[1].set_file_by_filename(too_long);
  questions[2].mutable_file_containing_extension()->set_containing_type(too_long);
  questions[3].set_all_extension_numbers_of_type(too_long);
  for (const ServerReflectionRequest& question : questions) {
    const auto refused = conversation.Ask(question);
    EXPECT_EQ(refused.error_response().error_code(), grpc::StatusCode::INVALID_ARGUMENT);
    EXPECT_THAT(refused.error_response().error_message(),
                HasSubstr(": is 1025 bytes long; must be at most 1024"));
  }
  // The conversation goes on.
  ServerReflectionRequest known;
  known.set_file_containing_symbol("wan.v1.Job");
  EXPECT_TRUE(conversation.Ask(known).has_file_descriptor_response());
  conversation.stream->WritesDone();
  EXPECT_TRUE(conversation.stream->Finish().ok());
}

TEST_F(ReflectionTest, AQuestionMayHaveFourKibibytesAndNoMore) {
  StartServing();
  ServerReflectionRequest question;
  question.set_list_services("*");
  // A tag and two bytes of length for the host, three bytes for the rest.
  question.set_host(std::string(4096 - 6, 'h'));
  ASSERT_EQ(question.ByteSizeLong(), 4096u);
  Conversation fits(channel_);
  EXPECT_EQ(fits.Ask(question).list_services_response().service_size(), 7);
  question.mutable_host()->push_back('h');
  Conversation too_long(channel_);
  too_long.stream->Write(question);
  ServerReflectionResponse answer;
  EXPECT_FALSE(too_long.stream->Read(&answer));
  const grpc::Status status = too_long.stream->Finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(status.error_message(), "the request has 4097 bytes; must be at most 4096");
  fits.context.TryCancel();
}

TEST_F(ReflectionTest, ALargeQuestionIsRefusedUnreadAndItsBytesAreFree) {
  StartServing();
  Conversation conversation(channel_);
  conversation.stream->Write(SymbolOf(size_t{4} << 20));
  ServerReflectionResponse answer;
  EXPECT_FALSE(conversation.stream->Read(&answer));
  EXPECT_EQ(conversation.stream->Finish().error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(Value("wan_grpc_request_bytes"), 0);
}

TEST_F(ReflectionTest, AConversationHasAPlaceAmongTheStreams) {
  StartServing();
  while (Value("wan_grpc_streams") != 0) {
  }
  ServerReflectionRequest list;
  list.set_list_services("*");
  Conversation conversation(channel_);
  conversation.Ask(list);
  EXPECT_EQ(Value("wan_grpc_streams"), 1);
  conversation.stream->WritesDone();
  EXPECT_TRUE(conversation.stream->Finish().ok());
  while (Value("wan_grpc_streams") != 0) {
  }
  EXPECT_EQ(Value("wan_grpc_request_bytes"), 0);
}

TEST_F(ReflectionTest, AnswersThatNobodyReadsEndTheCall) {
  StartServing();
  while (Value("wan_grpc_streams") != 0) {
  }
  ServerReflectionRequest question;
  question.set_file_containing_symbol("wan.v1.VideoGeneration");
  Conversation conversation(channel_);
  // More answers than gRPC takes for a reader that does not read, and questions that it does take.
  for (int i = 0; i < 500; ++i) ASSERT_TRUE(conversation.stream->Write(question)) << i;
  while (Value("wan_grpc_answer_bytes") == 0) {
  }
  clock_.Advance(absl::Seconds(59));
  EXPECT_EQ(Value("wan_grpc_streams"), 1);
  // What the server had just handed to gRPC may have begun the time anew.
  while (Value("wan_grpc_streams") == 1) clock_.Advance(absl::Seconds(60));
  ServerReflectionResponse answer;
  while (conversation.stream->Read(&answer)) {
  }
  EXPECT_EQ(conversation.stream->Finish().error_code(), grpc::StatusCode::CANCELLED);
}

TEST_F(ReflectionTest, AStopEndsAConversationThatWaits) {
  StartServing();
  ServerReflectionRequest list;
  list.set_list_services("*");
  Conversation conversation(channel_);
  conversation.Ask(list);
  StopServer();
  const grpc::Status status = conversation.stream->Finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_THAT(status.error_message(), HasSubstr("stopping"));
}

TEST_F(ReflectionTest, BytesThatAreNoQuestionAreInvalidArgument) {
  StartServing();
  ServerReflectionRequest question;
  question.set_file_containing_symbol("\xff");
  Conversation conversation(channel_);
  conversation.stream->Write(question);
  ServerReflectionResponse answer;
  EXPECT_FALSE(conversation.stream->Read(&answer));
  const grpc::Status status = conversation.stream->Finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(support::ReasonOf(status), "INVALID_ARGUMENT");
}

}  // namespace
}  // namespace wan::server
