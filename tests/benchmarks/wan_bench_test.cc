// Every command of wan_bench on a tiny case on the CPU: it ends well, and its rows are valid.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "tests/e2e/process.h"

namespace wan {
namespace {

using nlohmann::json;
using testing::HasSubstr;

const char* const kTiny = "synthetic:ti2v-tiny";

class WanBenchTest : public testing::Test {
 protected:
  e2e::ProcessResult Run(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), WAN_BINARY_DIR "/wan_bench");
    return e2e::RunProcess(arguments);
  }

  // The rows of a command that ends well. Each is valid.
  std::vector<json> Rows(std::vector<std::string> arguments) {
    const std::string command = arguments.front();
    arguments.push_back("--json");
    const e2e::ProcessResult result = Run(arguments);
    EXPECT_EQ(result.exit_code, 0) << command << ": " << result.err;
    std::vector<json> rows;
    const std::vector<std::string> lines = absl::StrSplit(result.out, '\n', absl::SkipEmpty());
    for (const std::string& line : lines) {
      const json row = json::parse(line, nullptr, /*allow_exceptions=*/false);
      EXPECT_TRUE(row.is_object()) << command << " printed: " << line;
      if (!row.is_object()) continue;
      EXPECT_EQ(row.value("command", ""), command);
      EXPECT_NE(row.value("name", ""), "");
      EXPECT_NE(row.value("device", ""), "");
      if (row.contains("seconds")) {
        EXPECT_GT(row["seconds"], 0) << line;
        EXPECT_GE(row["seconds"], row["least_seconds"]) << line;
        EXPECT_LE(row["seconds"], row["most_seconds"]) << line;
        EXPECT_GT(row["calls"], 0) << line;
      }
      rows.push_back(row);
    }
    EXPECT_FALSE(rows.empty()) << command;
    return rows;
  }

  // The file of this processor's ceilings.
  std::string Ceilings() {
    const std::string path = folder_.File("ceilings.json");
    const auto rows = Rows({"ceilings", "--device", "cpu", "--model", "ti2v-tiny", "--tokens", "64",
                            "--copy-mib", "1", "--seconds", "0.001", "--output", path});
    EXPECT_EQ(rows.size(), 6u);
    return path;
  }

  const e2e::TemporaryFolder folder_;
};

// Where wanctl's reports look for them.
TEST_F(WanBenchTest, CeilingsWithoutAFileAreKeptUnderTheDevicesName) {
  setenv("XDG_DATA_HOME", folder_.path().c_str(), 1);
  Rows({"ceilings", "--device", "cpu", "--model", "ti2v-tiny", "--tokens", "64", "--copy-mib", "1",
        "--seconds", "0.001"});
  const std::filesystem::path kept = std::filesystem::path(folder_.path()) / "wanserve/ceilings";
  ASSERT_TRUE(std::filesystem::is_directory(kept));
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(kept)) files.push_back(entry.path());
  ASSERT_EQ(files.size(), 1u);
  const json ceilings = json::parse(e2e::ReadWholeFile(files[0].string()));
  EXPECT_EQ(files[0].stem().string()[0], ceilings["device"].get<std::string>()[0]);
  EXPECT_EQ(ceilings["format"], "wanserve-ceilings");
}

