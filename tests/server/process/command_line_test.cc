#include "server/process/command_line.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <vector>

#include "server/config/settings.h"
#include "server/config/yaml_config.h"

namespace wan::server {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

absl::StatusOr<CommandLine> Parse(std::vector<const char*> flags) {
  flags.insert(flags.begin(), "wanserve");
  return ParseCommandLine(static_cast<int>(flags.size()), flags.data());
}

std::string ErrorOf(const std::vector<const char*>& flags) {
  const absl::StatusOr<CommandLine> command = Parse(flags);
  EXPECT_FALSE(command.ok());
  return std::string(command.status().message());
}

// A file in the test's own folder, removed with it.
class ConfigFile {
 public:
  explicit ConfigFile(std::string_view text) {
    path_ =
        std::filesystem::path(::testing::TempDir()) /
        ("command_line_test_" +
         std::string(::testing::UnitTest::GetInstance()->current_test_info()->name()) + ".yaml");
    std::ofstream(path_) << text;
  }
  ~ConfigFile() { std::filesystem::remove(path_); }
  const char* path() const { return path_.c_str(); }

 private:
  std::filesystem::path path_;
};

TEST(CommandLineTest, TheIssuesFlags) {
  const auto command = Parse({"--listen", "127.0.0.1:0", "--metrics-listen", "127.0.0.1:0",
                              "--data-dir", "/tmp/d", "--model", "a=/x", "--model",
                              "b=synthetic:ti2v-5b", "--device", "cpu", "--dtype", "fp32"});
  ASSERT_TRUE(command.ok()) << command.status();
  EXPECT_EQ(command->action, CommandLine::Action::kServe);
  EXPECT_EQ(command->config.listen, (HostPort{"127.0.0.1", 0}));
  EXPECT_EQ(command->config.metrics_listen, (HostPort{"127.0.0.1", 0}));
  EXPECT_EQ(command->config.data_dir, "/tmp/d");
  ASSERT_EQ(command->config.models.size(), 2u);
  EXPECT_EQ(command->config.models[1].name, "b");
  EXPECT_EQ(command->config.models[1].path, "synthetic:ti2v-5b");
}

TEST(CommandLineTest, OneModelFlagTakesSeveralModels) {
  const auto command = Parse({"--model", "a=/x", "b=/y=z", "--data-dir=/tmp/d"});
  ASSERT_TRUE(command.ok()) << command.status();
  ASSERT_EQ(command->config.models.size(), 2u);
  EXPECT_EQ(command->config.models[1].path, "/y=z");
}

TEST(CommandLineTest, DtypeFollowsTheDevice) {
  EXPECT_EQ(Parse({"--data-dir", "d"})->config.engine.dtype, "fp32");
  EXPECT_EQ(Parse({"--data-dir", "d"})->config.engine.vae_precision, VaePrecision::kFp32);
  EXPECT_EQ(Parse({"--data-dir", "d", "--device", "cuda:0"})->config.engine.vae_precision,
            VaePrecision::kFp16);
  EXPECT_EQ(Parse({"--data-dir", "d", "--device", "cuda:0"})->config.engine.dtype, "bf16");
  EXPECT_EQ(
      Parse({"--data-dir", "d", "--device", "cuda:0", "--dtype", "fp32"})->config.engine.dtype,
      "fp32");
}

TEST(CommandLineTest, QualityFollowsTheWeights) {
  EXPECT_EQ(Parse({"--data-dir", "d"})->config.engine.quality, Quality::kExact);
  EXPECT_EQ(
      Parse({"--data-dir", "d", "--eight-bit-weights", "text_encoder"})->config.engine.quality,
      Quality::kExact);
  const auto both = Parse({"--data-dir", "d", "--eight-bit-weights", "text_encoder",
                           "--eight-bit-weights", "transformers"});
  ASSERT_TRUE(both.ok()) << both.status();
  EXPECT_EQ(both->config.engine.quality, Quality::kHigh);
  EXPECT_EQ(both->config.engine.eight_bit_weights,
            (EightBitWeights{.transformers = true, .text_encoder = true}));
  EXPECT_THAT(
      ErrorOf({"--data-dir", "d", "--eight-bit-weights", "transformers", "--quality", "exact"}),
      HasSubstr("quality is exact; must be high or fast"));
}

TEST(CommandLineTest, FlagsWinOverTheFileOverTheDefaults) {
  const ConfigFile file("data_dir: /from/file\nqueue_capacity: 5\nmodels: {a: /file, b: /file}\n");
  const auto command =
      Parse({"--queue-capacity", "6", "--model", "c=/flag", "--config", file.path()});
  ASSERT_TRUE(command.ok()) << command.status();
  EXPECT_EQ(command->config.data_dir, "/from/file");
  EXPECT_EQ(command->config.queue_capacity, 6);
  // A flag's list replaces the file's.
  ASSERT_EQ(command->config.models.size(), 1u);
  EXPECT_EQ(command->config.models[0].name, "c");
  EXPECT_EQ(command->config.log_level, ServerConfig{}.log_level);
}

TEST(CommandLineTest, WebhooksNeedHostsAndASecret) {
  EXPECT_THAT(ErrorOf({"--data-dir", "d", "--webhook-host", "h"}),
              HasSubstr("set webhook_secret, too"));
  EXPECT_THAT(ErrorOf({"--data-dir", "d", "--webhook-secret", "s"}),
              HasSubstr("set webhook_hosts, too"));
  EXPECT_THAT(ErrorOf({"--data-dir", "d", "--webhook-host", ""}), HasSubstr("must name a host"));
}

TEST(CommandLineTest, AFlagThatIsGivenEmptyIsAnError) {
  EXPECT_THAT(ErrorOf({"--data-dir", "d", "--auth-tokens", ""}),
              HasSubstr("--auth-tokens is empty; must be FILE, or leave the flag out"));
  EXPECT_THAT(ErrorOf({"--data-dir", "d", "--tls-client-ca="}), HasSubstr("--tls-client-ca"));
  EXPECT_THAT(ErrorOf({"--data-dir", "d", "--retain-failed", ""}),
              HasSubstr("--retain-failed is empty; must be AGE|BYTES|COUNT"));
  EXPECT_THAT(ErrorOf({"--data-dir", "d", "--insecure", ""}),
              HasSubstr("--insecure is empty; must be true|false, or leave the flag out"));
  EXPECT_THAT(ErrorOf({"--data-dir", "d", "--insecure="}), HasSubstr("--insecure is empty"));
  EXPECT_TRUE(Parse({"--insecure", "--data-dir", "d"})->config.insecure);
  EXPECT_THAT(ErrorOf({"--data-dir", ""}), HasSubstr("--data-dir is empty; must be DIR"));
  EXPECT_THAT(ErrorOf({"--data-dir", "d", "--config", ""}),
              HasSubstr("--config is empty; must name a YAML file"));
}

TEST(CommandLineTest, WhatIsSaidOfTracesMustMakeSense) {
  EXPECT_THAT(ErrorOf({"--data-dir", "d", "--otlp-headers", "h"}),
              HasSubstr("otlp_headers is h, but no traces are exported; set otlp_endpoint"));
  EXPECT_THAT(ErrorOf({"--data-dir", "d", "--otlp-ca", "c"}), HasSubstr("otlp_ca is c"));
  EXPECT_THAT(ErrorOf({"--data-dir", "d", "--otlp-attribute", "a"}),
              HasSubstr("must be KEY=VALUE, for example service.name=wan-eu"));
  EXPECT_THAT(ErrorOf({"--data-dir", "d", "--otlp-attribute", "a=1", "--otlp-attribute", "a=2"}),
              HasSubstr("names 'a' twice"));
  for (const char* const ratio : {"1.5", "-0.1", "half", "nan"}) {
    EXPECT_THAT(ErrorOf({"--data-dir", "d", "--otlp-sampling-ratio", ratio}),
                HasSubstr("must be a number from 0 to 1, for example 0.1"));
  }
}

TEST(CommandLineTest, TheOpenAiApiIsOnUnlessItIsSwitchedOff) {
  const auto silent = Parse({"--data-dir", "d"});
  ASSERT_TRUE(silent.ok()) << silent.status();
  EXPECT_EQ(silent->config.http_listen, (HostPort{"127.0.0.1", 8000}));
  EXPECT_FALSE(silent->config.http_listen_chosen);
  const auto chosen = Parse({"--data-dir", "d", "--http-listen", "127.0.0.1:8000"});
  ASSERT_TRUE(chosen.ok()) << chosen.status();
  EXPECT_TRUE(chosen->config.http_listen_chosen);
  const auto off = Parse({"--data-dir", "d", "--http-listen", "none"});
  ASSERT_TRUE(off.ok()) << off.status();
  EXPECT_EQ(off->config.http_listen, std::nullopt);
  // The operator wants the port for something else.
  for (const char* const flag : {"--listen", "--metrics-listen", "--admin-listen"}) {
    const auto other = Parse({"--data-dir", "d", flag, "127.0.0.1:8000"});
    ASSERT_TRUE(other.ok()) << other.status();
    EXPECT_EQ(other->config.http_listen, std::nullopt) << flag;
  }
}

TEST(CommandLineTest, OriginsAreThoseThatBrowsersSend) {
  for (const char* const origin :
       {"https://studio.example.com", "http://127.0.0.1:5173", "http://[::1]:80"}) {
    EXPECT_TRUE(Parse({"--data-dir", "d", "--http-origin", origin}).ok()) << origin;
  }
  for (const char* const wrong :
       {"*", "studio.example.com", "https://studio.example.com/", "https://*.example.com",
        "https://Studio.example.com", "ftp://studio.example.com", "https://", "null"}) {
    EXPECT_THAT(ErrorOf({"--data-dir", "d", "--http-origin", wrong}),
                AllOf(HasSubstr("http_origins has '" + std::string(wrong) + "'"),
                      HasSubstr("for example https://studio.example.com")));
  }
}

TEST(CommandLineTest, EverySettingIsAFlagThatSetsIt) {
  const std::vector<const char*> flags = {"--listen",
                                          "h:1",
                                          "--admin-listen",
                                          "h:3",
                                          "--http-listen",
                                          "h:4",
                                          "--http-page",
                                          "false",
                                          "--http-origin",
                                          "https://studio.example.com",
                                          "--metrics-listen",
                                          "h:2",
                                          "--tls-cert",
                                          "/c.pem",
                                          "--tls-key",
                                          "/k.pem",
                                          "--tls-client-ca",
                                          "/ca.pem",
                                          "--auth-tokens",
                                          "/tokens",
                                          "--quotas",
                                          "/quotas",
                                          "--client-certificate-role",
                                          "viewer",
                                          "--insecure",
                                          "true",
                                          "--health-access",
                                          "authenticated",
                                          "--reflection-access",
                                          "off",
                                          "--audit-log",
                                          "/audit",
                                          "--model-root",
                                          "/models",
                                          "--webhook-host",
                                          "hooks.example.com",
                                          "--webhook-secret",
                                          "/secret",
                                          "--webhook-ca",
                                          "/ca.pem",
                                          "--webhook-http",
                                          "true",
                                          "--webhook-private",
                                          "true",
                                          "--otlp-endpoint",
                                          "http://127.0.0.1:4318",
                                          "--otlp-headers",
                                          "/headers",
                                          "--otlp-ca",
                                          "/ca.pem",
                                          "--otlp-attribute",
                                          "service.name=wan-eu",
                                          "--otlp-sampling-ratio",
                                          "0.5",
                                          "--max-connections",
                                          "300",
                                          "--max-connections-per-address",
                                          "20",
                                          "--data-dir",
                                          "/d",
                                          "--store",
                                          "postgresql://wan@db.example.com/wan",
                                          "--objects",
                                          "s3://videos/wan?region=eu-west-1",
                                          "--objects-ca",
                                          "/ca.pem",
                                          "--disk-reserve",
                                          "2GiB",
                                          "--retain-completed",
                                          "30d,1000",
                                          "--retain-failed",
                                          "5",
                                          "--retain-cancelled",
                                          "1h",
                                          "--retain-artifacts",
                                          "3TiB",
                                          "--model",
                                          "m=/p",
                                          "--lora",
                                          "m/style@high=/l",
                                          "--lora-dir",
                                          "/loras",
                                          "--lora-schedule",
                                          "m/style=steps:4",
                                          "--device",
                                          "cuda:3,4",
                                          "--group",
                                          "cuda:3,4=m",
                                          "--dtype",
                                          "fp32",
                                          "--quality",
                                          "fast",
                                          "--quality-exact-blocks",
                                          "4-5",
                                          "--guidance-until",
                                          "0.5",
                                          "--eight-bit-weights",
                                          "transformers",
                                          "--vae-precision",
                                          "tf32",
                                          "--record-forwards",
                                          "false",
                                          "--guidance-batching",
                                          "split",
                                          "--h264-preset",
                                          "faster",
                                          "--h264-crf",
                                          "23",
                                          "--cpu-threads",
                                          "2",
                                          "--device-memory-limit",
                                          "24GiB",
                                          "--gpm",
                                          "false",
                                          "--residency-policy",
                                          "vae=host",
                                          "--heartbeat-interval",
                                          "7.5",
                                          "--caller-grace",
                                          "8",
                                          "--queue-capacity",
                                          "3",
                                          "--max-attempts",
                                          "4",
                                          "--checkpoint-interval",
                                          "7.5",
                                          "--preempt-priority-gap",
                                          "20",
                                          "--warm-up",
                                          "false",
                                          "--warm-up-shape",
                                          "64x32x5",
                                          "--shutdown-mode",
                                          "requeue",
                                          "--shutdown-grace-seconds",
                                          "1.5",
                                          "--device-lost-grace-seconds",
                                          "2.5",
                                          "--log-level",
                                          "error",
                                          "--log-format",
                                          "text"};
  const auto command = Parse(flags);
  ASSERT_TRUE(command.ok()) << command.status();
  ASSERT_EQ(flags.size(), Settings().size() * 2);
  for (size_t i = 0; i < Settings().size(); ++i) {
    EXPECT_EQ(FlagOf(Settings()[i]), flags[2 * i]);
    EXPECT_EQ(Settings()[i].get(command->config), std::vector<std::string>{flags[2 * i + 1]});
  }
}

TEST(CommandLineTest, EverySettingIsDocumented) {
  std::ifstream file(WAN_OPERATIONS_PAGE);
  ASSERT_TRUE(file.is_open());
  std::vector<std::string> rows;
  for (std::string line; std::getline(file, line);) {
    if (line.find(" | `--") != std::string::npos) rows.push_back(line);
  }
  ASSERT_EQ(rows.size(), Settings().size());
  for (size_t i = 0; i < rows.size(); ++i) {
    const Setting& setting = Settings()[i];
    const std::string row = "| `" + std::string(setting.key) + "` | `" + FlagOf(setting) + " ";
    EXPECT_EQ(rows[i].substr(0, row.size()), row);
  }
}

TEST(CommandLineTest, PrintedConfigIsWhatHolds) {
  const ConfigFile file("data_dir: /from/file\ndevice: cuda:0\n");
  const auto command = Parse({"--config", file.path(), "--print-config", "--queue-capacity", "9"});
  ASSERT_TRUE(command.ok()) << command.status();
  EXPECT_EQ(command->action, CommandLine::Action::kPrintConfig);
  EXPECT_THAT(ToYaml(command->config),
              AllOf(HasSubstr("queue_capacity: 9\n"), HasSubstr("data_dir: \"/from/file\"\n"),
                    HasSubstr("dtype: \"bf16\"\n")));
}

TEST(CommandLineTest, EveryFurtherDeviceIsAGroup) {
  const auto one = Parse({"--data-dir", "d", "--device", "cuda:0,1"});
  ASSERT_TRUE(one.ok()) << one.status();
  ASSERT_EQ(GroupsOf(one->config).size(), 1u);
  EXPECT_THAT(GroupsOf(one->config)[0].devices, ElementsAre("cuda:0", "cuda:1"));
  const auto two = Parse({"--data-dir", "d", "--device", "cuda:0", "--device", "cuda:1"});
  ASSERT_TRUE(two.ok()) << two.status();
  ASSERT_EQ(GroupsOf(two->config).size(), 2u);
  EXPECT_THAT(GroupsOf(two->config)[1].devices, ElementsAre("cuda:1"));
  EXPECT_EQ(two->config.engine.dtype, "bf16");
  // Ranks and groups of the CPU, which tests have.
  const auto cpu = Parse({"--data-dir", "d", "--device", "cpu,cpu", "--device", "cpu"});
  ASSERT_TRUE(cpu.ok()) << cpu.status();
  EXPECT_THAT(GroupsOf(cpu->config)[0].devices, ElementsAre("cpu", "cpu"));
  EXPECT_EQ(cpu->config.engine.dtype, "fp32");
  EXPECT_THAT(ErrorOf({"--data-dir", "d", "--device", "cuda:0", "--device", "cuda:0"}),
              HasSubstr("--device names cuda:0 in two groups; a GPU belongs to one group"));
}

TEST(CommandLineTest, GroupsHaveTheirModels) {
  const auto command = Parse({"--data-dir", "d", "--model", "a=/a", "b=/b", "c=/c", "--group",
                              "cuda:0=a,b", "--group", "cuda:1=b", "--group", "cuda:2"});
  ASSERT_TRUE(command.ok()) << command.status();
  EXPECT_THAT(command->config.devices, ElementsAre("cuda:0", "cuda:1", "cuda:2"));
  const std::vector<DeviceGroup> groups = GroupsOf(command->config);
  std::string places;
  for (const char* const model : {"a", "b", "c"}) {
    for (size_t i = 0; i < groups.size(); ++i) places += MayHave(groups, i, model) ? 'x' : '.';
  }
  EXPECT_EQ(places, "x..xx...x");
  EXPECT_THAT(ErrorOf({"--data-dir", "d", "--model", "a=/a", "--group", "cpu=b"}),
              HasSubstr("models has 'a', which no list of groups names"));
  EXPECT_THAT(ErrorOf({"--data-dir", "d", "--model", "a=/a", "--group", "cpu=a,x"}),
              HasSubstr("groups names the model 'x', which models does not have"));
  EXPECT_THAT(ErrorOf({"--data-dir", "d", "--device", "cuda:0", "--group", "cuda:1"}),
              HasSubstr("device is cuda:0 and groups has cuda:1; set one of the two"));
}

TEST(CommandLineTest, OtherMachinesNeedAuthenticationOrInsecure) {
  for (const char* const address : {"127.0.0.1:1", "127.9.8.7:1", "[::1]:1", "localhost:1"}) {
    EXPECT_TRUE(Parse({"--data-dir", "d", "--listen", address}).ok()) << address;
  }
  for (const char* const address : {"0.0.0.0:1", "[::]:1", "192.0.2.1:1", "gpu1:1"}) {
    EXPECT_THAT(ErrorOf({"--data-dir", "d", "--listen", address}),
                AllOf(HasSubstr(std::string("listen is ") + address),
                      HasSubstr("--auth-tokens FILE"), HasSubstr("--insecure")));
    EXPECT_THAT(ErrorOf({"--data-dir", "d", "--admin-listen", address}),
                HasSubstr(std::string("admin_listen is ") + address));
    EXPECT_THAT(ErrorOf({"--data-dir", "d", "--http-listen", address}),
                HasSubstr(std::string("http_listen is ") + address));
    EXPECT_TRUE(Parse({"--data-dir", "d", "--listen", address, "--insecure"}).ok());
    EXPECT_TRUE(Parse({"--insecure", "--data-dir", "d", "--listen", address}).ok());
    EXPECT_TRUE(Parse({"--data-dir", "d", "--listen", address, "--auth-tokens", "/t"}).ok());
    EXPECT_TRUE(Parse({"--data-dir", "d", "--listen", address, "--tls-cert", "/c", "--tls-key",
                       "/k", "--tls-client-ca", "/a"})
                    .ok());
    EXPECT_FALSE(
        Parse({"--data-dir", "d", "--listen", address, "--tls-cert", "/c", "--tls-key", "/k"})
            .ok());
  }
}

TEST(CommandLineTest, TlsHasAllOfItsFiles) {
  EXPECT_THAT(ErrorOf({"--data-dir", "d", "--tls-cert", "/c"}), HasSubstr("set tls_key"));
  EXPECT_THAT(ErrorOf({"--data-dir", "d", "--tls-key", "/k"}), HasSubstr("set tls_cert"));
  EXPECT_THAT(ErrorOf({"--data-dir", "d", "--tls-client-ca", "/a"}),
              HasSubstr("tls_client_ca needs tls_cert and tls_key"));
}

TEST(CommandLineTest, HelpAndVersion) {
  const auto help = Parse({"--help"});
  ASSERT_TRUE(help.ok());
  EXPECT_EQ(help->action, CommandLine::Action::kPrintText);
  for (const Setting& setting : Settings()) EXPECT_THAT(help->text, HasSubstr(FlagOf(setting)));
  const auto version = Parse({"--version"});
  ASSERT_TRUE(version.ok());
  EXPECT_THAT(version->text, ::testing::MatchesRegex("wanserve [0-9.]+\n"));
}

TEST(CommandLineTest, ErrorsNameTheFlag) {
  EXPECT_THAT(ErrorOf({"--data-dir", "d", "--nonsense"}), HasSubstr("--nonsense"));
  EXPECT_THAT(ErrorOf({"--data-dir", "d", "--queue-capacty", "5"}),
              HasSubstr("--queue-capacty is not a flag; did you mean --queue-capacity?"));
  EXPECT_THAT(ErrorOf({"--data-dir", "d", "--modle=m=/p"}),
              HasSubstr("--modle is not a flag; did you mean --model?"));
  EXPECT_THAT(ErrorOf({"--data-dir", "d", "stray"}), HasSubstr("stray"));
  EXPECT_THAT(ErrorOf({"--data-dir"}), HasSubstr("--data-dir"));
  EXPECT_THAT(ErrorOf({"--data-dir", "d", "--data-dir", "e"}), HasSubstr("--data-dir"));
  EXPECT_THAT(ErrorOf({"--data-dir", "d", "--listen", "h:1", "--metrics-listen", "h:1"}),
              HasSubstr("listen and metrics_listen are both h:1"));
  // All of them at once.
  EXPECT_THAT(ErrorOf({"--data-dir", "d", "--listen", "x", "--dtype", "int8"}),
              AllOf(HasSubstr("--listen is 'x'; must be HOST:PORT"),
                    HasSubstr("--dtype is 'int8'; must be fp32 or bf16")));
}

TEST(CommandLineTest, AValueThatIsNotUtf8IsRefused) {
  EXPECT_THAT(ErrorOf({"--data-dir", "caf\xe9"}),
              HasSubstr("--data-dir is 'caf\\xe9', which is not UTF-8; must be UTF-8"));
  EXPECT_THAT(ErrorOf({"--data-dir", "d", "--model", "m=/models/caf\xe9"}),
              HasSubstr("--model is 'm=/models/caf\\xe9', which is not UTF-8"));
  const ConfigFile file("data_dir: /d\nmodels: {m: /models/caf\xe9}\n");
  EXPECT_THAT(ErrorOf({"--config", file.path()}), HasSubstr(":2: models is 'm=/models/caf\\xe9'"));
}

TEST(CommandLineTest, FilesThatCannotBeUsed) {
  EXPECT_THAT(ErrorOf({"--config", "/nonexistent/wan.yaml"}),
              HasSubstr("--config /nonexistent/wan.yaml: does not exist, because there is no "
                        "folder /nonexistent"));
  EXPECT_THAT(ErrorOf({"--config", "/"}), HasSubstr("--config /: is a folder; must be a file"));
  const ConfigFile pointer("version https://git-lfs.github.com/spec/v1\noid sha256:00\n");
  EXPECT_THAT(ErrorOf({"--config", pointer.path()}), HasSubstr(": is a Git LFS pointer"));
  const ConfigFile empty("");
  EXPECT_THAT(ErrorOf({"--config", empty.path()}), HasSubstr(": is empty (0 bytes)"));
  const ConfigFile file("data_dir: /d\nnope: 1\n");
  EXPECT_THAT(ErrorOf({"--config", file.path()}), HasSubstr(":2: nope is not a setting"));
}

}  // namespace
}  // namespace wan::server
