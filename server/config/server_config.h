// What an operator decides. Every member is a key of the YAML file and, with dashes for
// underscores, a flag of wanserve (server/config/settings.cc holds the table).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/api/engine.h"
#include "engine/api/residency.h"
#include "server/config/host_port.h"
#include "server/config/model_lora.h"
#include "server/logging/logger.h"

namespace wan::server {

// What becomes of the running job when the server is told to stop.
enum class ShutdownMode {
  kFinish,   // it may go on for the grace time, and is requeued after that
  kRequeue,  // it stops within one step and runs again after the restart
};

struct ServerConfig {
  // Where gRPC listens. No authentication and no encryption: on other than the loopback interface
  // that is up to the network.
  HostPort listen{"127.0.0.1", 50051};
  // Where Prometheus' /metrics listens.
  HostPort metrics_listen{"127.0.0.1", 9464};
  // Jobs, events and artifacts. Required.
  std::string data_dir;
  // Loaded at start, in this order. Without any the demo model is (default_models.h).
  std::vector<ModelSpec> models;
  // Their LoRAs; Complete (server/config/settings.h) gives them to the models.
  std::vector<ModelLora> loras;
  // "cpu" or "cuda:N".
  std::string device = "cpu";
  // "fp32" or "bf16"; while it is empty EffectiveDtype decides.
  std::string dtype;
  // Number of threads that compute one operator on the CPU; 0: one for each core.
  int cpu_threads = 0;
  // The process uses no more of the device's memory, in bytes; 0: all that is free.
  uint64_t device_memory_limit = 0;
  // Measure SM activity with the driver's GPM counters, where the card has them.
  bool gpm = true;
  // Where the weights of each component live; one that is not named chooses for itself.
  std::vector<ComponentResidency> residency_policies;
  // Connections of the gRPC port that may be open; 0: three quarters of the descriptors that the
  // process may have.
  int max_connections = 0;
  // The same from one address; never more than half of all, so that one caller leaves room.
  int max_connections_per_address = 4096;
  // Most jobs that may wait.
  int queue_capacity = 100;
  // How many attempts a job may lose with the process or the device before it ends as FAILED.
  int max_attempts = 3;
  // Run each model once after loading it, before it counts as ready.
  bool warm_up = true;
  // Sizes of that run; empty: one small video.
  std::vector<VideoShape> warm_up_shapes;
  ShutdownMode shutdown_mode = ShutdownMode::kFinish;
  // How long kFinish waits.
  double shutdown_grace_seconds = 25;
  // How long a server that has lost its device still answers before the process ends.
  double device_lost_grace_seconds = 10;
  LogLevel log_level = LogLevel::kInfo;
  LogFormat log_format = LogFormat::kJson;
};

}  // namespace wan::server