TEST_F(WanBenchTest, CeilingsAreKeptAndGiveOtherRowsTheirRatio) {
  const std::string path = Ceilings();
  const json ceilings = json::parse(e2e::ReadWholeFile(path));
  EXPECT_EQ(ceilings["format"], "wanserve-ceilings");
  EXPECT_GT(ceilings["products_flop_per_second"]["fp32"], 1e6);
  EXPECT_GT(ceilings["attention_flop_per_second"]["fp32"], 1e6);
  EXPECT_GT(ceilings["memory_bytes_per_second"], 1e6);
  EXPECT_EQ(ceilings["rows"].size(), 6u);

  const std::string rows = folder_.File("rows.jsonl");
  const auto forward = Rows({"forward", "--device", "cpu", "--dtype", "fp32", "--model", kTiny,
                             "--shape", "64x64x5", "--ceilings", path, "--rows", rows, "--trace"});
  EXPECT_GT(forward[0]["ratio"], 0);
  EXPECT_GT(forward[0]["flop_per_second"], 0);
  EXPECT_EQ(forward[0]["name"], "synthetic:ti2v-tiny 64x64x5 fp32");
  EXPECT_GT(forward.size(), 3u) << "no trace";
  EXPECT_EQ(json::parse(e2e::ReadWholeFile(rows).substr(0, e2e::ReadWholeFile(rows).find('\n'))),
            forward[0]);

  const auto block = Rows({"block", "--device", "cpu", "--dtype", "fp32", "--model", kTiny,
                           "--shape", "64x64x5", "--ceilings", path});
  ASSERT_EQ(block.size(), 14u);
  for (const json& row : block) {
    EXPECT_GT(row["figures"]["predicted_us"], 0) << row;
    EXPECT_GT(row["figures"]["measured_us"], 0) << row;
  }
  EXPECT_EQ(block[2]["calls"], 9) << "three blocks in three forwards: " << block[2];
  // The last row is the block, whose ceiling is the sum of its operators'.
  double ceilings_sum = 0;
  for (size_t i = 0; i + 1 < block.size(); ++i) {
    ceilings_sum += block[i]["ceiling_seconds"].get<double>();
  }
  EXPECT_NEAR(block.back()["ceiling_seconds"].get<double>() / ceilings_sum, 1, 1e-9);

  const auto lora = Rows({"lora", "--device", "cpu", "--dtype", "fp32", "--model", kTiny, "--rank",
                          "4", "--repeats", "1", "--ceilings", path});
  ASSERT_EQ(lora.size(), 5u);
  for (const json& row : lora) {
    const bool has_work = row["name"] != "synthetic:ti2v-tiny rank 4: the same LoRA";
    EXPECT_EQ(row.contains("ratio"), has_work) << row;
  }
}

TEST_F(WanBenchTest, AJobsPartsAreHeldToTheCeilingsOfTheirPrecision) {
  const std::string path = Ceilings();
  const std::vector<std::string> job = {
      "job",     "--device", "cpu",     "--model",    WAN_DEMO_MODEL,
      "--shape", "64x64x5",  "--steps", "1",          "--repeats",
      "1",       "--warmup", "0",       "--ceilings", path};
  double sum = 0;
  for (const json& row : Rows(job)) {
    const auto name = row["name"].get<std::string>();
    if (name.ends_with(": whole job")) {
      EXPECT_NEAR(row["ceiling_seconds"].get<double>() / sum, 1, 1e-9) << row;
      EXPECT_EQ(row["precision"], "fp32");
    } else if (row.contains("ceiling_seconds")) {
      sum += row["ceiling_seconds"].get<double>();
    }
  }
  EXPECT_GT(sum, 0);

  std::vector<std::string> half = job;
  half.insert(half.end(), {"--vae-precision", "bf16"});
  for (const json& row : Rows(half)) {
    const auto name = row["name"].get<std::string>();
    if (name.ends_with("VAE_Decoding")) {
      EXPECT_EQ(row["precision"], "bf16") << row;
    } else if (name.ends_with("Inference")) {
      EXPECT_EQ(row["precision"], "fp32") << row;
    } else if (name.ends_with("whole job")) {
      EXPECT_EQ(row["precision"], "mixed") << row;
      EXPECT_FALSE(row.contains("ratio")) << "a CPU has no ceiling of bf16: " << row;
    }
  }
}

