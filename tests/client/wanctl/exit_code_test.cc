#include "client/wanctl/exit_code.h"

#include <gtest/gtest.h>

#include "client/error.h"
#include "google/rpc/error_details.pb.h"
#include "tests/client/fakes/events.h"

namespace wan::client {
namespace {

absl::Status WithReason(int code, const std::string& reason) {
  google::rpc::ErrorInfo info;
  info.set_reason(reason);
  google::rpc::Status status;
  status.set_code(code);
  status.add_details()->PackFrom(info);
  return FromProto(status);
}

TEST(ExitCodeTest, OfACall) {
  const struct {
    absl::StatusCode code;
    ExitCode before;
    ExitCode after;
  } table[] = {
      {absl::StatusCode::kOk, kExitDone, kExitDone},
      {absl::StatusCode::kCancelled, kExitCancelled, kExitCancelled},
      {absl::StatusCode::kUnknown, kExitFailed, kExitFailed},
      {absl::StatusCode::kInvalidArgument, kExitRejected, kExitFailed},
      {absl::StatusCode::kDeadlineExceeded, kExitCancelled, kExitCancelled},
      {absl::StatusCode::kNotFound, kExitRejected, kExitFailed},
      {absl::StatusCode::kAlreadyExists, kExitRejected, kExitFailed},
      {absl::StatusCode::kPermissionDenied, kExitRejected, kExitFailed},
      {absl::StatusCode::kResourceExhausted, kExitRejected, kExitFailed},
      {absl::StatusCode::kFailedPrecondition, kExitRejected, kExitFailed},
      {absl::StatusCode::kAborted, kExitFailed, kExitFailed},
      {absl::StatusCode::kOutOfRange, kExitRejected, kExitFailed},
      {absl::StatusCode::kUnimplemented, kExitRejected, kExitFailed},
      {absl::StatusCode::kInternal, kExitFailed, kExitFailed},
      {absl::StatusCode::kUnavailable, kExitUnreachable, kExitUnreachable},
      {absl::StatusCode::kDataLoss, kExitFailed, kExitFailed},
      {absl::StatusCode::kUnauthenticated, kExitRejected, kExitFailed},
  };
  for (const auto& row : table) {
    const absl::Status status(row.code, "");
    EXPECT_EQ(ExitCodeOf(status), row.before) << status;
    EXPECT_EQ(ExitCodeOf(status, /*accepted=*/true), row.after) << status;
  }
}

TEST(ExitCodeTest, AServerThatSaysItIsUnavailableWasReached) {
  EXPECT_EQ(ExitCodeOf(WithReason(14, "MODEL_LOADING")), kExitRejected);
  EXPECT_EQ(ExitCodeOf(WithReason(14, "SERVER_STOPPING"), /*accepted=*/true), kExitUnreachable);
}

TEST(ExitCodeTest, OfAJob) {
  EXPECT_EQ(ExitCodeOf(fakes::Completed(9)), kExitDone);
  EXPECT_EQ(ExitCodeOf(fakes::Cancelled(9, "deadline exceeded")), kExitCancelled);
  EXPECT_EQ(ExitCodeOf(fakes::Failed(9, 8, "out of memory")), kExitFailed);
  EXPECT_EQ(ExitCodeOf(fakes::Failed(9, 4, "deadline exceeded")), kExitCancelled);
}

}  // namespace
}  // namespace wan::client
