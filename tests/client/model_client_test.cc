#include "client/model_client.h"

#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "client/telemetry_client.h"
#include "tests/client/fakes/scripted_server.h"

namespace wan::client {
namespace {

class ModelClientTest : public testing::Test {
 protected:
  fakes::ScriptedServer server_;
  const Connection connection_{{.server = server_.address()}};
  const ModelClient models_{connection_};
  const TelemetryClient telemetry_{connection_};
};

TEST_F(ModelClientTest, EveryMethodReachesItsOwn) {
  server_.scripts.list_models = [](const auto&, wan::v1::ListModelsResponse* response) {
    response->add_models()->set_name("models/5b");
    return grpc::Status::OK;
  };
  server_.scripts.load_model = [](const auto& request, wan::v1::Model* model) {
    model->set_name(absl::StrCat("loaded ", request.name(), " from ", request.path()));
    return grpc::Status::OK;
  };
  server_.scripts.unload_model = [](const auto& request, wan::v1::Model* model) {
    model->set_name(absl::StrCat("unloaded ", request.name()));
    return grpc::Status::OK;
  };
  server_.scripts.warmup_model = [](const auto& request, wan::v1::Model* model) {
    model->set_name(absl::StrCat("warmed ", request.name()));
    *model->mutable_warm_shapes() = request.shapes();
    return grpc::Status::OK;
  };

  EXPECT_EQ(models_.ListModels()->models(0).name(), "models/5b");
  wan::v1::LoadModelRequest load;
  load.set_name("5b");
  load.set_path("/checkpoint");
  EXPECT_EQ(models_.LoadModel(load)->name(), "loaded 5b from /checkpoint");
  wan::v1::UnloadModelRequest unload;
  unload.set_name("5b");
  EXPECT_EQ(models_.UnloadModel(unload)->name(), "unloaded 5b");
  wan::v1::WarmupModelRequest warmup;
  warmup.set_name("5b");
  warmup.add_shapes()->set_width(64);
  EXPECT_EQ(models_.WarmupModel(warmup)->name(), "warmed 5b");
  EXPECT_EQ(models_.WarmupModel(warmup)->warm_shapes(0).width(), 64);
}

TEST_F(ModelClientTest, AnErrorIsTheServers) {
  EXPECT_EQ(models_.ListModels().status().code(), absl::StatusCode::kUnimplemented);
}

TEST_F(ModelClientTest, ServerInfo) {
  server_.scripts.get_server_info = [](const auto&, wan::v1::ServerInfo* info) {
    info->set_version("1.2.3");
    return grpc::Status::OK;
  };
  EXPECT_EQ(telemetry_.GetServerInfo()->version(), "1.2.3");
}

TEST_F(ModelClientTest, DeviceSamplesUntilStopped) {
  server_.scripts.watch_devices = [](const wan::v1::WatchDevicesRequest& request) {
    fakes::Stream<wan::v1::WatchDevicesResponse> stream;
    stream.messages.resize(3);
    stream.hold = request.count() == 0;
    return stream;
  };
  int rounds = 0;
  wan::v1::WatchDevicesRequest request;
  request.set_count(3);
  EXPECT_TRUE(telemetry_.WatchDevices(request, [&](const auto&) { ++rounds; }).ok());
  EXPECT_EQ(rounds, 3);

  rounds = 0;
  std::stop_source stop;
  request.set_count(0);
  const absl::Status status = telemetry_.WatchDevices(
      request,
      [&](const auto&) {
        if (++rounds == 2) stop.request_stop();
      },
      stop.get_token());
  EXPECT_EQ(status.code(), absl::StatusCode::kCancelled);
  EXPECT_GE(rounds, 2);
}

}  // namespace
}  // namespace wan::client