TEST_F(WanBenchTest, QualityHasTheErrorOfAForwardAndOfEachBlock) {
  const auto rows = Rows({"forward", "--device", "cpu", "--dtype", "fp32", "--model", kTiny,
                          "--shape", "64x64x5", "--compare", "quality", "--repeats", "1"});
  const std::string name = std::string(kTiny) + " 64x64x5 fp32, ";
  ASSERT_GE(rows.size(), 2u);
  for (size_t block = 0; block + 1 < rows.size(); ++block) {
    EXPECT_EQ(rows[block]["name"], absl::StrCat(name, "8 bits in block ", block, " alone"));
    EXPECT_GT(rows[block]["figures"]["apart_by"], 0);
  }
  EXPECT_EQ(rows.back()["name"], name + "quality");
  EXPECT_GT(rows.back()["figures"]["apart_by"], rows[0]["figures"]["apart_by"]);
  EXPECT_GT(rows.back()["seconds"], 0);
}

TEST_F(WanBenchTest, AFastJobSaysHowManyStepsItReused) {
  const auto rows = Rows({"job", "--device", "cpu", "--model", WAN_DEMO_MODEL, "--shape", "64x64x5",
                          "--quality", "fast", "--repeats", "1", "--warmup", "0"});
  EXPECT_THAT(rows.back()["name"], HasSubstr("20 steps, fast: whole job"));
  EXPECT_GE(rows.back()["figures"]["reused_steps"], 1);
}

TEST_F(WanBenchTest, AMeasurementMayLastAsLongAsIsAsked) {
  const auto rows = Rows({"forward", "--device", "cpu", "--dtype", "fp32", "--model", kTiny,
                          "--shape", "64x64x5", "--repeats", "1", "--seconds", "0.3"});
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_GE(rows[0]["calls"], 3) << "not the one call that --repeats asks for";
}

TEST_F(WanBenchTest, CeilingsOfAnotherDeviceAreRefused) {
  const std::string path = folder_.File("h200.json");
  std::FILE* const file = std::fopen(path.c_str(), "w");
  std::fputs(R"({"format": "wanserve-ceilings", "version": 1, "device": "NVIDIA H200",
                 "software": "", "measured_at": "", "seconds_each": 1,
                 "products_flop_per_second": {}, "attention_flop_per_second": {},
                 "memory_bytes_per_second": 1})",
             file);
  std::fclose(file);
  const auto result = Run({"forward", "--device", "cpu", "--model", kTiny, "--ceilings", path});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, HasSubstr("has ceilings of 'NVIDIA H200'; this device is"));
}

TEST_F(WanBenchTest, ComponentsHaveRows) {
  EXPECT_EQ(Rows({"attention", "--device", "cpu", "--tokens", "64", "--seconds", "0.001"}).size(),
            1u);
  // On a CPU there is one kernel, in fp32.
  const auto errors = Rows({"attention", "--device", "cpu", "--tokens", "64", "--errors"});
  ASSERT_EQ(errors.size(), 13u) << "normal inputs, outlier channels, wide logits; ten widths";
  for (const json& row : errors) {
    EXPECT_LT(row["figures"]["error"], 1e-5) << row;
    EXPECT_FALSE(row["figures"].contains("cudnn_error")) << row;
  }
  const auto vae = Rows({"vae", "--device", "cpu", "--precision", "fp32", "--model", kTiny,
                         "--shape", "64x64x5", "--repeats", "1"});
  EXPECT_GT(vae[0]["product_flop"], 1e6);
  Rows({"vae", "--device", "cpu", "--precision", "fp32", "--model", kTiny, "--shape", "64x64x5",
        "--repeats", "1", "--encode"});
  EXPECT_EQ(Rows({"text", "--device", "cpu", "--dtype", "fp32", "--model", kTiny}).size(), 2u);
  EXPECT_EQ(Rows({"lora", "--device", "cpu", "--dtype", "fp32", "--model", kTiny, "--rank", "4",
                  "--repeats", "1"})
                .size(),
            5u);
}

