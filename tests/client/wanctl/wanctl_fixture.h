// Whole command lines against a server whose answers a test writes down.
#pragma once

#include <google/protobuf/util/json_util.h>
#include <gtest/gtest.h>

#include <map>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_split.h"
#include "absl/time/time.h"
#include "client/sha256.h"
#include "client/wanctl/wanctl.h"
#include "tests/client/fakes/events.h"
#include "tests/client/fakes/recording_backoff_clock.h"
#include "tests/client/fakes/scripted_server.h"
#include "tests/client/fakes/temp_folder.h"

namespace wan::client {

// The messages that were printed, one a line.
template <typename Message>
std::vector<Message> FromLines(const std::string& text) {
  std::vector<Message> messages;
  for (const auto& line : absl::StrSplit(text, '\n', absl::SkipEmpty())) {
    Message message;
    EXPECT_TRUE(google::protobuf::util::JsonStringToMessage(std::string(line), &message).ok())
        << std::string(line);
    messages.push_back(std::move(message));
  }
  return messages;
}

class WanctlTest : public testing::Test {
 protected:
  int Run(std::vector<std::string> args) {
    args.insert(args.begin(), {"--server", server_.address()});
    return RunAt(args);
  }

  // Without a server of this test.
  int RunAt(const std::vector<std::string>& args) {
    std::ostringstream out, err;
    const int code = RunWanctl(args, {.console = {out, err, 0, err_columns_, out_colours_},
                                      .data_home = (folder_ / "data").string(),
                                      .program_folder = folder_ / "bin",
                                      .stop = stop_.get_token(),
                                      .clock = clock_,
                                      .now = [this] { return now_; }});
    out_ = out.str();
    err_ = err.str();
    return code;
  }

  int Generate(const std::vector<std::string>& more = {}) {
    std::vector<std::string> args = {
        "generate", "--model", "5b", "--prompt", "a cat", "--output", (folder_ / "a.mp4").string()};
    args.insert(args.end(), more.begin(), more.end());
    return Run(args);
  }

  // Generate's stream.
  void Script(fakes::Stream<wan::v1::Event> stream) {
    server_.scripts.generate = [this, stream](const wan::v1::GenerateRequest& request) {
      generate_requests_.Add(request);
      return stream;
    };
  }
  void Script(std::vector<wan::v1::Event> events, grpc::Status end = grpc::Status::OK) {
    Script(fakes::Stream<wan::v1::Event>{.messages = std::move(events), .end = std::move(end)});
  }

  // An artifact that the server has.
  wan::v1::Artifact Serve(wan::v1::OutputKind kind, const std::string& file,
                          const std::string& bytes) {
    Sha256 hash;
    hash.Update(bytes);
    wan::v1::Artifact artifact;
    artifact.set_name("jobs/a1/artifacts/" + file);
    artifact.set_kind(kind);
    artifact.set_size_bytes(bytes.size());
    artifact.set_sha256(hash.Finish());
    files_[artifact.name()] = bytes;
    server_.scripts.download = [this](const wan::v1::DownloadArtifactRequest& request) {
      wan::v1::DownloadArtifactResponse chunk;
      chunk.set_offset(request.offset());
      chunk.set_data(files_.at(request.name()).substr(request.offset()));
      return fakes::Stream<wan::v1::DownloadArtifactResponse>{.messages = {chunk}};
    };
    return artifact;
  }

  wan::v1::Event CompletedWith(int64_t sequence, const std::vector<wan::v1::Artifact>& artifacts) {
    wan::v1::Event event = fakes::Completed(sequence);
    event.mutable_completed()->mutable_artifacts()->Add(artifacts.begin(), artifacts.end());
    return event;
  }

  // GetJob's answer.
  void ScriptJob(const wan::v1::Job& job) {
    server_.scripts.get_job = [job](const auto&, wan::v1::Job* answer) {
      *answer = job;
      return grpc::Status::OK;
    };
  }

  const fakes::TempFolder folder_;
  fakes::ScriptedServer server_;
  fakes::RecordingBackoffClock clock_;
  fakes::Requests<wan::v1::GenerateRequest> generate_requests_;
  std::map<std::string, std::string> files_;
  std::stop_source stop_;
  absl::Time now_ = absl::FromUnixMillis(1767225600500);
  int err_columns_ = 0;
  bool out_colours_ = false;
  std::string out_, err_;
};

}  // namespace wan::client
