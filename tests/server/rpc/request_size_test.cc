#include "server/rpc/request_size.h"

#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <gtest/gtest.h>

#include <string>

#include "wan/v1/model_management.pb.h"
#include "wan/v1/video_generation.pb.h"

namespace wan::server {
namespace {

constexpr int64_t kLimit = 1000;

template <typename Message>
std::optional<std::string> FieldPastLimit(const std::string& bytes) {
  google::protobuf::io::ArrayInputStream stream(bytes.data(), static_cast<int>(bytes.size()), 64);
  return FieldPastPlainBytes(*Message::descriptor(), stream, kLimit);
}

template <typename Message>
std::optional<std::string> FieldPastLimit(const Message& message) {
  return FieldPastLimit<Message>(message.SerializeAsString());
}

TEST(RequestSizeTest, AnImageOfAnySizeIsNoPlainByte) {
  wan::v1::CreateJobRequest request;
  request.mutable_request()->set_image(std::string(1'000'000, 'i'));
  request.mutable_request()->set_prompt(std::string(900, 'p'));
  EXPECT_EQ(FieldPastLimit(request), std::nullopt);
  request.mutable_request()->set_prompt(std::string(1'000, 'p'));
  EXPECT_EQ(FieldPastLimit(request), "request.prompt");
}

TEST(RequestSizeTest, EndsExactlyAtTheLimit) {
  wan::v1::GetJobRequest request;
  request.set_name(std::string(kLimit - 3, 'n'));  // 1 byte is the tag's, 2 the length's
  ASSERT_EQ(request.ByteSizeLong(), static_cast<size_t>(kLimit));
  EXPECT_EQ(FieldPastLimit(request), std::nullopt);
  request.mutable_name()->push_back('n');
  EXPECT_EQ(FieldPastLimit(request), "name");
}

TEST(RequestSizeTest, ElementsCountHoweverSmall) {
  wan::v1::CreateJobRequest create;
  for (int i = 0; i < 600; ++i) create.mutable_request()->add_loras();
  EXPECT_EQ(FieldPastLimit(create), "request.loras");
  wan::v1::LoadModelRequest load;
  for (int i = 0; i < 600; ++i) load.add_loras();
  EXPECT_EQ(FieldPastLimit(load), "loras");
  wan::v1::ListJobsRequest list;
  for (int i = 0; i < 1'001; ++i) list.add_states(wan::v1::JOB_STATE_QUEUED);
  EXPECT_EQ(FieldPastLimit(list), "states");
  // An image of nothing is an object all the same, where it is repeated on the wire.
  std::string images;
  for (int i = 0; i < 600; ++i) images += std::string("\x22\x00", 2);
  EXPECT_EQ(FieldPastLimit<wan::v1::GenerationRequest>(images), "image");
}

TEST(RequestSizeTest, UnknownFieldsCountByTheirNumber) {
  const std::string unknown = std::string("\xfa\x3f\xe9\x07", 4) + std::string(1'001, 'u');
  EXPECT_EQ(FieldPastLimit<wan::v1::GetJobRequest>(unknown), "1023");
}

TEST(RequestSizeTest, DamagedBytesAreLeftToTheParser) {
  EXPECT_EQ(FieldPastLimit<wan::v1::GetJobRequest>("\x0a\x7f\x12"), std::nullopt);
  EXPECT_EQ(FieldPastLimit<wan::v1::CreateJobRequest>("\x0a\xff\xff\xff\xff\x0f\x22"),
            std::nullopt);
  EXPECT_EQ(FieldPastLimit<wan::v1::CreateJobRequest>(std::string(2'000, '\xff')), std::nullopt);
}

}  // namespace
}  // namespace wan::server
