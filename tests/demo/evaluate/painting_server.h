// A server in this process whose videos are painted: every prompt it knows has one.
#pragma once

#include <map>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "tests/client/fakes/scripted_server.h"
#include "tests/client/fakes/temp_folder.h"
#include "tests/demo/evaluate/scene_painter.h"
#include "wan/v1/generation.pb.h"

namespace wan::demo {

class PaintingServer {
 public:
  PaintingServer();

  std::string address() const { return server_.address(); }

  // What the jobs with this prompt show. Jobs with other prompts fail with INTERNAL "no paint".
  void Paint(const std::string& prompt, const PaintedScene& scene);

  // Jobs that may wait; one more is refused with QUEUE_FULL. A job is done once it is watched.
  void set_places(size_t places);

  // As often, requests are refused while the model is being loaded.
  void set_loading(int times);

  // Every request that made a job, and the most jobs that waited at once.
  std::vector<wan::v1::GenerationRequest> requests() const;
  size_t most_waiting() const;

  // Further answers.
  fakes::Scripts& scripts() { return server_.scripts; }

 private:
  struct Video {
    wan::v1::Artifact artifact;
    std::string bytes;
  };

  grpc::Status Create(const wan::v1::GenerationRequest& request, wan::v1::Job* job);
  grpc::Status Get(const std::string& name, wan::v1::Job* job);
  fakes::Stream<wan::v1::Event> Watch(const std::string& name);
  fakes::Stream<wan::v1::DownloadArtifactResponse> Download(const std::string& name);

  const fakes::TempFolder folder_;
  mutable std::mutex mutex_;
  std::map<std::string, Video> videos_;               // by prompt
  std::vector<wan::v1::GenerationRequest> requests_;  // job N is "jobs/N"
  std::set<std::string> waiting_;
  size_t places_ = 1000;
  size_t most_waiting_ = 0;
  int loading_ = 0;
  // Last: its threads end first.
  fakes::ScriptedServer server_;
};

}  // namespace wan::demo
