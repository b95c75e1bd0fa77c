#include "server/config/yaml_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/config/settings.h"

namespace wan::server {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

std::string ErrorOf(std::string_view text) {
  ServerConfig config;
  const absl::Status status = ApplyYaml(text, "wan.yaml", config);
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << text << ": " << status;
  return std::string(status.message());
}

// A value for every setting that differs from its default.
constexpr std::string_view kEverySetting = R"(
listen: "[::]:7000"
admin_listen: 127.0.0.1:7002
http_listen: 127.0.0.1:7003
http_page: false
http_origins: [https://studio.example.com]
metrics_listen: 0.0.0.0:7001
tls_cert: /tls/cert.pem
tls_key: /tls/key.pem
tls_client_ca: /tls/ca.pem
auth_tokens: /etc/tokens
quotas: /etc/quotas
client_certificate_role: none
insecure: true
health_access: "off"
reflection_access: public
audit_log: /var/log/audit
model_roots: [/models, "/more, models"]
webhook_hosts: [hooks.example.com, "10.0.0.7:8443"]
webhook_secret: /etc/webhook_secret
webhook_ca: /etc/webhook_ca.pem
webhook_http: true
webhook_private: true
otlp_endpoint: https://tempo.example/otlp
otlp_headers: /etc/otlp_headers
otlp_ca: /etc/otlp_ca.pem
otlp_attributes: {service.name: wan-eu, deployment.environment.name: a=b}
otlp_sampling_ratio: 0.25
data_dir: /var/lib/wan serve
store: postgresql://wan@db.example.com/wan
objects: s3://videos/wan?region=eu-west-1
objects_ca: /etc/wan/objects.pem
disk_reserve: 5GiB
retain_completed: 30d,200GiB
retain_failed: 1000
retain_cancelled: 12h
retain_artifacts: 500MiB
models:
  ti2v-5b: /models/Wan2.2-TI2V-5B
  small: "synthetic:ti2v-5b"
  files:
    transformer.high: /models/high.gguf
    path: /models/base
loras:
  ti2v-5b/style: /loras/style.safetensors
  small/light@low: /loras/light
lora_dirs: [/loras, small=/more]
lora_schedules:
  ti2v-5b/style: steps:4
device: [cuda:1, "cuda:2,cuda:3"]
groups:
  - device: cuda:1
    models: [ti2v-5b, small]
  - {device: "cuda:2,3"}
dtype: fp32
quality: high
quality_exact_blocks: [0, 4-5, last]
eight_bit_weights: [transformers, text_encoder]
vae_precision: bf16
record_forwards: false
guidance_batching: batched
guidance_until: 0.5
h264_preset: superfast
h264_crf: 20
cpu_threads: 3
gpm: false
device_memory_limit: 24GiB
residency_policies:
  text_encoder: cpu
  transformer: stream
max_connections: 300
max_connections_per_address: 20
heartbeat_interval: 2.5
caller_grace: 0
queue_capacity: 7
max_attempts: 5
checkpoint_interval: 0
preempt_priority_gap: 30
warm_up: false
warm_up_shapes: [1280*704*121, 64x32x5]
shutdown_mode: requeue
shutdown_grace_seconds: 0.1
device_lost_grace_seconds: 0.2
log_level: debug
log_format: text
)";

TEST(YamlConfigTest, ReadsEverySetting) {
  ServerConfig config;
  ASSERT_TRUE(ApplyYaml(kEverySetting, "wan.yaml", config).ok());
  EXPECT_EQ(config.listen, (HostPort{"::", 7000}));
  EXPECT_EQ(config.metrics_listen, (HostPort{"0.0.0.0", 7001}));
  EXPECT_EQ(config.admin_listen, (HostPort{"127.0.0.1", 7002}));
  EXPECT_EQ(config.http_listen, (HostPort{"127.0.0.1", 7003}));
  EXPECT_FALSE(config.http_page);
  EXPECT_EQ(config.http_origins, std::vector<std::string>{"https://studio.example.com"});
  EXPECT_EQ(config.tls_cert, "/tls/cert.pem");
  EXPECT_EQ(config.tls_key, "/tls/key.pem");
  EXPECT_EQ(config.tls_client_ca, "/tls/ca.pem");
  EXPECT_EQ(config.auth_tokens, "/etc/tokens");
  EXPECT_EQ(config.client_certificate_role, ClientCertificateRole::kNone);
  EXPECT_TRUE(config.insecure);
  EXPECT_EQ(config.health_access, ServiceAccess::kOff);
  EXPECT_EQ(config.reflection_access, ServiceAccess::kPublic);
  EXPECT_EQ(config.audit_log, "/var/log/audit");
  EXPECT_THAT(config.model_roots, ElementsAre("/models", "/more, models"));
  EXPECT_EQ(config.webhook_ca, "/etc/webhook_ca.pem");
  EXPECT_EQ(config.otlp_endpoint, "https://tempo.example/otlp");
  EXPECT_EQ(config.otlp_headers, "/etc/otlp_headers");
  EXPECT_EQ(config.otlp_ca, "/etc/otlp_ca.pem");
  EXPECT_THAT(config.otlp_attributes,
              ElementsAre("service.name=wan-eu", "deployment.environment.name=a=b"));
  EXPECT_EQ(config.otlp_sampling_ratio, 0.25);
  EXPECT_EQ(config.data_dir, "/var/lib/wan serve");
  EXPECT_EQ(config.disk_reserve, uint64_t{5} << 30);
  EXPECT_EQ(ToString(config.retention.completed), "30d,200GiB");
  EXPECT_EQ(config.retention.failed.count, 1000);
  EXPECT_EQ(config.retention.cancelled.age, absl::Hours(12));
  EXPECT_EQ(config.retention.artifacts.bytes, int64_t{500} << 20);
  ASSERT_EQ(config.models.size(), 3u);
  EXPECT_EQ(config.models[2].path, "transformer.high=/models/high.gguf,path=/models/base");
  EXPECT_EQ(config.models[0].name, "ti2v-5b");
  EXPECT_EQ(config.models[0].path, "/models/Wan2.2-TI2V-5B");
  EXPECT_EQ(config.models[1].name, "small");
  EXPECT_EQ(config.models[1].path, "synthetic:ti2v-5b");
  ASSERT_EQ(config.loras.size(), 2u);
  EXPECT_EQ(config.loras[0].model, "ti2v-5b");
  EXPECT_EQ(config.loras[0].source,
            (LoraSource{"style", std::nullopt, "/loras/style.safetensors"}));
  EXPECT_EQ(config.loras[1].model, "small");
  EXPECT_EQ(config.loras[1].source, (LoraSource{"light", ExpertRole::kLowNoise, "/loras/light"}));
  EXPECT_THAT(config.devices, ElementsAre("cuda:1", "cuda:2,3"));
  ASSERT_EQ(config.groups.size(), 2u);
  EXPECT_THAT(config.groups[0].models, ElementsAre("ti2v-5b", "small"));
  EXPECT_THAT(config.groups[1].devices, ElementsAre("cuda:2", "cuda:3"));
  EXPECT_THAT(config.groups[1].models, IsEmpty());
  EXPECT_EQ(config.engine.dtype, "fp32");
  EXPECT_EQ(config.engine.quality, Quality::kHigh);
  EXPECT_EQ(config.engine.cpu_threads, 3);
  EXPECT_FALSE(config.engine.gpm);
  EXPECT_EQ(config.engine.device_memory_limit, uint64_t{24} << 30);
  EXPECT_THAT(
      config.engine.residency,
      ElementsAre(ComponentResidency{ModelComponent::kTextEncoder, ResidencyPolicy::kCpu},
                  ComponentResidency{ModelComponent::kTransformer, ResidencyPolicy::kStream}));
  EXPECT_EQ(config.max_connections, 300);
  EXPECT_EQ(config.max_connections_per_address, 20);
  EXPECT_EQ(config.heartbeat_interval, 2.5);
  EXPECT_EQ(config.caller_grace, 0);
  EXPECT_EQ(config.queue_capacity, 7);
  EXPECT_EQ(config.max_attempts, 5);
  EXPECT_EQ(config.checkpoint_interval, 0);
  EXPECT_EQ(config.preempt_priority_gap, 30);
  EXPECT_FALSE(config.warm_up);
  EXPECT_THAT(config.warm_up_shapes,
              ElementsAre(VideoShape{1280, 704, 121}, VideoShape{64, 32, 5}));
  EXPECT_EQ(config.shutdown_mode, StopMode::kRequeue);
  EXPECT_EQ(config.shutdown_grace_seconds, 0.1);
  EXPECT_EQ(config.device_lost_grace_seconds, 0.2);
  EXPECT_EQ(config.log_level, LogLevel::kDebug);
  EXPECT_EQ(config.log_format, LogFormat::kText);
}

TEST(YamlConfigTest, WhatIsPrintedReadsBackAsTheSame) {
  ServerConfig changed;
  ASSERT_TRUE(ApplyYaml(kEverySetting, "wan.yaml", changed).ok());
  const ServerConfig defaults;
  for (const Setting& setting : Settings()) {
    EXPECT_NE(setting.get(changed), setting.get(defaults))
        << setting.key << ": the file above must change every setting";
  }
  ServerConfig again;
  const std::string printed = ToYaml(changed);
  ASSERT_TRUE(ApplyYaml(printed, "printed", again).ok()) << printed;
  for (const Setting& setting : Settings()) {
    EXPECT_EQ(setting.get(again), setting.get(changed)) << setting.key << "\n" << printed;
  }
}

TEST(YamlConfigTest, OddTextSurvivesPrinting) {
  for (const char* folder :
       {"~", "null", "10", "true", "a: b", "a #b", "\"quoted\"", "ä\n", " x "}) {
    ServerConfig config;
    config.data_dir = folder;
    config.engine.dtype = "fp32";
    config.engine.quality = Quality::kHigh;
    config.engine.vae_precision = VaePrecision::kTf32;
    ServerConfig again;
    ASSERT_TRUE(ApplyYaml(ToYaml(config), "printed", again).ok()) << ToYaml(config);
    EXPECT_EQ(again.data_dir, folder);
  }
}

TEST(YamlConfigTest, AnEmptyFileChangesNothing) {
  for (const char* text : {"", "\n", "# only a comment\n", "---\n", "{}"}) {
    ServerConfig config;
    EXPECT_TRUE(ApplyYaml(text, "wan.yaml", config).ok()) << text;
    EXPECT_EQ(ToYaml(config), ToYaml(ServerConfig{}));
  }
}

TEST(YamlConfigTest, EveryErrorNamesLineKeyAndWhatIsRight) {
  const struct {
    std::string text, error;
  } cases[] = {
      {"queue_capacty: 5",
       "wan.yaml:1: queue_capacty is not a setting; did you mean queue_capacity?"},
      {"\n\nxyzzy: 5",
       "wan.yaml:3: xyzzy is not a setting; the settings are listen, admin_listen, http_listen"},
      {"listen: 50051", "wan.yaml:1: listen is '50051'; must be HOST:PORT"},
      {"listen: [a, b]", "wan.yaml:1: listen is a list; must be one value, HOST:PORT"},
      {"# x\nmetrics_listen: host:70000", "wan.yaml:2: metrics_listen is 'host:70000'"},
      {"data_dir:", "wan.yaml:1: data_dir is empty; must be one value, DIR"},
      {"data_dir: ''", "wan.yaml:1: data_dir is empty"},
      {"data_dir: {a: b}", "wan.yaml:1: data_dir is a mapping; must be one value"},
      {"models: [a=b]", "wan.yaml:1: models is a list; must be a mapping of NAME: PATH"},
      {"models: a=b", "wan.yaml:1: models is 'a=b'; must be a mapping"},
      {"models:\n  a:\n",
       "wan.yaml:2: models has an entry that is empty; every entry must be NAME: PATH"},
      {"models:\n  a: {path: [b]}\n", "wan.yaml:2: models has an entry that is a mapping"},
      {"models:\n  a: {unet: b}\n",
       "models a: unet: is not a part of a model; must be path, transformer,"},
      {"models:\n  a: /x\n  a: /y\n", "models names 'a' twice"},
      {"models:\n  'a/b': /x\n", "models is 'a/b=/x'; must be NAME=PATH"},
      {"loras:\n  a b: /x\n", "loras is 'a b=/x'; must be [MODEL/]NAME[@EXPERT]=PATH"},
      {"loras:\n  a/b@middle: /x\n", "loras is 'a/b@middle=/x'; must be"},
      {"loras:\n  /b: /x\n", "loras is '/b=/x'; must be"},
      {"loras:\n  a/: /x\n", "loras is 'a/=/x'; must be"},
      {"loras:\n  b@: /x\n", "loras is 'b@=/x'; must be"},
      {"loras:\n  a/b@low: /x\n  a/b@low: /y\n", "loras names 'a/b@low' twice"},
      {"device: gpu", "wan.yaml:1: device is 'gpu'; must be cpu or cuda:N"},
      {"device: cuda", "must be cpu or cuda:N"},
      {"device: cuda:-1", "must be cpu or cuda:N"},
      {"device: cuda:0x", "must be cpu or cuda:N"},
      {"device: cuda:0,", "device is 'cuda:0,'; must be cpu or cuda:N"},
      {"device: cuda:0,x", "device is 'cuda:0,x'; must be cpu or cuda:N"},
      {"device: \"0,1\"", "device is '0,1'; must be cpu or cuda:N"},
      {"device: cuda:0,0", "device names cuda:0 twice in 'cuda:0,0'; a group has each GPU once"},
      {"device: cuda:0,cpu", "all devices of a group must be GPUs, or all must be cpu"},
      {"device: [cuda:0, cpu]", "device names cuda:0 and cpu; all groups must have GPUs"},
      {"device: [cuda:0, cuda:1,cuda:0]", "device names cuda:0 in two groups"},
      {"device: []", "device is an empty list; must name a device"},
      {"device: {a: b}", "device is a mapping; must be one value or a list of cpu|cuda:N"},
      {"device: cpu=m", "write a group with its models into groups"},
      {"groups: cpu", "groups is 'cpu'; must be a list of {device: DEVICE, models: [MODEL]}"},
      {"groups: [cpu]", "groups has an entry that is 'cpu'; every entry must be {device: DEVICE"},
      {"groups: [{models: [a]}]", "groups has an entry without a device"},
      {"groups: [{device: cpu, model: a}]", "groups has an entry with 'model'"},
      {"groups: [{device: cpu, models: a}]", "groups has an entry whose models are no list"},
      {"groups: [{device: cpu, models: []}]", "groups has an entry with an empty list of models"},
      {"groups: [{device: cpu, models: [a, a]}]", "groups names the model 'a' twice"},
      {"groups: [{device: cuda:1}, {device: cuda:1}]", "groups names cuda:1 in two groups"},
      {"dtype: fp16", "wan.yaml:1: dtype is 'fp16'; must be fp32 or bf16"},
      {"eight_bit_weights: vae",
       "eight_bit_weights is 'vae'; must be transformers or text_encoder"},
      {"quality_exact_blocks: [0, first]",
       "quality_exact_blocks is '0,first'; must be numbers of blocks, ranges of them, and last"},
      {"guidance_batching: true", "guidance_batching is 'true'; must be auto, batched or split"},
      {"cpu_threads: -1", "cpu_threads is '-1'; must be a whole number from 0 to 4096"},
      {"device_memory_limit: -1", "device_memory_limit is '-1'; must be a number of bytes"},
      {"device_memory_limit: 24G", "device_memory_limit is '24G'; must be a number of bytes"},
      {"device_memory_limit: 0.5", "device_memory_limit is '0.5'; must be a number of bytes"},
      {"device_memory_limit: 9999999GiB",
       "device_memory_limit is '9999999GiB'; must be a number of bytes from 0 to 1024TiB, with "
       "or without a unit (B, kB, KiB, MB, MiB, GB, GiB, TB, TiB), for example 24GiB"},
      {"residency_policies: {vae: gpu}", "residency_policies is 'vae=gpu'; must be COMPONENT="},
      {"residency_policies: {unet: host}", "residency_policies is 'unet=host'; must be COMPONENT="},
      {"residency_policies: host",
       "residency_policies is 'host'; must be a mapping of COMPONENT: POLICY"},
      {"queue_capacity: ten", "queue_capacity is 'ten'; must be a whole number from 1 to 1000000"},
      {"queue_capacity: \"10\"", "queue_capacity is the text \"10\"; write N without quotes"},
      {"queue_capacity: 0", "queue_capacity is '0'"},
      {"queue_capacity: 1.5", "queue_capacity is '1.5'"},
      {"queue_capacity: 99999999999999999999", "queue_capacity is '99999999999999999999'"},
      {"warm_up: yes", "warm_up is 'yes'; must be true or false"},
      {"warm_up: 'true'", "warm_up is the text \"true\"; write true|false without quotes"},
      {"warm_up_shapes: 64x32x5", "warm_up_shapes is '64x32x5'; must be a list of WxHxFRAMES"},
      {"warm_up_shapes: [64x32]", "warm_up_shapes is '64x32'; must be WIDTHxHEIGHTxFRAMES"},
      {"warm_up_shapes: [64x32x5x]", "warm_up_shapes is '64x32x5x'"},
      {"warm_up_shapes: [0x32x5]", "warm_up_shapes is '0x32x5'"},
      {"warm_up_shapes: [[64, 32, 5]]", "warm_up_shapes has an entry that is a list"},
      {"shutdown_mode: drain", "shutdown_mode is 'drain'; must be auto, finish or requeue"},
      {"shutdown_grace_seconds: -1", "must be a number of seconds from 0 to 86400"},
      {"shutdown_grace_seconds: nan", "must be a number of seconds"},
      {"shutdown_grace_seconds: 2d", "shutdown_grace_seconds is '2d'"},
      {"log_level: trace", "log_level is 'trace'; must be debug, info, warning or error"},
      {"log_format: xml", "log_format is 'xml'; must be auto, json or text"},
      {"log_level: info\nlog_level: debug", "wan.yaml:2: log_level is set twice"},
      {"- listen", "wan.yaml:1: the file is a list; must be a mapping of settings"},
      {"listen", "wan.yaml:1: the file is 'listen'; must be a mapping"},
      {"? [a]\n: b", "a key is a list; must be a word"},
      {"listen: a:1\n---\nlisten: b:1", "the file has a second document"},
      {", listen: a:1", "wan.yaml:1: the file is not YAML: nothing can begin with what stands"},
      {"listen: [", "the file is not YAML"},
      {"listen: a:1\n\tbad", "wan.yaml:2: the file is not YAML"},
  };
  for (const auto& c : cases) EXPECT_THAT(ErrorOf(c.text), HasSubstr(c.error)) << c.text;
}

TEST(YamlConfigTest, SizesAndTimesMayHaveUnits) {
  ServerConfig config;
  ASSERT_TRUE(ApplyYaml("disk_reserve: 1MiB\n"
                        "device_memory_limit: 23.5GiB\n"
                        "shutdown_grace_seconds: 2m\n"
                        "retain_artifacts: 1.5h,500 MB\n",
                        "wan.yaml", config)
                  .ok());
  EXPECT_EQ(config.disk_reserve, uint64_t{1} << 20);
  EXPECT_EQ(config.engine.device_memory_limit, uint64_t{47} << 29);
  EXPECT_EQ(config.shutdown_grace_seconds, 120);
  EXPECT_EQ(ToString(config.retention.artifacts), "90m,500000000B");
}

TEST(YamlConfigTest, AllErrorsOfAFileAreToldAtOnce) {
  EXPECT_THAT(ErrorOf("dtype: fp16\nlog_level: info\nfoo: 1\nqueue_capacity: 0\n"),
              AllOf(HasSubstr("wan.yaml:1: dtype"), HasSubstr("wan.yaml:3: foo"),
                    HasSubstr("wan.yaml:4: queue_capacity"), Not(HasSubstr("wan.yaml:2"))));
}

}  // namespace
}  // namespace wan::server
