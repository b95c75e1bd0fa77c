// wanctl top: what it shows, and how it runs on a terminal that a test plays.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "client/wanctl/top_view.h"
#include "tests/client/wanctl/wanctl_fixture.h"

namespace wan::client {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::Not;
using ::testing::SizeIs;
using ::testing::StartsWith;

wan::v1::Job MakeJob(const std::string& id, wan::v1::JobState state, int position) {
  wan::v1::Job job;
  job.set_name("jobs/" + id);
  job.set_state(state);
  job.mutable_request()->set_prompt("a cat");
  if (state == wan::v1::JOB_STATE_QUEUED) {
    job.set_queue_position(position);
  } else {
    job.mutable_progress()->set_step(4);
    job.mutable_progress()->set_total(50);
  }
  return job;
}

TopState MakeState() {
  TopState state;
  state.server = "gpu:1";
  state.time = absl::FromUnixSeconds(1767225600);
  state.info.set_version("1.2.3");
  state.info.set_running_jobs(1);
  state.info.set_queued_jobs(2);
  state.info.set_queue_capacity(64);
  wan::v1::DeviceSample& gpu = *state.devices.add_devices();
  gpu.set_device("cuda:0");
  gpu.set_name("NVIDIA H200");
  gpu.set_sm_activity_percent(98.5);
  state.jobs = {MakeJob("b", wan::v1::JOB_STATE_QUEUED, 1),
                MakeJob("r", wan::v1::JOB_STATE_RUNNING, 0),
                MakeJob("a", wan::v1::JOB_STATE_QUEUED, 0)};
  SortForTop(state.jobs);
  return state;
}

std::vector<std::string> Lines(const std::string& text) { return absl::StrSplit(text, '\n'); }

TEST(TopViewTest, ShowsQueueJobsAndDevices) {
  const std::vector<std::string> lines = Lines(RenderTop(MakeState(), {}, false));
  ASSERT_THAT(lines, SizeIs(9));
  EXPECT_EQ(lines[0], "wanserve 1.2.3 at gpu:1  00:00:00Z  1 running, 2 waiting of at most 64");
  EXPECT_THAT(lines[3], AllOf(StartsWith("cuda:0"), HasSubstr("NVIDIA H200"), HasSubstr("98.5")));
  EXPECT_THAT(lines[6], AllOf(StartsWith("jobs/r"), HasSubstr("4/50"))) << "what runs is first";
  EXPECT_THAT(lines[7], AllOf(StartsWith("jobs/a"), HasSubstr("next to run")));
  EXPECT_THAT(lines[8], StartsWith("jobs/b"));
}

TEST(TopViewTest, SaysWhyTheServerTakesNoJobs) {
  TopState state = MakeState();
  auto& reason = *state.info.add_not_serving_reasons();
  reason.set_reason("DISK_FULL");
  reason.set_message("1 byte is free");
  const std::vector<std::string> lines = Lines(RenderTop(state, {}, false));
  ASSERT_THAT(lines, SizeIs(10));
  EXPECT_EQ(lines[2], "NOT_SERVING: 1 byte is free");
}

TEST(TopViewTest, FitsTheTerminal) {
  TopState state = MakeState();
  for (int i = 2; i < 40; ++i) {
    state.jobs.push_back(MakeJob("q" + std::to_string(i), wan::v1::JOB_STATE_QUEUED, i));
  }
  for (const Screen::Size size : {Screen::Size{24, 80}, Screen::Size{10, 30}, Screen::Size{60, 200},
                                  Screen::Size{3, 5}, Screen::Size{1, 1}}) {
    const std::vector<std::string> lines = Lines(RenderTop(state, size, false));
    EXPECT_THAT(lines, SizeIs(size.rows));
    EXPECT_THAT(lines, Each(SizeIs(testing::Le(static_cast<size_t>(size.columns)))));
  }
  // 41 jobs, and 6 lines besides.
  EXPECT_EQ(Lines(RenderTop(state, {24, 80}, false)).back(), "24 more jobs; q quits");
  EXPECT_EQ(Lines(RenderTop(state, {60, 80}, false)).back(), "q quits");
}

TEST(TopViewTest, ColoursTakeNoPlace) {
  const std::string text = RenderTop(MakeState(), {24, 20}, true);
  EXPECT_THAT(Lines(text)[0], MatchesRegex("\x1b.1mwanserve 1.2.3 at gp\x1b.0m"));
  EXPECT_THAT(RenderTop(MakeState(), {24, 20}, false), Not(HasSubstr("\x1b")));
}

// A terminal whose user presses `keys`, one after each picture.
class PlayedScreen final : public Screen {
 public:
  PlayedScreen(std::string keys, std::vector<std::string>& pictures)
      : keys_(std::move(keys)), pictures_(pictures) {}
  Size size() const override { return {24, 80}; }
  void Draw(std::string_view text) override { pictures_.emplace_back(text); }
  char AwaitKey(absl::Duration limit, const std::stop_token&) override {
    EXPECT_EQ(limit, absl::Seconds(2));
    const char key = keys_.empty() ? 'q' : keys_.front();
    keys_.erase(0, 1);
    return key == '.' ? '\0' : key;
  }

