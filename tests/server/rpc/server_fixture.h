// A whole server in the test's process, with a fake engine and clock, and a client over a real
// channel on the loopback interface.
#pragma once

#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "grpc/health/v1/health.grpc.pb.h"
#include "server/server.h"
#include "tests/fakes/fake_clock.h"
#include "tests/fakes/fake_engine.h"
#include "wan/v1/video_generation.grpc.pb.h"

namespace wan::server {

class ServerTest : public ::testing::Test {
 protected:
  ServerTest();
  ~ServerTest() override;

  // Two free ports of 127.0.0.1, the test's own folder, and the model "m".
  ServerConfig DefaultConfig() const;

  // Starts a server and connects the stubs to it.
  void Start(const ServerConfig& config);
  // The same, and waits until it is SERVING.
  void StartServing() { StartServing(DefaultConfig()); }
  void StartServing(const ServerConfig& config);
  // Stops and destroys it; the folder stays.
  void StopServer();
  // Stops it while the clock runs, so that a job which does not end is requeued.
  void StopWhileTimePasses();

  std::shared_ptr<grpc::Channel> Connect() const;

  // Blocks until health of the service has the wanted value.
  void AwaitHealth(bool serving, const std::string& service = "");
  bool IsServing(const std::string& service = "");

  // Model "m", a prompt, every default.
  static wan::v1::GenerationRequest SmallRequest();

  grpc::Status CreateJob(const wan::v1::GenerationRequest& request, wan::v1::Job* job);
  // The job of a request that must be accepted.
  wan::v1::Job MustCreate(const wan::v1::GenerationRequest& request = SmallRequest());
  wan::v1::Job MustGet(const std::string& name);
  // All events after a sequence, to the end of the stream.
  grpc::Status Watch(const std::string& job, int64_t after_sequence,
                     std::vector<wan::v1::Event>* events);
  // Watches the job to its end and gets it.
  wan::v1::Job AwaitEnd(const std::string& name);

  // What the server logged, one entry a line.
  std::string Log() const;
  Logger& logger() { return logger_; }

  fakes::FakeClock clock_;
  fakes::FakeEngine engine_{&clock_};
  std::string folder_;
  std::unique_ptr<Server> server_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<wan::v1::VideoGeneration::Stub> video_;
  std::unique_ptr<grpc::health::v1::Health::Stub> health_;

 private:
  mutable absl::Mutex log_mutex_;
  std::string log_ ABSL_GUARDED_BY(log_mutex_);
  Logger logger_;
};

}  // namespace wan::server
