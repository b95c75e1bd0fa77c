#include "client/wanctl/receipt_comparison.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "client/wanctl/listings.h"

namespace wan::client {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

wan::v1::Receipt Example() {
  wan::v1::Receipt receipt;
  receipt.set_name("jobs/a/receipt");
  receipt.mutable_request()->set_prompt("a cat");
  receipt.mutable_request()->set_seed(7);
  receipt.mutable_request()->set_request_id("one");
  receipt.mutable_provenance()->set_device_name("card");
  receipt.mutable_provenance()->set_noise_device("cuda");
  for (const char* const path : {"config.json", "vae.pth"}) {
    wan::v1::ModelFile& file = *receipt.add_files();
    file.set_path(path);
    file.set_size_bytes(5);
    file.set_sha256("12ab");
  }
  wan::v1::Artifact& artifact = *receipt.add_artifacts();
  artifact.set_kind(wan::v1::OUTPUT_KIND_MP4);
  artifact.set_name("jobs/a/artifacts/video.mp4");
  artifact.set_sha256("34cd");
  return receipt;
}

TEST(ReceiptComparisonTest, WhatIsNoPartOfTheVideoMakesNoDifference) {
  wan::v1::Receipt now = Example();
  now.set_name("jobs/b/receipt");
  now.mutable_artifacts(0)->set_name("jobs/b/artifacts/video.mp4");
  now.mutable_request()->set_request_id("two");
  now.mutable_request()->mutable_deadline()->set_seconds(1);
  now.mutable_request()->set_profile(true);
  now.mutable_request()->set_progressive(true);
  EXPECT_THAT(ArtifactDifferences(Example(), now), IsEmpty());
  EXPECT_THAT(MakerDifferences(Example(), now), IsEmpty());
  EXPECT_EQ(ComparisonText(Example(), now),
            "identical: jobs/b has the same files as jobs/a, bit for bit\n");
}

TEST(ReceiptComparisonTest, EveryDifferenceIsNamed) {
  wan::v1::Receipt now = Example();
  now.mutable_request()->set_seed(8);
  now.set_image_sha256("56");
  now.mutable_provenance()->set_device_name("other card");
  now.mutable_provenance()->set_batched_guidance(true);
  now.mutable_provenance()->add_cpu_components("vae");
  now.mutable_files(0)->set_size_bytes(6);
  now.mutable_files(1)->set_sha256("ff");
  now.add_files()->set_path("loras/a/b.safetensors");
  EXPECT_THAT(MakerDifferences(Example(), now),
              ElementsAre("request: seed: 7 then, 8 now", "the image is another",
                          "server: device name: \"card\" then, \"other card\" now",
                          "server: batched guidance: false then, true now",
                          "server: cpu components: nothing then, \"vae\" now",
                          "file config.json: 5 bytes then, 6 now",
                          "file vae.pth: SHA-256 12ab then, ff now",
                          "file loras/a/b.safetensors: read now, not then"));
  EXPECT_THAT(MakerDifferences(now, Example()),
              testing::Contains("file loras/a/b.safetensors: read then, not now"));
}

TEST(ReceiptComparisonTest, AnUnknownDigestIsToldApartFromAnEqualOne) {
  wan::v1::Receipt now = Example();
  now.mutable_files(1)->clear_sha256();
  EXPECT_THAT(MakerDifferences(Example(), now),
              ElementsAre("file vae.pth: its SHA-256 now is not known"));
}

TEST(ReceiptComparisonTest, TheSidesMayHaveOtherNames) {
  wan::v1::Receipt now = Example();
  now.mutable_request()->set_seed(8);
  now.mutable_files(0)->set_size_bytes(6);
  now.mutable_files(1)->clear_sha256();
  now.add_files()->set_path("loras/a/b.safetensors");
  EXPECT_THAT(MakerDifferences(Example(), now, {"in A", "in B", /*unknown_digests=*/false}),
              ElementsAre("request: seed: 7 in A, 8 in B", "file config.json: 5 bytes in A, 6 in B",
                          "file loras/a/b.safetensors: read in B, not in A"));
}

TEST(ReceiptComparisonTest, FilesAreComparedByTheirKind) {
  wan::v1::Receipt now = Example();
  now.mutable_artifacts(0)->set_sha256("00");
  EXPECT_THAT(ArtifactDifferences(Example(), now), ElementsAre("mp4: SHA-256 34cd then, 00 now"));
  EXPECT_EQ(ComparisonText(Example(), now),
            "different: jobs/a has other files than jobs/a\n"
            "  mp4: SHA-256 34cd then, 00 now\n"
            "Nothing differs of what the receipts record.\n");
  now.mutable_artifacts(0)->set_kind(wan::v1::OUTPUT_KIND_LATENTS);
  EXPECT_THAT(ArtifactDifferences(Example(), now), ElementsAre("mp4: made then, not now"));
}

TEST(ReceiptComparisonTest, AReceiptAsText) {
  wan::v1::Receipt receipt = Example();
  receipt.mutable_files(0)->clear_sha256();
  EXPECT_THAT(ReceiptText(receipt),
              AllOf(StartsWith("Receipt:     jobs/a/receipt\n"), HasSubstr("seed 7"),
                    HasSubstr("Device:      card\n"),
                    HasSubstr("File:        config.json  5 B  sha256 not known\n"),
                    HasSubstr("File:        vae.pth  5 B  sha256 12ab\n"), HasSubstr("video.mp4")));
}

}  // namespace
}  // namespace wan::client