 private:
  std::string keys_;
  std::vector<std::string>& pictures_;
};

class TopTest : public WanctlTest {
 protected:
  TopTest() {
    server_.scripts.get_server_info = [this](const auto&, wan::v1::ServerInfo* info) {
      ++asked_;
      if (fail_at_ == asked_) return grpc::Status(grpc::StatusCode::INTERNAL, "no idea");
      info->set_version("1.2.3");
      info->set_queued_jobs(asked_);
      return grpc::Status::OK;
    };
    server_.scripts.list_jobs = [](const auto& request, wan::v1::ListJobsResponse* response) {
      EXPECT_EQ(request.states_size(), 2);
      *response->add_jobs() = MakeJob("r", wan::v1::JOB_STATE_RUNNING, 0);
      return grpc::Status::OK;
    };
    server_.scripts.watch_devices = [](const auto& request) {
      EXPECT_EQ(request.count(), 1);
      wan::v1::WatchDevicesResponse samples;
      samples.add_devices()->set_device("cuda:0");
      return fakes::Stream<wan::v1::WatchDevicesResponse>{.messages = {samples}};
    };
  }

  int Top(const std::string& keys) {
    std::ostringstream out, err;
    const int code =
        RunWanctl({"--server", server_.address(), "top", "--interval", "2"},
                  {.console = {out, err}, .stop = stop_.get_token(), .open_screen = [&] {
                     return std::make_unique<PlayedScreen>(keys, pictures_);
                   }});
    out_ = out.str();
    err_ = err.str();
    return code;
  }

  int asked_ = 0;
  int fail_at_ = 0;
  std::vector<std::string> pictures_;
};

TEST_F(TopTest, RedrawsUntilQ) {
  EXPECT_EQ(Top("..xq"), 0);
  ASSERT_THAT(pictures_, SizeIs(4)) << "time, time, any key, q";
  EXPECT_THAT(pictures_[0],
              AllOf(HasSubstr("1 waiting"), HasSubstr("jobs/r"), HasSubstr("cuda:0")));
  EXPECT_THAT(pictures_[3], HasSubstr("4 waiting"));
  EXPECT_EQ(out_ + err_, "");
}

TEST_F(TopTest, AnErrorLaterKeepsThePicture) {
  fail_at_ = 2;
  EXPECT_EQ(Top(".."), 0);
  ASSERT_THAT(pictures_, SizeIs(3));
  EXPECT_THAT(pictures_[1], AllOf(HasSubstr("wanctl: no idea"), HasSubstr("jobs/r")));
  EXPECT_THAT(pictures_[2], Not(HasSubstr("no idea")));
}

TEST_F(TopTest, AnErrorAtOnceIsAnError) {
  fail_at_ = 1;
  EXPECT_EQ(Top(""), 4);
  EXPECT_THAT(err_, HasSubstr("no idea"));
  EXPECT_THAT(pictures_, SizeIs(0));
}

TEST_F(TopTest, WithoutATerminalItPrintsOnce) {
  EXPECT_EQ(Run({"top"}), 0);
  EXPECT_THAT(out_, AllOf(HasSubstr("1 waiting"), HasSubstr("jobs/r"), Not(HasSubstr("q quits"))));
  EXPECT_EQ(asked_, 1);
}

}  // namespace
}  // namespace wan::client
