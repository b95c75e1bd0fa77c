// The settings of wanserve that an operator decides. Every member, and every member of `engine`, is
// a key of the YAML file and a flag (server/config/settings.h has the table,
// docs/operate/operations.md explains each).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/api/engine.h"
#include "engine/api/engine_options.h"
#include "server/config/device_groups.h"
#include "server/config/host_port.h"
#include "server/config/model_lora.h"
#include "server/jobs/stop_mode.h"
#include "server/logging/logger.h"
#include "server/retention/retention_policy.h"

namespace wan::server {

enum class ClientCertificateRole { kNone, kViewer, kUser, kAdmin };

enum class ServiceAccess {
  kPublic,         // everybody
  kAuthenticated,  // every principal
  kOff,            // the service is not there
};

struct ServerConfig {
  // Where gRPC listens. Other than the loopback interface needs authentication, or `insecure`.
  HostPort listen{"127.0.0.1", 50051};
  // An address of its own for ModelManagement and Administration, which `listen` does not serve
  // then.
  std::optional<HostPort> admin_listen;
  // Where the OpenAI video API listens; nothing: it is off.
  std::optional<HostPort> http_listen;
  // Whether it answers GET / with the page for browsers.
  bool http_page = true;
  // PEM files of the server's certificate and its key; empty: no TLS.
  std::string tls_cert;
  std::string tls_key;
  // PEM file of the authorities of client certificates; every connection must have one then.
  std::string tls_client_ca;
  // The file of principals (server/auth/token_file.h).
  std::string auth_tokens;
  // The file of quotas (server/quota/quota_file.h); empty: nothing is limited.
  std::string quotas;
  // The role of client certificates whose subject `auth_tokens` does not name.
  ClientCertificateRole client_certificate_role = ClientCertificateRole::kUser;
  // Serve every caller who reaches the port, on any address.
  bool insecure = false;
  // Which callers may use health and reflection if callers are authenticated.
  ServiceAccess health_access = ServiceAccess::kPublic;
  ServiceAccess reflection_access = ServiceAccess::kAuthenticated;
  // File of the audit log; empty: its entries are lines of the log.
  std::string audit_log;
  // LoadModel reads below these folders only.
  std::vector<std::string> model_roots;
  // The hosts to which ends of jobs are reported, "HOST" or "HOST:PORT"; empty: there are no
  // webhooks.
  std::vector<std::string> webhook_hosts;
  // File of the secret that signs webhooks.
  std::string webhook_secret;
  // PEM file of the authorities that receivers of webhooks are verified with; empty: the system's.
  std::string webhook_ca;
  // Whether webhooks may go over http, and to addresses of private networks and this machine.
  bool webhook_http = false;
  bool webhook_private = false;
  // The collector to which traces are exported: its URL, to which /v1/traces is added unless it
  // ends so; empty: none are.
  std::string otlp_endpoint;
  // File of header fields for the collector: "NAME: VALUE" in each line.
  std::string otlp_headers;
  // PEM file of the authorities that it is verified with; empty: the system's.
  std::string otlp_ca;
  // Attributes of the server in its traces, "KEY=VALUE", beside or instead of its own.
  std::vector<std::string> otlp_attributes;
  // The share of jobs that are traced, from 0 to 1, of those whose callers sent no trace.
  double otlp_sampling_ratio = 1;
  // Where the HTTP endpoint /metrics listens.
  HostPort metrics_listen{"127.0.0.1", 9464};
  // The folder of jobs, events and artifacts. Required.
  std::string data_dir;
  // Bytes of its disk that new jobs leave free in addition to the needs of accepted ones.
  uint64_t disk_reserve = uint64_t{1} << 30;
  // Which ended jobs and files are removed; by default none.
  RetentionPolicy retention;
  // The models to load at the start, in this order. If empty, the demo model is loaded
  // (default_models.h).
  std::vector<ModelSpec> models;
  // The LoRAs, as they were read. Complete (complete_config.h) copies them into `models`.
  std::vector<ModelLora> loras;
  // The devices of each group, "cpu", "cuda:0" or "cuda:0,1". Complete sets what is missing:
  // those of `groups`, or the CPU.
  std::vector<std::string> devices;
  // The groups with the models that each may have; empty: every group may have every model.
  std::vector<DeviceGroup> groups;
  // How the engines of all groups compute. Complete sets the dtype that suits the devices, and the
  // autoencoder's precision, where they are unset.
  EngineOptions engine;
  // Most open connections of the gRPC port; 0: a quarter of the file descriptors that the
  // process may have.
  int max_connections = 0;
  // Most open gRPC connections from one address. Half of all connections is the most that takes
  // effect, so that one caller leaves room for others.
  int max_connections_per_address = 4096;
  // How long a stream may carry nothing before it gets a heartbeat; 0: for ever.
  double heartbeat_interval = 15;
  // How long a job of Generate that has a request_id goes on without its caller.
  double caller_grace = 30;
  // Most jobs that may wait in the queue.
  int queue_capacity = 100;
  // How many attempts a job may lose with the process or the device before it ends as FAILED.
  int max_attempts = 3;
  // The least seconds between two savepoints of a job, from which it goes on after a restart; 0:
  // one after every step.
  double checkpoint_interval = 30;
  // By how much the priority of a job must be higher than the running one's, so that it takes over
  // at the end of a step; 0: none does.
  int preempt_priority_gap = 0;
  // Whether each model runs once after loading, before it counts as ready.
  bool warm_up = true;
  // Sizes of these runs; empty: one small video.
  std::vector<VideoShape> warm_up_shapes;
  StopMode shutdown_mode = StopMode::kAuto;
  // How long kAuto and kFinish let the running job go on.
  double shutdown_grace_seconds = 25;
  // How long a server that has lost its device still answers before the process exits with 75.
  double device_lost_grace_seconds = 10;
  LogLevel log_level = LogLevel::kInfo;
  LogFormat log_format = LogFormat::kJson;
};

// Returns the device groups of these settings, at least one.
std::vector<DeviceGroup> GroupsOf(const ServerConfig& config);

// Returns the devices of each of these groups, as text: "cuda:0,1".
std::vector<std::string> DevicesOf(const ServerConfig& config);

}  // namespace wan::server
