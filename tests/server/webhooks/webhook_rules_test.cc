#include "server/webhooks/webhook_rules.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

namespace wan::server {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

const WebhookRules kRules{{"hooks.example.com", "10.0.0.7:8443", "[2001:db8::1]"}, false, false};

std::string ProblemOf(const std::string& url) { return WebhookUrlProblem(kRules, url); }

TEST(WebhookRulesTest, OnlyAllowedHosts) {
  for (const char* const url : {"https://hooks.example.com", "https://hooks.example.com/a?b=c",
                                "https://HOOKS.example.COM/", "https://hooks.example.com:443/",
                                "https://10.0.0.7:8443/x", "https://[2001:db8::1]/"}) {
    EXPECT_THAT(ProblemOf(url), IsEmpty()) << url;
  }
  for (const char* const url :
       {"https://example.com/", "https://evil.hooks.example.com/",
        "https://hooks.example.com.evil.com/", "https://hooks.example.com:444/",
        "https://10.0.0.7/", "https://hooks.example.com:8443/",
        "https://evil.com/hooks.example.com", "https://evil.com#@hooks.example.com/"}) {
    EXPECT_FALSE(ProblemOf(url).empty()) << url;
  }
  EXPECT_EQ(ProblemOf("https://evil.com/"),
            "names the host 'evil.com' and the port 443; the operator has allowed only "
            "hooks.example.com, 10.0.0.7:8443, [2001:db8::1]");
}

TEST(WebhookRulesTest, OnlyHttpsUnlessTheOperatorSaysSo) {
  EXPECT_THAT(ProblemOf("http://hooks.example.com/"), HasSubstr("begins with https://"));
  for (const char* const url :
       {"ftp://hooks.example.com/", "file:///etc/passwd", "hooks.example.com",
        "gopher://hooks.example.com/", "//hooks.example.com/", "x", " ", "https://",
        "https://hooks.example.com/\r\nX: y", "https://hooks.example.com/\xc3\xa4"}) {
    EXPECT_THAT(ProblemOf(url), HasSubstr("must be a URL")) << url;
  }
  const WebhookRules both{{"h"}, true, false};
  EXPECT_THAT(WebhookUrlProblem(both, "http://h/"), IsEmpty());
  EXPECT_THAT(WebhookUrlProblem(both, "http://h:80/"), IsEmpty());
  EXPECT_FALSE(WebhookUrlProblem(both, "http://h:443/").empty());
  EXPECT_FALSE(WebhookUrlProblem(both, "ftp://h/").empty());
}

TEST(WebhookRulesTest, WhatAUrlMustNotHave) {
  EXPECT_THAT(ProblemOf("https://a:b@hooks.example.com/"), HasSubstr("no user name"));
  EXPECT_THAT(ProblemOf("https://a@hooks.example.com/"), HasSubstr("no user name"));
  EXPECT_THAT(ProblemOf("https://hooks.example.com/#a"), HasSubstr("no fragment"));
  const std::string base = "https://hooks.example.com/";
  EXPECT_THAT(ProblemOf(base + std::string(2048 - base.size(), 'x')), IsEmpty());
  EXPECT_EQ(ProblemOf(base + std::string(2049 - base.size(), 'x')),
            "has 2049 bytes; must have at most 2048");
}

TEST(WebhookRulesTest, WithoutHostsThereAreNoWebhooks) {
  EXPECT_EQ(WebhookUrlProblem({}, "https://hooks.example.com/"),
            "must be empty, because this server sends no webhooks");
}

TEST(WebhookRulesTest, EntriesOfHosts) {
  for (const char* const entry :
       {"h", "hooks.example.com", "h:8443", "10.0.0.7", "[::1]", "[::1]:80"}) {
    EXPECT_THAT(HostEntryProblem(entry), IsEmpty()) << entry;
  }
  for (const char* const entry : {"", "*", "*.example.com", "https://h", "h/", "h/x", "a@h", "h:x",
                                  "h:99999", "h?x", "h#x", "h i"}) {
    EXPECT_THAT(HostEntryProblem(entry), HasSubstr("must be HOST or HOST:PORT")) << entry;
  }
}

bool IsPublic(const std::string& text) {
  sockaddr_storage address{};
  auto* const v4 = reinterpret_cast<sockaddr_in*>(&address);
  auto* const v6 = reinterpret_cast<sockaddr_in6*>(&address);
  if (inet_pton(AF_INET, text.c_str(), &v4->sin_addr) == 1) {
    address.ss_family = AF_INET;
  } else {
    EXPECT_EQ(inet_pton(AF_INET6, text.c_str(), &v6->sin6_addr), 1) << text;
    address.ss_family = AF_INET6;
  }
  return IsPublicAddress(reinterpret_cast<const sockaddr&>(address));
}

TEST(WebhookRulesTest, PublicAddresses) {
  for (const char* const address :
       {"1.1.1.1", "9.255.255.255", "11.0.0.0", "100.63.255.255", "100.128.0.0", "172.15.255.255",
        "172.32.0.0", "192.167.255.255", "192.169.0.0", "223.255.255.255", "2606:4700::1",
        "2a00::1", "::ffff:1.1.1.1"}) {
    EXPECT_TRUE(IsPublic(address)) << address;
  }
  for (const char* const address : {"0.0.0.0",
                                    "10.0.0.0",
                                    "10.255.255.255",
                                    "100.64.0.0",
                                    "100.127.255.255",
                                    "127.0.0.1",
                                    "127.255.255.255",
                                    "169.254.169.254",
                                    "172.16.0.0",
                                    "172.31.255.255",
                                    "192.0.0.1",
                                    "192.0.2.1",
                                    "192.168.0.0",
                                    "192.168.255.255",
                                    "198.18.0.1",
                                    "198.19.255.255",
                                    "198.51.100.1",
                                    "203.0.113.1",
                                    "224.0.0.1",
                                    "255.255.255.255",
                                    "::",
                                    "::1",
                                    "fe80::1",
                                    "fc00::1",
                                    "fdff::1",
                                    "ff02::1",
                                    "::ffff:127.0.0.1",
                                    "::ffff:10.0.0.1",
                                    "64:ff9b::a00:1",
                                    "2001::1",
                                    "2001:db8::1",
                                    "2002:a00:1::1",
                                    "3fff::1",
                                    "4000::1"}) {
    EXPECT_FALSE(IsPublic(address)) << address;
  }
  sockaddr other{};
  other.sa_family = AF_UNIX;
  EXPECT_FALSE(IsPublicAddress(other));
}

}  // namespace
}  // namespace wan::server
