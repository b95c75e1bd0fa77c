#include "server/part_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace wan::server {
namespace {

using ::testing::ElementsAre;

ServerConfig ConfigOn(const std::string& host) {
  ServerConfig config;
  config.listen = {host, 50051};
  return config;
}

// Whether a caller may name this folder.
bool MayLoad(const JobServiceOptions& options, const std::string& path) {
  ModelSpec spec;
  spec.name = "m";
  spec.path = path;
  return options.model_roots.Check(spec).empty();
}

TEST(PartOptions, OneAddressHasAtMostHalfOfTheConnections) {
  ServerConfig config = ConfigOn("127.0.0.1");
  config.max_connections = 10;
  config.max_connections_per_address = 8;
  EXPECT_EQ(ConnectionLimitsOf(config).total, 10);
  EXPECT_EQ(ConnectionLimitsOf(config).per_address, 5);
  config.max_connections = 1;
  EXPECT_EQ(ConnectionLimitsOf(config).per_address, 1);
  config.max_connections = 0;
  EXPECT_GT(ConnectionLimitsOf(config).total, 0) << "as many as descriptors allow";
}

TEST(PartOptions, CallersOfThisMachineMayLoadModelsFromAnywhere) {
  EXPECT_TRUE(MayLoad(JobOptionsOf(ConfigOn("127.0.0.1"), /*authenticated=*/false), "/models/m"));
}

TEST(PartOptions, OthersMayLoadModelsOnlyFromBelowTheRoots) {
  EXPECT_FALSE(MayLoad(JobOptionsOf(ConfigOn("127.0.0.1"), /*authenticated=*/true), "/models/m"));
  EXPECT_FALSE(MayLoad(JobOptionsOf(ConfigOn("0.0.0.0"), /*authenticated=*/false), "/models/m"));
  ServerConfig config = ConfigOn("127.0.0.1");
  config.admin_listen = HostPort{"0.0.0.0", 50052};
  EXPECT_FALSE(MayLoad(JobOptionsOf(config, /*authenticated=*/false), "/models/m"));
  config.model_roots = {"/models"};
  EXPECT_TRUE(MayLoad(JobOptionsOf(config, /*authenticated=*/true), "/models/m"));
  EXPECT_FALSE(MayLoad(JobOptionsOf(config, /*authenticated=*/true), "/home/m"));
}

TEST(PartOptions, GroupsAreNamedAndHaveTheirModels) {
  ServerConfig config = ConfigOn("127.0.0.1");
  config.groups = {{{"cuda:0", "cuda:1"}, {"a"}}, {{"cuda:2"}, {}}};
  EXPECT_THAT(DeviceNamesOf(config), ElementsAre("cuda:0,1", "cuda:2"));
  const JobServiceOptions options = JobOptionsOf(config, /*authenticated=*/false);
  EXPECT_THAT(options.device_names, ElementsAre("cuda:0,1", "cuda:2"));
  EXPECT_TRUE(options.may_have(0, "a"));
  EXPECT_FALSE(options.may_have(1, "a"));
  EXPECT_TRUE(options.may_have(1, "b"));
}

TEST(PartOptions, ACertificateMayBeNoProofOfARole) {
  ServerConfig config = ConfigOn("127.0.0.1");
  config.client_certificate_role = ClientCertificateRole::kNone;
  EXPECT_EQ(CertificateRoleOf(config), std::nullopt);
  config.client_certificate_role = ClientCertificateRole::kAdmin;
  EXPECT_EQ(CertificateRoleOf(config), Role::kAdmin);
}

}  // namespace
}  // namespace wan::server
