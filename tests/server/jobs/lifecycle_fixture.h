// What the tests of a job's end and of its return share: cancel and deadline, kill -9, stop.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "server/conversion/convert.h"
#include "tests/server/jobs/test_support.h"

namespace wan::server {

class LifecycleTest : public ServiceTest {
 protected:
  // What a kill -9 now would leave, opened by a new process: a new engine and service.
  void KillAndRestart(bool load = true) {
    const std::filesystem::path copy = CopyOfData(absl::StrCat("after_kill_", ++kills_));
    Close();
    engine_ = std::make_unique<fakes::FakeEngine>(&clock_);
    OpenIn(copy, load);
  }

  // A copy of the data folder as it is once all that happened is written.
  std::filesystem::path CopyOfData(const std::string& name) {
    service_->AwaitWrites();  // waits until the log is written
    std::filesystem::path copy = folder_.path() / name;
    CopyFolder(options_.data_dir, copy);
    return copy;
  }

  // A job that runs and stands in `stage`.
  std::string CreateHeld(const std::string& stage,
                         const wan::v1::GenerationRequest& request = Request()) {
    engine_->Hold(stage);
    std::string name = Create(request);
    engine_->AwaitHeld(stage);
    return name;
  }

  wan::v1::GenerationRequest RequestWithDeadline(absl::Duration from_now) {
    wan::v1::GenerationRequest request = Request();
    *request.mutable_deadline() = ToProto(clock_.Now() + from_now);
    return request;
  }

 private:
  int kills_ = 0;
};

inline void ExpectNoHoles(const std::vector<wan::v1::Event>& events) {
  int64_t sequence = 0;
  for (const wan::v1::Event& event : events) EXPECT_EQ(event.sequence(), ++sequence);
}

}  // namespace wan::server
