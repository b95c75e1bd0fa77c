// The settings of the program wanserve. Every member, and every member of `engine`, is a key of the
// YAML file and a flag (the table in server/config/settings.h lists them;
// docs/operate/operations.md explains them).
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
  kPublic,         // everybody may use the service
  kAuthenticated,  // every principal may use it
  kOff,            // the server does not offer the service
};

struct ServerConfig {
  // The address on which gRPC listens. Addresses other than loopback need authentication or
  // `insecure`.
  HostPort listen{"127.0.0.1", 50051};
  // A separate address for ModelManagement and Administration; The address `listen` then does not
  // serve ModelManagement and Administration.
  std::optional<HostPort> admin_listen;
  // The address on which the OpenAI video API listens; nullopt: the API is off.
  std::optional<HostPort> http_listen;
  // Whether the operator chose http_listen. If not, the server goes on without the API when the
  // address is taken.
  bool http_listen_chosen = true;
  // Whether the OpenAI video API answers GET / with the page for browsers.
  bool http_page = true;
  // The origins of other pages that may use the OpenAI video API: "https://studio.example.com".
  std::vector<std::string> http_origins;
  // PEM files of the server's certificate and its key; empty: connections have no TLS.
  std::string tls_cert;
  std::string tls_key;
  // PEM file of the authorities of client certificates; if it is set, every connection needs a
  // client certificate.
  std::string tls_client_ca;
  // The file of principals (server/auth/token_file.h).
  std::string auth_tokens;
  // The quota file (server/quota/quota_file.h); empty: principals have no limits.
  std::string quotas;
  // The role of client certificates whose subject `auth_tokens` does not name.
  ClientCertificateRole client_certificate_role = ClientCertificateRole::kUser;
  // Allows the server to listen on any address without authentication.
  bool insecure = false;
  // Who may use the services for health and reflection if callers are authenticated.
  ServiceAccess health_access = ServiceAccess::kPublic;
  ServiceAccess reflection_access = ServiceAccess::kAuthenticated;
  // File of the audit log; empty: entries go to the server's log.
  std::string audit_log;
  // Folders below which LoadModel may read files.
  std::vector<std::string> model_roots;
  // Hosts that may receive webhooks, "HOST" or "HOST:PORT"; empty: webhooks are off.
  std::vector<std::string> webhook_hosts;
  // File of the secret that signs webhooks.
  std::string webhook_secret;
  // PEM file of the authorities with which receivers of webhooks are verified; empty: the system's.
  std::string webhook_ca;
  // Whether webhooks may go over http, and to addresses of private networks and this machine.
  bool webhook_http = false;
  bool webhook_private = false;
  // URL of the collector to which the server sends traces. If the URL does not end with /v1/traces,
  // the server appends /v1/traces. Empty: the server sends no traces.
  std::string otlp_endpoint;
  // File of HTTP header fields for the collector: each line has one, "NAME: VALUE".
  std::string otlp_headers;
  // PEM file of the authorities with which the collector is verified; empty: the system's.
  std::string otlp_ca;
  // Attributes of the server in traces, "KEY=VALUE", which are added to the built-in ones or
  // replace them.
  std::vector<std::string> otlp_attributes;
  // The share of jobs to trace, from 0 to 1; jobs whose callers sent a trace do not count.
  double otlp_sampling_ratio = 1;
  // The address on which the HTTP endpoint /metrics listens.
  HostPort metrics_listen{"127.0.0.1", 9464};
  // The folder for jobs, events and artifacts. If the folder is not set, ParseCommandLine sets
  // DefaultDataDir (server/process/first_start.h).
  std::string data_dir;
  // The URL of the PostgreSQL database for jobs and events; empty: a file in `data_dir`.
  std::string store;
  // Where files and savepoints of jobs are kept in addition to the data folder,
  // "s3://BUCKET/PREFIX?..." or "file:///FOLDER" (server/objects/object_place.h); empty: nowhere.
  std::string objects;
  // PEM file of the authorities with which that store is verified; empty: the system's.
  std::string objects_ca;
  // Bytes of the data folder's disk to keep free, in addition to the space that accepted jobs need.
  uint64_t disk_reserve = uint64_t{1} << 30;
  // The policy for removing ended jobs and their files; by default nothing is removed.
  RetentionPolicy retention;
  // The models to load when the server starts, in this order. If the list is empty, the server
  // loads the demo model (default_models.h).
  std::vector<ModelSpec> models;
  // The LoRAs of all models. Complete (complete_config.h) copies them into `models`.
  std::vector<ModelLora> loras;
  // Folders whose LoRAs every load of a model registers: "DIR", or "MODEL=DIR".
  std::vector<std::string> lora_dirs;
  // The schedules of LoRAs. Complete copies them into `models`, except schedules of unknown names,
  // which belong to LoRAs in folders.
  std::vector<LoraScheduleSetting> lora_schedules;
  // The devices of each group, "cpu", "cuda:0" or "cuda:0,1". If the list is empty, Complete sets
  // it to the devices of `groups`, or to the CPU.
  std::vector<std::string> devices;
  // The device groups with the models that each may load; empty: every group may load every model.
  std::vector<DeviceGroup> groups;
  // How the engines of all groups compute. If `dtype` is unset, Complete sets the dtype that suits
  // the devices. If the precision of the autoencoder is unset, Complete sets the precision that
  // suits the dtype.
  EngineOptions engine;
  // Maximum number of open connections of the gRPC port; 0: a quarter of the process's limit of
  // file descriptors.
  int max_connections = 0;
  // Maximum number of open gRPC connections from one address; never more than half of all
  // connections.
  int max_connections_per_address = 4096;
  // A stream that has sent nothing for this many seconds gets a heartbeat; 0: never.
  double heartbeat_interval = 15;
  // A job of Generate with a request_id continues without its caller for this many seconds.
  double caller_grace = 30;
  // Maximum number of jobs that may wait in the queue at a time.
  int queue_capacity = 100;
  // A job ends as FAILED after this many attempts were lost with the process or the device.
  int max_attempts = 3;
  // Least seconds between two savepoints of a job, from which the job is resumed after a restart;
  // 0: the job keeps a savepoint after every step.
  double checkpoint_interval = 30;
  // A waiting job preempts a running one, at the end of a step, if its priority is higher by this
  // much or more; 0: never.
  int preempt_priority_gap = 0;
  // Whether the server runs each model once after loading it, before the model counts as ready.
  bool warm_up = true;
  // Video sizes of the warm-up runs; empty: one small video.
  std::vector<VideoShape> warm_up_shapes;
  StopMode shutdown_mode = StopMode::kAuto;
  // Maximum number of seconds for which a stop with kAuto or kFinish lets running jobs continue.
  double shutdown_grace_seconds = 25;
  // A server that has lost its last device still answers calls for this many seconds; then the
  // process exits with code 75.
  double device_lost_grace_seconds = 10;
  LogLevel log_level = LogLevel::kInfo;
  LogFormat log_format = LogFormat::kAuto;
};

// Returns the device groups that the settings define, at least one.
std::vector<DeviceGroup> GroupsOf(const ServerConfig& config);

// Returns the devices of each group as text: "cuda:0,1".
std::vector<std::string> DevicesOf(const ServerConfig& config);

}  // namespace wan::server
