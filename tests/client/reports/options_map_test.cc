// The options of the optimization map: which pairs of runs measure which of them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "client/reports/render.h"
#include "client/reports/sections.h"
#include "client/reports/verdict.h"
#include "tests/client/reports/synthetic_report.h"

namespace wan::client::reports {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using wan::v1::JobReport;

// A run of so many seconds whose report `change` made another one.
MeasuredRun Variant(const std::string& variant, double seconds,
                    const std::function<void(JobReport&)>& change) {
  MeasuredRun run{"case", variant, 1, GpuReport(), std::nullopt};
  change(run.report);
  run.report.mutable_stages(0)->set_seconds(seconds);
  if (!variant.empty()) run.difference = ResultDifference{true, 0.0, false};
  return run;
}

MeasuredRun Case(double seconds) {
  return Variant("", seconds, [](JobReport&) {});
}

// "TF32, saved 3.00 s" of each pair of the case.
std::vector<std::string> Measured(const std::vector<MeasuredRun>& runs) {
  const std::vector<MeasuredRun> twice = Twice(runs);
  std::vector<std::string> measured;
  for (const MapPair& pair : MapPairs(twice, twice.front().name)) {
    const Verdict verdict =
        Judge(MeasuredRuns(*pair.before, twice), MeasuredRuns(*pair.after, twice));
    measured.push_back(std::string(pair.option) + ", saved " + CellText(CellOf(verdict.saved)) +
                       " s");
  }
  return measured;
}

auto Autoencoder(wan::v1::VaePrecision precision) {
  return [precision](JobReport& report) { report.mutable_request()->set_vae_precision(precision); };
}

auto Residency(int component, const char* policy) {
  return [=](JobReport& report) {
    report.mutable_plan()->mutable_components(component)->set_residency(policy);
  };
}

TEST(OptionsMapTest, AQualityIsAnOption) {
  const auto quality = [](wan::v1::Quality value) {
    return [value](JobReport& report) { report.mutable_request()->set_quality(value); };
  };
  EXPECT_THAT(
      Measured({Case(50), Variant("high", 30, quality(wan::v1::QUALITY_HIGH)),
                Variant("fast", 20, quality(wan::v1::QUALITY_FAST))}),
      ElementsAre("8 bits, reused steps, saved 20.00 s", "8 bits, reused steps, saved 30.00 s",
                  "8 bits, reused steps, saved 10.00 s"));
}

// `bench seeds --mode both` compares fp32 with fp16, which is no TF32.
TEST(OptionsMapTest, Fp32AndFp16AreThePrecisionAndNoTf32) {
  EXPECT_THAT(
      Measured({Case(20), Variant("original", 50, Autoencoder(wan::v1::VAE_PRECISION_FP32))}),
      ElementsAre("Precision, saved 30.00 s"));
}

TEST(OptionsMapTest, Tf32IsMeasuredByTwoVariants) {
  EXPECT_THAT(
      Measured({Case(20), Variant("original", 50, Autoencoder(wan::v1::VAE_PRECISION_FP32)),
                Variant("tf32", 30, Autoencoder(wan::v1::VAE_PRECISION_TF32))}),
      ElementsAre("TF32, saved 20.00 s", "Precision, saved 30.00 s", "Precision, saved 10.00 s"));
}

TEST(OptionsMapTest, EveryOptionHasItsPair) {
  const auto label = [](const char* value) {
    return [value](JobReport& report) {
      (*report.mutable_request()->mutable_labels())[kWarmLabel] = value;
    };
  };
  EXPECT_THAT(Measured({Case(20), Variant("batched", 19,
                                          [](JobReport& report) {
                                            report.mutable_plan()->set_batched_guidance(true);
                                          })}),
              ElementsAre("Batched guidance, saved 1.00 s"));
  EXPECT_THAT(Measured({Case(20), Variant("graphs", 18,
                                          [](JobReport& report) {
                                            report.mutable_plan()->set_record_forwards(true);
                                          })}),
              ElementsAre("Compiling, graphs, saved 2.00 s"));
  EXPECT_THAT(Measured({Case(20), Variant("host", 25, Residency(1, "host"))}),
              ElementsAre("No offloading, saved 5.00 s"));
  EXPECT_THAT(Measured({Case(20), Variant("cpu", 29, Residency(0, "cpu"))}),
              ElementsAre("Text encoder on the CPU, saved -9.00 s"));
  EXPECT_THAT(Measured({Variant("", 20, label("yes")), Variant("cold", 24, label("no"))}),
              ElementsAre("Warm-up, saved 4.00 s"));
  EXPECT_THAT(Measured({Case(20), Variant("fp32", 90,
                                          [](JobReport& report) {
                                            report.set_dtype("fp32");
                                            Autoencoder(wan::v1::VAE_PRECISION_FP32)(report);
                                          })}),
              ElementsAre("Precision, saved 70.00 s"));
}

// Three policies are three pairs, each from the farther place to the nearer one.
TEST(OptionsMapTest, OffloadPoliciesArePairsOfTheirOwn) {
  EXPECT_THAT(
      Measured({Case(20), Variant("host", 21, Residency(1, "host")),
                Variant("stream", 24, [](JobReport& report) { Residency(1, "stream")(report); })}),
      ElementsAre("No offloading, saved 1.00 s", "No offloading, saved 4.00 s",
                  "No offloading, saved 3.00 s"));
}

TEST(OptionsMapTest, TwoOptionsAtOnceMeasureNeither) {
  EXPECT_THAT(Measured({Case(20), Variant("both", 50,
                                          [](JobReport& report) {
                                            Autoencoder(wan::v1::VAE_PRECISION_FP32)(report);
                                            Residency(1, "host")(report);
                                          })}),
              IsEmpty());
  EXPECT_THAT(Measured({Case(20), Variant("other card", 50,
                                          [](JobReport& report) {
                                            Autoencoder(wan::v1::VAE_PRECISION_FP32)(report);
                                            report.mutable_system()->mutable_gpu()->set_name("B");
                                          })}),
              IsEmpty());
}

// scripts/gpu/report_options compares with two servers; these differ from each other in two
// options.
TEST(OptionsMapTest, ServersWithoutABatchAndWithoutGraphsMeasureOneOptionEach) {
  const auto plan = [](bool batched, bool recorded) {
    return [=](JobReport& report) {
      report.mutable_plan()->set_batched_guidance(batched);
      report.mutable_plan()->set_record_forwards(recorded);
    };
  };
  const std::vector<MeasuredRun> runs =
      Twice({Variant("", 20, plan(true, true)), Variant("split", 21, plan(false, true)),
             Variant("no graphs", 24, plan(true, false))});
  EXPECT_THAT(Measured(runs),
              ElementsAre("Batched guidance, saved 1.00 s", "Compiling, graphs, saved 4.00 s"));
  EXPECT_THAT(RenderMarkdown(OptionsMap(runs, {})),
              HasSubstr("| Batched guidance | guidance\\_batching | one batch | 1.00 |"));
}

TEST(BeforeAndAfterTest, SaysWhatDiffersAndWhetherTheResultDoes) {
  MeasuredRun offloaded = Variant("host", 25, Residency(1, "host"));
  for (auto& stage : *offloaded.report.mutable_stages()) {
    if (stage.has_gpu_memory_peak_bytes()) {
      stage.set_gpu_memory_peak_bytes(stage.gpu_memory_peak_bytes() - 9 * kGiB);
    }
  }
  EXPECT_THAT(
      RenderMarkdown(OptionsReport(Twice({Case(20), offloaded}), {})),
      HasSubstr("| case | host | transformer=resident | transformer=host | 20.00 | 2: 20.00 to "
                "20.00 s | 25.00 | 2: 25.00 to 25.00 s | -5.00 | 0.80 | slower | 36.00 | 27.00 | "
                "latents: same bits; frames: other bits |"));
}

// A pair with the case is in the line of its variant; two variants have a line of their own.
TEST(BeforeAndAfterTest, NoPairStandsTwice) {
  const std::vector<MeasuredRun> runs =
      Twice({Case(20), Variant("original", 50, Autoencoder(wan::v1::VAE_PRECISION_FP32)),
             Variant("tf32", 30, Autoencoder(wan::v1::VAE_PRECISION_TF32))});
  const Section before_after = OptionsReport(runs, {}).sections.front();
  std::vector<std::string> options;
  for (const auto& row : std::get<Table>(before_after.blocks.front()).rows) {
    options.push_back(CellText(row[1]));
  }
  EXPECT_THAT(options, ElementsAre("original", "tf32", "TF32"));
  EXPECT_THAT(RenderMarkdown(before_after),
              HasSubstr("| case | TF32 | original: vae\\_precision fp32 | tf32: vae\\_precision "
                        "tf32 | 50.00 |"));
}

TEST(OptionsMapTest, ASavingIsThatOfItsCase) {
  std::vector<MeasuredRun> runs = Twice(
      {Case(20), Variant("original", 50, Autoencoder(wan::v1::VAE_PRECISION_FP32)), Case(30)});
  runs[4].name = runs[5].name = "second";
  EXPECT_THAT(RenderMarkdown(OptionsMap(runs, {})),
              HasSubstr("| transformer bf16, autoencoder fp16 | 30.00 (case) |"));
}

TEST(OptionsMapTest, CasesShareAMap) {
  std::vector<MeasuredRun> runs = {Case(20), Case(30)};
  runs[1].name = "second";
  std::string text = RenderMarkdown(OptionsMap(runs, {}));
  EXPECT_THAT(text, HasSubstr("| No offloading | residency\\_policies | all resident |"));
  EXPECT_THAT(text, HasSubstr("| Precision | dtype, vae\\_precision | transformer bf16, "
                              "autoencoder fp16 |"));
  EXPECT_THAT(text, HasSubstr("No two runs of a case differ in one of these options alone"));
  Residency(0, "cpu")(runs[1].report);
  text = RenderMarkdown(OptionsMap(runs, {}));
  EXPECT_THAT(text, HasSubstr("| all resident (case); text\\_encoder=cpu (second) |"));
}

}  // namespace
}  // namespace wan::client::reports
