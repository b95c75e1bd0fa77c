#include "server/http/browser_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace wan::server {
namespace {

using ::testing::HasSubstr;

HttpHead From(const std::string& origin, const std::string& host) {
  HttpHead head;
  head.fields = {{"host", host}};
  if (!origin.empty()) head.fields.emplace_back("origin", origin);
  return head;
}

const BrowserRules kLocal{.authenticates = false, .loopback = true, .page = true};
const BrowserRules kInsecure{.authenticates = false, .loopback = false, .page = true};
const BrowserRules kTokens{.authenticates = true, .loopback = false, .page = true};

TEST(BrowserCheckTest, OnThisMachineItsNamesAndItsOwnPage) {
  EXPECT_TRUE(CheckBrowser(From("", "localhost:8000"), kLocal).ok());
  EXPECT_TRUE(CheckBrowser(From("http://localhost:8000", "localhost:8000"), kLocal).ok());
  EXPECT_TRUE(CheckBrowser(From("http://[::1]:8000", "[::1]:8000"), kLocal).ok());
  EXPECT_TRUE(CheckBrowser(From("https://localhost", "localhost"), kLocal).ok());
  // Another program of this machine, another site, a sandbox.
  for (const char* const origin :
       {"http://localhost:3000", "http://localhost", "https://example.com", "null", "http://",
        "http://localhost:8000.example.com", "ftp://localhost:8000"}) {
    EXPECT_TRUE(absl::IsPermissionDenied(CheckBrowser(From(origin, "localhost:8000"), kLocal)))
        << origin;
  }
  // A name that somebody made to mean this machine.
  const HttpHead rebound = From("http://evil.example:8000", "evil.example:8000");
  EXPECT_THAT(std::string(CheckBrowser(rebound, kLocal).message()), HasSubstr("Host must be"));
  EXPECT_FALSE(CheckBrowser(From("http://192.0.2.7:8000", "192.0.2.7:8000"), kLocal).ok());
}

TEST(BrowserCheckTest, AListedPageIsLetInWhereNobodyIsAuthenticated) {
  BrowserRules rules = kLocal;
  rules.origins = {"https://studio.example.com"};
  HttpHead head = From("https://studio.example.com", "localhost:8000");
  head.path = "/v1/videos";
  head.fields.emplace_back("sec-fetch-site", "cross-site");
  EXPECT_TRUE(CheckBrowser(head, rules).ok());
  EXPECT_FALSE(CheckBrowser(head, kLocal).ok());
  EXPECT_FALSE(CheckBrowser(From("https://studio.example.com.evil", "localhost:8000"), rules).ok());
  // The server has another name for the page: somebody may let it point to this machine.
  EXPECT_FALSE(CheckBrowser(From("https://studio.example.com", "evil.example:8000"), rules).ok());
  // With the browser's certificate alone it cannot act for the user.
  rules.authenticates = true;
  head.certificate_subject = "CN=ann";
  EXPECT_FALSE(CheckBrowser(head, rules).ok());
}

TEST(BrowserCheckTest, WithoutAuthenticationItsPageHasAnAddressForItsName) {
  for (const char* const host :
       {"localhost:8000", "192.0.2.7:8000", "192.0.2.7", "[2001:db8::7]:8000", "[2001:db8::7]"}) {
    EXPECT_TRUE(CheckBrowser(From(std::string("http://") + host, host), kInsecure).ok()) << host;
  }
  for (const char* const host : {"evil.example:8000", "gpu1:8000", "192.0.2.7.evil.example", ""}) {
    EXPECT_FALSE(CheckBrowser(From(std::string("http://") + host, host), kInsecure).ok()) << host;
  }
  EXPECT_FALSE(CheckBrowser(From("https://example.com", "192.0.2.7:8000"), kInsecure).ok());
  // Programs may use its name, as before.
  EXPECT_TRUE(CheckBrowser(From("", "gpu1:8000"), kInsecure).ok());
}

TEST(BrowserCheckTest, WhatAnotherPageOnlyShows) {
  HttpHead shown = From("", "localhost:8000");
  shown.path = "/v1/videos/video_1/content";
  EXPECT_TRUE(CheckBrowser(shown, kLocal).ok());
  for (const char* const site : {"cross-site", "same-site"}) {
    HttpHead foreign = shown;
    foreign.fields.emplace_back("sec-fetch-site", site);
    EXPECT_TRUE(absl::IsPermissionDenied(CheckBrowser(foreign, kLocal))) << site;
    EXPECT_TRUE(absl::IsPermissionDenied(CheckBrowser(foreign, kInsecure))) << site;
    foreign.path = "/";  // a link to the page
    EXPECT_TRUE(CheckBrowser(foreign, kLocal).ok()) << site;
  }
  shown.fields.emplace_back("sec-fetch-site", "same-origin");
  EXPECT_TRUE(CheckBrowser(shown, kLocal).ok());
}

TEST(BrowserCheckTest, WithoutThePageNoPage) {
  BrowserRules rules = kLocal;
  rules.page = false;
  EXPECT_FALSE(CheckBrowser(From("http://localhost:8000", "localhost:8000"), rules).ok());
  EXPECT_TRUE(CheckBrowser(From("", "localhost:8000"), rules).ok());
}

TEST(BrowserCheckTest, ATokenDecidesAndACertificateDoesNot) {
  HttpHead head = From("https://example.com", "wan.example");
  EXPECT_TRUE(CheckBrowser(head, kTokens).ok()) << "the gatekeeper refuses it";
  // The browser shows the certificate for any page.
  head.certificate_subject = "CN=alice";
  EXPECT_THAT(std::string(CheckBrowser(head, kTokens).message()), HasSubstr("certificate"));
  head.fields.emplace_back("authorization", "Bearer x");
  EXPECT_TRUE(CheckBrowser(head, kTokens).ok());
  HttpHead own = From("https://wan.example", "wan.example");
  own.certificate_subject = "CN=alice";
  EXPECT_TRUE(CheckBrowser(own, kTokens).ok());
  HttpHead program = From("", "wan.example");
  program.certificate_subject = "CN=alice";
  EXPECT_TRUE(CheckBrowser(program, kTokens).ok());
}

}  // namespace
}  // namespace wan::server
