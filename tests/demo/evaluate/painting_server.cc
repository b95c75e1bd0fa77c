#include "tests/demo/evaluate/painting_server.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "absl/strings/numbers.h"
#include "client/sha256.h"
#include "engine/media/video_writer.h"
#include "google/rpc/error_details.pb.h"
#include "tests/client/fakes/events.h"

namespace wan::demo {
namespace {

grpc::Status ComeBack(grpc::StatusCode code, const std::string& reason) {
  google::rpc::ErrorInfo info;
  info.set_reason(reason);
  google::rpc::RetryInfo retry;
  retry.mutable_retry_delay()->set_seconds(3);
  return fakes::ErrorWith(code, "not now", {&info, &retry});
}

// FFV1 in Matroska, as the real server writes it.
std::string Encode(const std::vector<uint8_t>& clip, const std::string& path) {
  auto writer = OpenVideoWriter(OutputKind::kLosslessMkv, path, {kPaintedSize, kPaintedSize, 16});
  EXPECT_TRUE(writer.ok()) << writer.status();
  const size_t frame = clip.size() / kPaintedFrames;
  for (int t = 0; t < kPaintedFrames; ++t) {
    EXPECT_TRUE((*writer)->Write(std::span(clip).subspan(t * frame, frame)).ok());
  }
  EXPECT_TRUE((*writer)->Finish().ok());
  return fakes::ReadFile(path);
}

// "jobs/N" or what lies below it.
size_t NumberOf(const std::string& name) {
  size_t number = 0;
  EXPECT_TRUE(absl::SimpleAtoi(name.substr(5, name.find('/', 5) - 5), &number)) << name;
  return number;
}

}  // namespace

PaintingServer::PaintingServer() {
  server_.scripts.create_job = [this](const wan::v1::CreateJobRequest& request, wan::v1::Job* job) {
    return Create(request.request(), job);
  };
  server_.scripts.get_job = [this](const wan::v1::GetJobRequest& request, wan::v1::Job* job) {
    return Get(request.name(), job);
  };
  server_.scripts.watch_job = [this](const wan::v1::WatchJobRequest& request) {
    return Watch(request.name());
  };
  server_.scripts.download = [this](const wan::v1::DownloadArtifactRequest& request) {
    return Download(request.name());
  };
}

void PaintingServer::Paint(const std::string& prompt, const PaintedScene& scene) {
  Video video;
  video.bytes = Encode(demo::Paint(scene), (folder_ / "video.mkv").string());
  client::Sha256 digest;
  digest.Update(video.bytes);
  video.artifact.set_kind(wan::v1::OUTPUT_KIND_LOSSLESS_MKV);
  video.artifact.set_size_bytes(video.bytes.size());
  video.artifact.set_sha256(digest.Finish());
  const std::lock_guard lock(mutex_);
  videos_[prompt] = std::move(video);
}

void PaintingServer::set_places(size_t places) {
  const std::lock_guard lock(mutex_);
  places_ = places;
}

void PaintingServer::set_loading(int times) {
  const std::lock_guard lock(mutex_);
  loading_ = times;
}

std::vector<wan::v1::GenerationRequest> PaintingServer::requests() const {
  const std::lock_guard lock(mutex_);
  return requests_;
}

size_t PaintingServer::most_waiting() const {
  const std::lock_guard lock(mutex_);
  return most_waiting_;
}

grpc::Status PaintingServer::Create(const wan::v1::GenerationRequest& request, wan::v1::Job* job) {
  const std::lock_guard lock(mutex_);
  if (loading_ > 0) {
    --loading_;
    return ComeBack(grpc::StatusCode::UNAVAILABLE, "MODEL_LOADING");
  }
  const auto known = std::find_if(requests_.begin(), requests_.end(), [&](const auto& earlier) {
    return earlier.request_id() == request.request_id();
  });
  job->set_name("jobs/" + std::to_string(known - requests_.begin()));
  if (known != requests_.end()) return grpc::Status::OK;
  if (waiting_.size() >= places_) {
    return ComeBack(grpc::StatusCode::RESOURCE_EXHAUSTED, "QUEUE_FULL");
  }
  waiting_.insert(job->name());
  most_waiting_ = std::max(most_waiting_, waiting_.size());
  requests_.push_back(request);
  return grpc::Status::OK;
}

// Job N was made at second 100, began at 200 + 2 N and ended a second later.
grpc::Status PaintingServer::Get(const std::string& name, wan::v1::Job* job) {
  const std::lock_guard lock(mutex_);
  const size_t number = NumberOf(name);
  *job->mutable_request() = requests_[number];
  job->mutable_request()->set_steps(20);
  job->mutable_create_time()->set_seconds(100);
  job->mutable_start_time()->set_seconds(200 + 2 * int64_t(number));
  job->mutable_end_time()->set_seconds(201 + 2 * int64_t(number));
  return grpc::Status::OK;
}

fakes::Stream<wan::v1::Event> PaintingServer::Watch(const std::string& name) {
  const std::lock_guard lock(mutex_);
  waiting_.erase(name);
  const auto video = videos_.find(requests_[NumberOf(name)].prompt());
  if (video == videos_.end()) return {.messages = {fakes::Failed(1, 13, "no paint")}};
  wan::v1::Event end = fakes::Completed(1);
  wan::v1::Artifact& artifact = *end.mutable_completed()->add_artifacts();
  artifact = video->second.artifact;
  artifact.set_name(name + "/artifacts/video.mkv");
  return {.messages = {end}};
}

fakes::Stream<wan::v1::DownloadArtifactResponse> PaintingServer::Download(const std::string& name) {
  const std::lock_guard lock(mutex_);
  const Video& video = videos_.at(requests_[NumberOf(name)].prompt());
  wan::v1::DownloadArtifactResponse chunk;
  *chunk.mutable_artifact() = video.artifact;
  chunk.mutable_artifact()->set_name(name);
  chunk.set_data(video.bytes);
  return {.messages = {chunk}};
}

}  // namespace wan::demo
