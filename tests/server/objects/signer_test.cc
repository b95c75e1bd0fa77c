#include "server/objects/signer.h"

#include <gtest/gtest.h>

namespace wan::server {
namespace {

struct Reference {
  S3Request request;
  const char* session_token;
  const char* region;
  const char* authorization;
};

const Reference kReferences[] = {
#include "tests/server/objects/signer_values.inc"
};

TEST(SignerTest, SignsAsBotocoreDoes) {
  const absl::Time now = absl::FromUnixSeconds(1767323045);  // 2026-01-02T03:04:05Z
  for (const Reference& reference : kReferences) {
    SCOPED_TRACE(reference.request.method + " " + reference.request.path);
    const auto fields =
        Sign(reference.request,
             {"AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", reference.session_token},
             reference.region, now);
    EXPECT_EQ(fields.back().first, "authorization");
    EXPECT_EQ(fields.back().second, reference.authorization);
  }
}

TEST(SignerTest, TheQueryOfTheUrlIsTheOneThatIsSigned) {
  EXPECT_EQ(CanonicalQuery({{"uploads", ""}}), "uploads=");
  EXPECT_EQ(CanonicalQuery({{"uploadId", "a/b c"}, {"partNumber", "2"}}),
            "partNumber=2&uploadId=a%2Fb%20c");
}

}  // namespace
}  // namespace wan::server