TEST_F(WanBenchTest, ComparisonsHaveOneRowEach) {
  for (const char* what : {"streaming", "guidance", "gate"}) {
    const auto rows = Rows({"forward", "--device", "cpu", "--dtype", "fp32", "--model", kTiny,
                            "--shape", "64x64x5", "--repeats", "1", "--compare", what});
    ASSERT_EQ(rows.size(), 1u);
    EXPECT_TRUE(rows[0]["figures"].contains("percent_more")) << rows[0];
    EXPECT_LT(rows[0]["figures"]["apart_by"], 1e-5) << rows[0];
  }
}

TEST_F(WanBenchTest, TheCheckOfLatentsIsHeldToItsShareOfAForward) {
  const std::vector<std::string> tiny = {
      "finite",  "--device",  "cpu", "--dtype",         "fp32", "--model", kTiny, "--shape",
      "64x64x5", "--repeats", "1",   "--check-seconds", "0.001"};
  const auto rows = Rows(tiny);
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[1]["name"], "synthetic:ti2v-tiny 64x64x5 fp32: check of the latents");
  EXPECT_EQ(rows[1]["figures"]["finite"], true);
  EXPECT_GT(rows[1]["figures"]["percent_of_forward"], 0);
  std::vector<std::string> limited = tiny;
  limited.insert(limited.end(), {"--at-most", "0.000001"});
  const auto result = Run(limited);
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, HasSubstr("the check takes"));
}

TEST_F(WanBenchTest, LoadReadsWhatItWrote) {
  const auto rows = Rows({"load", "--device", "cpu", "--dtype", "fp32", "--model", kTiny, "--file",
                          folder_.File("weights"), "--repeats", "1", "--threads", "1"});
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_GT(rows[0]["bytes"], 1e5);
}

TEST_F(WanBenchTest, JobsHaveARowForEachStageAndOneForTheWhole) {
  const auto rows = Rows({"job", "--device", "cpu", "--model", WAN_DEMO_MODEL, "--shape", "64x64x5",
                          "--steps", "2", "--repeats", "1", "--warmup", "0"});
  std::string names;
  for (const json& row : rows) names += row["name"].get<std::string>() + "\n";
  EXPECT_THAT(names, HasSubstr("Step_1_Inference"));
  EXPECT_THAT(names, HasSubstr("VAE_Decoding"));
  EXPECT_THAT(names, HasSubstr("whole job"));
  EXPECT_EQ(Rows({"stop", "--device", "cpu", "--model", WAN_DEMO_MODEL, "--shape", "64x64x5",
                  "--stop", "Step_0_Inference@0", "--at-most", "100"})
                .size(),
            1u);
  const auto memory = Rows({"memory", "--device", "cpu", "--model", WAN_DEMO_MODEL, "--shape",
                            "64x64x5", "--steps", "1"});
  EXPECT_EQ(memory.back()["figures"]["right"], true) << memory.back();
}

TEST_F(WanBenchTest, TheEncoderHasSpeedQualityAndMemory) {
  const auto rows = Rows({"encoder", "--shape", "64x64x5", "--rate", "1000"});
  ASSERT_EQ(rows.size(), 3u);
  for (const json& row : rows) {
    EXPECT_GT(row["figures"]["psnr_db"], 20) << row;
    EXPECT_GT(row["figures"]["ssim"], 0.8) << row;
    EXPECT_GT(row["figures"]["megabytes"], 0) << row;
  }
  const auto memory = Rows({"encoder", "--memory", "--kind", "mkv", "--shape", "64x64x5"});
  EXPECT_GT(memory[0]["figures"]["bytes_a_pixel"], 0);
}

