// The real wanserve binary with the tiny golden checkpoint, and what tests ask it over gRPC.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tests/e2e/process.h"
#include "wan/v1/model_management.grpc.pb.h"
#include "wan/v1/telemetry.grpc.pb.h"
#include "wan/v1/video_generation.grpc.pb.h"

namespace wan::e2e {

struct ServerOptions {
  std::string data_dir;                             // required
  std::vector<std::string> models = {TinyModel()};  // "NAME=PATH"
  std::vector<std::string> flags;                   // further ones

  // "tiny=..." : TI2V-5B's layout at tiny widths, from tests/golden.
  static std::string TinyModel();
};

class TestServer {
 public:
  // Starts the process and waits until it listens (and, unless told otherwise, until it is
  // SERVING).
  explicit TestServer(ServerOptions options, bool await_serving = true);

  const std::string& grpc_address() const { return grpc_address_; }
  const std::string& metrics_address() const { return metrics_address_; }
  Process& process() { return *process_; }

  // kill -9, and the end of it.
  void Kill();
  // SIGTERM; returns the exit code.
  int Terminate();
  // What it logged so far.
  std::string Log() const;
  // The log once it has this text.
  std::string AwaitLog(const std::string& text) const;

  // Blocks until grpc.health.v1 says SERVING for the whole server.
  void AwaitServing();
  // The status now, as health.proto's number.
  int HealthNow(const std::string& service = "");

  wan::v1::VideoGeneration::Stub& videos() { return *videos_; }
  wan::v1::ModelManagement::Stub& models() { return *models_; }
  wan::v1::Telemetry::Stub& telemetry() { return *telemetry_; }

  // CreateJob; fails the test unless it is accepted.
  wan::v1::Job Submit(const wan::v1::GenerationRequest& request);
  wan::v1::Job Get(const std::string& job);
  // Reads WatchJob from a sequence until it ends or `stop` says so after an event.
  std::vector<wan::v1::Event> Watch(
      const std::string& job, int64_t after_sequence = 0,
      const std::function<bool(const wan::v1::Event&)>& stop = nullptr);
  // Waits for the job's end.
  wan::v1::Job Await(const std::string& job);
  // The whole artifact, or from an offset.
  std::string Download(const std::string& artifact, uint64_t offset = 0);
  // Body of GET /metrics.
  std::string Metrics();

 private:
  std::string stderr_path_;
  std::unique_ptr<Process> process_;
  std::string grpc_address_;
  std::string metrics_address_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<wan::v1::VideoGeneration::Stub> videos_;
  std::unique_ptr<wan::v1::ModelManagement::Stub> models_;
  std::unique_ptr<wan::v1::Telemetry::Stub> telemetry_;
};

// A request that the tiny model answers in well under a second: 64x32, 5 frames.
wan::v1::GenerationRequest TinyRequest(int steps = 3, int64_t seed = 7);

// The field paths of a BadRequest in a status' details.
std::vector<std::string> ViolatedFields(const grpc::Status& status);

// Finishing events: Completed, Failed, Cancelled.
bool IsFinalEvent(const wan::v1::Event& event);

}  // namespace wan::e2e
