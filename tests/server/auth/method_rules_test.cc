// The table of methods and roles against the services that there are, and against the docs.
#include "server/auth/method_rules.h"

#include <gmock/gmock.h>
#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "grpc/health/v1/health.pb.h"
#include "grpc/reflection/v1/reflection.pb.h"
#include "grpc/reflection/v1alpha/reflection.pb.h"
#include "server/http/video_routes.h"
#include "wan/v1/administration.pb.h"
#include "wan/v1/model_management.pb.h"
#include "wan/v1/telemetry.pb.h"
#include "wan/v1/video_generation.pb.h"

namespace wan::server {
namespace {

using google::protobuf::FileDescriptor;
using google::protobuf::MethodDescriptor;

// Every method of every service that the server may offer.
std::vector<const MethodDescriptor*> Methods() {
  const FileDescriptor* const files[] = {
      wan::v1::GetJobRequest::descriptor()->file(),
      wan::v1::ListModelsRequest::descriptor()->file(),
      wan::v1::GetServerInfoRequest::descriptor()->file(),
      wan::v1::DrainRequest::descriptor()->file(),
      grpc::health::v1::HealthCheckRequest::descriptor()->file(),
      grpc::reflection::v1::ServerReflectionRequest::descriptor()->file(),
      grpc::reflection::v1alpha::ServerReflectionRequest::descriptor()->file()};
  std::vector<const MethodDescriptor*> methods;
  for (const FileDescriptor* const file : files) {
    for (int s = 0; s < file->service_count(); ++s) {
      for (int m = 0; m < file->service(s)->method_count(); ++m) {
        methods.push_back(file->service(s)->method(m));
      }
    }
  }
  return methods;
}

std::string PathOf(const MethodDescriptor& method) {
  return absl::StrCat("/", method.service()->full_name(), "/", method.name());
}

TEST(MethodRulesTest, EveryMethodHasOneRowAndEveryRowAMethod) {
  std::multiset<std::string> rows;
  for (const MethodRule& rule : MethodRules()) rows.emplace(rule.path);
  std::multiset<std::string> methods;
  for (const MethodDescriptor* const method : Methods()) {
    methods.insert(PathOf(*method));
    EXPECT_EQ(rows.count(PathOf(*method)), 1u)
        << PathOf(*method) << " needs a row in server/auth/method_rules.cc";
  }
  for (const std::string_view route : VideoRoutes()) methods.emplace(route);
  EXPECT_EQ(rows, methods);
}

TEST(MethodRulesTest, ModelManagementAndAdministrationAreForAdministrators) {
  for (const MethodRule& rule : MethodRules()) {
    if (rule.path.find("ModelManagement") == std::string_view::npos &&
        rule.path.find("Administration") == std::string_view::npos) {
      continue;
    }
    EXPECT_EQ(rule.least, Role::kAdmin) << rule.path;
  }
}

// A request that names a job and a row that does not say so would show it to everybody.
TEST(MethodRulesTest, WhatNamesAJobIsOwned) {
  for (const MethodDescriptor* const method : Methods()) {
    const MethodRule* const rule = FindMethodRule(PathOf(*method));
    ASSERT_NE(rule, nullptr) << PathOf(*method);
    if (method->service()->full_name() != "wan.v1.VideoGeneration") continue;
    for (const char* const field : {"name", "job"}) {
      if (method->input_type()->FindFieldByName(field) == nullptr) continue;
      EXPECT_TRUE(rule->owned) << rule->path;
      EXPECT_EQ(rule->resource_field.substr(0, std::string_view(field).size()), field);
    }
  }
}

TEST(MethodRulesTest, EveryFieldOfTheTableIsATextOfItsRequest) {
  for (const MethodDescriptor* const method : Methods()) {
    const MethodRule* const rule = FindMethodRule(PathOf(*method));
    ASSERT_NE(rule, nullptr);
    EXPECT_FALSE(rule->owned && rule->resource_field.empty()) << rule->path;
    if (rule->resource_field.empty()) continue;
    const std::unique_ptr<google::protobuf::Message> request(
        google::protobuf::MessageFactory::generated_factory()
            ->GetPrototype(method->input_type())
            ->New());
    EXPECT_EQ(FieldText(*request, rule->resource_field), "") << rule->path;
  }
}

TEST(MethodRulesTest, FieldTextReadsTheField) {
  wan::v1::GetReportRequest report;
  report.set_job("jobs/1");
  EXPECT_EQ(FieldText(report, "job"), "jobs/1");
  wan::v1::CreateJobRequest create;
  EXPECT_EQ(FieldText(create, "request.model"), "");
  create.mutable_request()->set_model("m");
  EXPECT_EQ(FieldText(create, "request.model"), "m");
}

// The table's row without the methods, and the method's name in it.
std::pair<std::string, std::string> RowOf(const MethodRule& rule) {
  const absl::string_view path(rule.path.data(), rule.path.size());
  return {absl::StrCat("| ", rule.open ? "everybody" : std::string(NameOf(rule.least)),
                       rule.owned ? " | own |" : " | |", rule.audited ? " yes |" : " |"),
          absl::StrCat("`", absl::StripPrefix(absl::StripPrefix(path, "/"), "wan.v1."), "`")};
}

TEST(MethodRulesTest, TheDocumentedTableIsThisOne) {
  std::vector<std::pair<std::string, std::vector<std::string>>> expected;
  for (const MethodRule& rule : MethodRules()) {
    const auto [row, method] = RowOf(rule);
    const auto known = std::find_if(expected.begin(), expected.end(),
                                    [&](const auto& entry) { return entry.first == row; });
    if (known == expected.end()) {
      expected.push_back({row, {method}});
    } else {
      known->second.push_back(method);
    }
  }
  std::vector<std::string> lines;
  for (const auto& [row, methods] : expected) {
    lines.push_back(absl::StrCat(row, " ", absl::StrJoin(methods, ", "), " |"));
  }
  std::ifstream page(WAN_SECURITY_PAGE);
  ASSERT_TRUE(page.is_open());
  std::vector<std::string> rows;
  for (std::string line; std::getline(page, line);) {
    for (const char* const role : {"| viewer |", "| user |", "| admin |", "| everybody |"}) {
      if (line.starts_with(role)) rows.push_back(line);
    }
  }
  EXPECT_EQ(rows, lines);
}

}  // namespace
}  // namespace wan::server