TEST_F(WanBenchTest, AGroupIsComparedWithOneDevice) {
  const auto rows = Rows({"group", "--device", "cpu", "--device", "cpu", "--dtype", "fp32",
                          "--model", kTiny, "--shape", "64x64x5", "--shape", "96x64x5",
                          "--warmup-seconds", "0", "--repeats", "1", "--exchange", "1"});
  ASSERT_EQ(rows.size(), 9u);
  // Of each video first what one device takes for a forward and a step, then what two take.
  EXPECT_EQ(rows[0]["name"], "synthetic:ti2v-tiny 64x64x5 fp32, forward, 1 device");
  EXPECT_EQ(rows[7]["name"], "synthetic:ti2v-tiny 96x64x5 fp32, guided step, 2 devices");
  for (const size_t together : {4, 5, 6, 7}) {
    EXPECT_GT(rows[together]["figures"]["speedup"], 0) << rows[together];
    EXPECT_LT(rows[together]["figures"]["relative_error"], 1e-5) << rows[together];
  }
  EXPECT_EQ(rows[5]["figures"]["equal"], true) << "each device has a text";
  EXPECT_GT(rows[8]["figures"]["received_bytes_per_second_each"], 0);
}

TEST_F(WanBenchTest, AJobOfAGroupIsKept) {
  const std::string kept = folder_.File("latents");
  Rows({"job", "--device", "cpu", "--device", "cpu", "--model", WAN_DEMO_MODEL, "--shape",
        "64x64x5", "--steps", "1", "--repeats", "1", "--warmup", "0", "--latents-only", "--keep",
        kept});
  EXPECT_GT(e2e::ReadWholeFile(kept).size(), 100u);
}

TEST_F(WanBenchTest, TheQueueHasRows) {
  const auto rows = Rows({"queue", "--data-dir", folder_.File("data"), "--queued", "500", "--calls",
                          "100", "--at-most", "1000", "--restart-at-most", "100"});
  EXPECT_EQ(rows.size(), 5u);
}

TEST_F(WanBenchTest, ALimitThatIsNotKeptEndsWithOne) {
  const auto result = Run({"lora", "--device", "cpu", "--dtype", "fp32", "--model", kTiny, "--rank",
                           "4", "--repeats", "1", "--at-most", "0.000001"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, HasSubstr("a switch took"));
}

TEST_F(WanBenchTest, AnAttentionThatNoShapeHasIsNamed) {
  const auto result = Run({"attention", "--device", "cpu", "--only", "1080p"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, HasSubstr("--only is '1080p'"));
}

TEST_F(WanBenchTest, ATextThatIsNoShapeIsNamed) {
  const auto result = Run({"forward", "--device", "cpu", "--model", kTiny, "--shape", "64x64"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, HasSubstr("--shape is '64x64', expected WIDTHxHEIGHTxFRAMES"));
}

// It would be rounded down to a smaller video, whose figures the row would give under its name.
TEST_F(WanBenchTest, AShapeThatTheModelDoesNotTakeIsRefused) {
  const auto error = [&](const std::string& command, const std::string& shape) {
    const auto result = Run({command, "--device", "cpu", "--model", kTiny, "--shape", shape});
    EXPECT_NE(result.exit_code, 0) << command << " " << shape;
    return result.err;
  };
  EXPECT_THAT(error("forward", "64x80x5"),
              HasSubstr("--shape is 64x80x5; the height must be a multiple of 32, for example 64 "
                        "or 96"));
  EXPECT_THAT(error("vae", "72x64x5"),
              HasSubstr("the width must be a multiple of 16, for example"));
  EXPECT_THAT(error("vae", "64x64x7"),
              HasSubstr("the number of frames must be 4n+1, for example 5 or 9"));
}

TEST_F(WanBenchTest, ATableIsMadeForPeople) {
  const auto result = Run({"text", "--device", "cpu", "--dtype", "fp32", "--model", kTiny});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_THAT(result.out, HasSubstr("| what | time | rate |"));
  EXPECT_THAT(result.out, HasSubstr("| synthetic:ti2v-tiny 512 tokens fp32 |"));
}

}  // namespace
}  // namespace wan
