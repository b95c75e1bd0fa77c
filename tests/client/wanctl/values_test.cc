#include "client/wanctl/values.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>

namespace wan::client {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;

// "WxHxF", or "error".
std::string Text(const absl::StatusOr<wan::v1::Shape>& shape) {
  if (!shape.ok()) return "error";
  return std::to_string(shape->width()) + "," + std::to_string(shape->height()) + "," +
         std::to_string(shape->num_frames());
}

TEST(ValuesTest, WholeNumbers) {
  EXPECT_EQ(*ParseInt32("0"), 0);
  EXPECT_EQ(*ParseInt32("-100"), -100);
  EXPECT_EQ(*ParseInt32("+5"), 5);
  // Not octal.
  EXPECT_EQ(*ParseInt32("017"), 17);
  EXPECT_EQ(*ParseInt32("2147483647"), 2147483647);
  EXPECT_EQ(*ParseInt64("9223372036854775807"), std::numeric_limits<int64_t>::max());
  EXPECT_EQ(*ParseInt64("-1"), -1);
  for (const char* text : {"", " 1", "1 ", "1.0", "1e3", "0x10", "2147483648", "+-1", "++1", "-",
                           "+", "one", "1,000"}) {
    EXPECT_FALSE(ParseInt32(text).ok()) << text;
  }
  EXPECT_FALSE(ParseInt64("9223372036854775808").ok());
  EXPECT_EQ(*ParseCountOrZero("0"), 0);
  EXPECT_EQ(ParseCountOrZero("-1").status(),
            absl::InvalidArgumentError("expects a whole number, 0 or more, not '-1'"));
}

TEST(ValuesTest, ErrorsQuoteTheText) {
  EXPECT_EQ(ParseInt32("12a").status(),
            absl::InvalidArgumentError("expects a whole number, not '12a'"));
  EXPECT_EQ(ParseSolver("heun").status(),
            absl::InvalidArgumentError("expects one of unipc, dpm++, euler, lcm, not 'heun'"));
}

TEST(ValuesTest, Numbers) {
  EXPECT_EQ(*ParseNumber("5"), 5);
  EXPECT_EQ(*ParseNumber("-0.25"), -0.25);
  EXPECT_EQ(*ParseNumber("1e-3"), 0.001);
  for (const char* text : {"", "nan", "inf", "-inf", "1e999", "1,5", "5x", "0x1p3", " 5"}) {
    EXPECT_FALSE(ParseNumber(text).ok()) << text;
  }
}

TEST(ValuesTest, Seconds) {
  EXPECT_EQ(*ParseSeconds("90"), absl::Seconds(90));
  EXPECT_EQ(*ParseSeconds("0.5"), absl::Milliseconds(500));
  for (const char* text : {"0", "-1", "1m", ""}) EXPECT_FALSE(ParseSeconds(text).ok()) << text;
}

TEST(ValuesTest, Counts) {
  EXPECT_EQ(*ParseCount("1"), 1);
  for (const char* text : {"0", "-1", "", "x"}) EXPECT_FALSE(ParseCount(text).ok()) << text;
}

TEST(ValuesTest, Sizes) {
  EXPECT_EQ(Text(ParseSize("1280x704")), "1280,704,0");
  EXPECT_EQ(Text(ParseSize("1280*704")), "1280,704,0");
  // What a model takes is the server's to say.
  EXPECT_EQ(Text(ParseSize("1x1")), "1,1,0");
  for (const char* text : {"", "1280", "x", "1280x", "x704", "1280X704", "1280**704", "1280x704x5",
                           "-1280x704", "0x704", "1280 x 704"}) {
    EXPECT_EQ(Text(ParseSize(text)), "error") << text;
  }
}

TEST(ValuesTest, Shapes) {
  EXPECT_EQ(Text(ParseShape("1280x704x121")), "1280,704,121");
  for (const char* text : {"", "1280x704", "1280x704x", "1280x704x0", "1x2x3x4"}) {
    EXPECT_EQ(Text(ParseShape(text)), "error") << text;
  }
}

TEST(ValuesTest, Guidance) {
  EXPECT_THAT(*ParseGuidance("5"), ElementsAre(5));
  EXPECT_THAT(*ParseGuidance("3.5,4"), ElementsAre(3.5, 4));
  for (const char* text : {"", ",", "5,", ",5", "1,2,3", "a", "1;2", "1, 2"}) {
    EXPECT_FALSE(ParseGuidance(text).ok()) << text;
  }
}

TEST(ValuesTest, Solvers) {
  EXPECT_EQ(*ParseSolver("unipc"), wan::v1::SOLVER_UNIPC);
  EXPECT_EQ(*ParseSolver("dpm++"), wan::v1::SOLVER_DPMPP);
  EXPECT_EQ(*ParseSolver("euler"), wan::v1::SOLVER_EULER);
  EXPECT_EQ(*ParseSolver("UniPC"), wan::v1::SOLVER_UNIPC);
  for (const char* text : {"", "dpm", "dpmpp"}) EXPECT_FALSE(ParseSolver(text).ok()) << text;
}

TEST(ValuesTest, Labels) {
  EXPECT_THAT(*ParseLabel("team=film"), Pair("team", "film"));
  EXPECT_THAT(*ParseLabel("a=b=c"), Pair("a", "b=c"));
  EXPECT_THAT(*ParseLabel("a="), Pair("a", ""));
  for (const char* text : {"", "a", "=b"}) EXPECT_FALSE(ParseLabel(text).ok()) << text;
}

TEST(ValuesTest, Colours) {
  EXPECT_EQ(*ParseColor("#12aBcd"), "#12aBcd");
  EXPECT_EQ(*ParseColor("ffffff"), "#ffffff");
  for (const char* text : {"", "#", "#fff", "white", "##fffff", "#ffffffff", "#ggffff", "-fffff"}) {
    EXPECT_FALSE(ParseColor(text).ok()) << text;
  }
}

TEST(ValuesTest, Loras) {
  EXPECT_EQ(ParseLoraScale("style")->name(), "style");
  EXPECT_FALSE(ParseLoraScale("style")->has_scale());
  EXPECT_EQ(ParseLoraScale("style:-0.5")->scale(), -0.5);
  EXPECT_EQ(ParseLoraScale("style:0")->scale(), 0);
  for (const char* text : {"", ":1", "a:", "a:b", "a:1:2", "a:inf"}) {
    EXPECT_FALSE(ParseLoraScale(text).ok()) << text;
  }
  EXPECT_EQ(ParseLoraScale("fast:1/0.8")->high_scale(), 1);
  EXPECT_EQ(ParseLoraScale("fast:1/0.8")->low_scale(), 0.8);
  EXPECT_FALSE(ParseLoraScale("fast:1/0.8")->has_scale());
  EXPECT_FALSE(ParseLoraScale("fast:1/x").ok());
  EXPECT_EQ(ParseLoraSchedule("fast=steps:4,shift:5")->schedule().shift(), 5);
  EXPECT_FALSE(ParseLoraSchedule("steps:4").ok());
  EXPECT_THAT(*ParseSigmas("1,0.75"), testing::ElementsAre(1, 0.75));
  EXPECT_FALSE(ParseSigmas("1,,2").ok());
  const auto source = ParseLoraSource("style@low=/a=b");
  EXPECT_EQ(source->name(), "style");
  EXPECT_EQ(source->expert(), "low");
  EXPECT_EQ(source->path(), "/a=b");
  EXPECT_EQ(ParseLoraSource("style=a@b")->path(), "a@b");
  for (const char* text : {"", "a", "a=", "=b", "@low=b", "a@=b"}) {
    EXPECT_FALSE(ParseLoraSource(text).ok()) << text;
  }
}

TEST(ValuesTest, Artifacts) {
  EXPECT_EQ(*ParseArtifactKind("mp4"), wan::v1::OUTPUT_KIND_MP4);
  EXPECT_EQ(*ParseArtifactKind("mkv"), wan::v1::OUTPUT_KIND_LOSSLESS_MKV);
  EXPECT_EQ(*ParseArtifactKind("safetensors"), wan::v1::OUTPUT_KIND_LATENTS);
  EXPECT_FALSE(ParseArtifactKind(".mp4").ok());
}

TEST(ValuesTest, OutputFiles) {
  EXPECT_EQ(*ParseOutputFile("a/b.mp4"), (OutputFile{wan::v1::OUTPUT_KIND_MP4, "a/b.mp4"}));
  EXPECT_EQ(*ParseOutputFile("b.mkv"), (OutputFile{wan::v1::OUTPUT_KIND_LOSSLESS_MKV, "b.mkv"}));
  EXPECT_EQ(*ParseOutputFile("b.x.safetensors"),
            (OutputFile{wan::v1::OUTPUT_KIND_LATENTS, "b.x.safetensors"}));
  EXPECT_EQ(ParseOutputFile("B.MP4")->kind, wan::v1::OUTPUT_KIND_MP4);
  for (const char* text : {"", "mp4", "video", "video.avi", "video.mp4.txt", "video.mp4/"}) {
    EXPECT_FALSE(ParseOutputFile(text).ok()) << text;
  }
}

TEST(ValuesTest, JobNames) {
  EXPECT_EQ(*ParseJobName("a1"), "jobs/a1");
  EXPECT_EQ(*ParseJobName("jobs/a1"), "jobs/a1");
  EXPECT_FALSE(ParseJobName("").ok());
  EXPECT_FALSE(ParseJobName("jobs/").ok());
}

TEST(ValuesTest, JobsAndFilesToCompare) {
  for (const char* job : {"a1", "jobs/a1"}) {
    EXPECT_EQ(ParseJobOrFile(job)->name, "jobs/a1");
    EXPECT_FALSE(ParseJobOrFile(job)->file);
  }
  for (const char* file : {"a.mp4", "./a1", "/tmp/jobs/a1"}) {
    EXPECT_EQ(ParseJobOrFile(file)->name, file);
    EXPECT_TRUE(ParseJobOrFile(file)->file);
  }
  EXPECT_FALSE(ParseJobOrFile("").ok());
}

TEST(ValuesTest, JobStates) {
  EXPECT_EQ(*ParseJobState("running"), wan::v1::JOB_STATE_RUNNING);
  EXPECT_EQ(*ParseJobState("QUEUED"), wan::v1::JOB_STATE_QUEUED);
  EXPECT_EQ(*ParseJobState("cancelled"), wan::v1::JOB_STATE_CANCELLED);
  EXPECT_FALSE(ParseJobState("done").ok());
}

TEST(ValuesTest, Servers) {
  for (const char* text :
       {"localhost:50051", "10.0.0.1:1", "gpu-1.example.com:65535", "[::1]:80"}) {
    EXPECT_EQ(*ParseServer(text), text);
  }
  for (const char* text :
       {"", "localhost", ":50051", "localhost:", "localhost:0", "localhost:65536", "localhost:http",
        "::1:80", "[]:80", "http://localhost:80", "local host:80"}) {
    EXPECT_FALSE(ParseServer(text).ok()) << text;
  }
}

}  // namespace
}  // namespace wan::client
