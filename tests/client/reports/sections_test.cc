#include "client/reports/sections.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include "client/reports/render.h"
#include "client/reports/report.h"
#include "tests/client/reports/synthetic_report.h"

namespace wan::client::reports {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

MeasuredRun Named(const std::string& name, wan::v1::JobReport report,
                  const std::string& variant = "") {
  return {name, variant, 1, std::move(report), std::nullopt};
}

// Without the ends of lines, which wrap at widths of no concern here.
std::string Unwrapped(std::string text) {
  std::replace(text.begin(), text.end(), '\n', ' ');
  const auto both_spaces = [](char a, char b) { return a == ' ' && b == ' '; };
  text.erase(std::unique(text.begin(), text.end(), both_spaces), text.end());
  return text;
}

// As it stands in a document.
std::string Text(const Section& section) {
  return RenderText(Document{"Document", "document", {}, {section}});
}

Ceilings TestCeilings() { return *ParseCeilings(kCeilingsJson, "test"); }

TEST(StageTableTest, FoldsWhatIsZeroAndLeavesOutWhatNothingMeasured) {
  const Table table = StageTable(GpuReport());
  std::vector<std::string> titles, stages;
  for (const Column& column : table.columns) titles.push_back(column.title);
  for (const auto& row : table.rows) stages.push_back(CellText(row[0]));
  EXPECT_THAT(titles, ::testing::ElementsAre("Stage", "Time (s)", "GPU Mem (GiB)", "SM Act (%)",
                                             "Comp Load"));
  EXPECT_EQ(stages.front(), "Model_Initialization *");
  EXPECT_EQ(stages.back(), "Total_Execution");
  EXPECT_THAT(stages, Not(::testing::Contains("Step_0_Loading")));
  EXPECT_THAT(table.note, HasSubstr("not part of Total_Execution"));
  EXPECT_THAT(table.note, HasSubstr("4 loadings of less than 5 ms, 0.002 s together"));
}

TEST(StageTableTest, SaysWhichStepsReusedBlocks) {
  wan::v1::JobReport report = GpuReport();
  EXPECT_THAT(StageTable(report).note, Not(HasSubstr("reused")));
  for (wan::v1::StageReport& stage : *report.mutable_stages()) {
    if (stage.stage() != "Step_2_Inference") continue;
    stage.clear_parts();
    AddPart(stage, "reuse_conditional", 0, 0.1, 1e12);
    AddPart(stage, "reuse_unconditional", 0.1, 0.1, 1e12);
  }
  EXPECT_THAT(StageTable(report).note,
              HasSubstr("These steps reused the blocks of an earlier one: 2."));
  EXPECT_THAT(RenderMarkdown(PerformanceAnalysis({Named("a", report)})),
              HasSubstr("| S2 | 30.00 | 31.00 | reuses blocks |"));
}

TEST(BenchmarkReportTest, HasTheSeedsSections) {
  const std::string text = Text(BenchmarkReport({Named("preview", GpuReport())}, {}));
  EXPECT_THAT(text, HasSubstr("Case: preview"));
  EXPECT_THAT(text, HasSubstr("[Stage Breakdown]"));
  EXPECT_THAT(text, HasSubstr("[Inference Statistics]"));
  EXPECT_THAT(text, HasSubstr("[Model Component Memory Profile]"));
  EXPECT_THAT(text, HasSubstr("[Performance Analysis]"));
  EXPECT_THAT(text, HasSubstr("Bottlenecks detected, the largest saving first: Step_*_Inference"));
  EXPECT_THAT(text, HasSubstr("[Resource Usage Overview]"));
  // The limit is that of the card in the machine.
  EXPECT_THAT(text, HasSubstr("The job's peak was 90.0 % of the card's memory."));
}

TEST(BenchmarkReportTest, EachCaseHasALineWithItsSpread) {
  MeasuredRun slower = Named("preview", GpuReport());
  slower.number = 2;
  slower.report.mutable_stages(0)->set_seconds(24);
  const std::string markdown =
      RenderMarkdown(BenchmarkReport({Named("preview", GpuReport()), slower}, {}));
  // Cold adds the 43.78 s of the loading.
  EXPECT_THAT(markdown, HasSubstr("| Case | Res | Frames | Steps | Offload | Runs | "
                                  "Time(s) | Cold(s) | s/step | Mem(GiB) | SM(%) | Load |"));
  EXPECT_THAT(markdown, HasSubstr("| preview | 1280\\*704 | 100 | 4 | False | 2: 20.00 to "
                                  "24.00 s | 22.00 | 65.78 | 3.00 | 36.00 | 80.0 | 1600 |"));
  EXPECT_THAT(markdown, HasSubstr("- preview: 5.60 of 20.00 s by guidance\\_scale 1 "
                                  "(Step\\_\\*\\_Inference, the forward without the prompt)"));
}

// Others have published seconds for cases with these names.
TEST(BenchmarkReportTest, APublishedTimeIsBesideTheSameCase) {
  MeasuredRun run = Named("02_5B_Efficiency_Mode_704p", GpuReport());
  const auto markdown = [&] { return RenderMarkdown(BenchmarkReport({run}, {})); };
  EXPECT_THAT(markdown(), Not(HasSubstr("Published"))) << "100 frames in 4 steps";
  run.report.mutable_request()->set_num_frames(81);
  run.report.mutable_request()->set_steps(10);
  EXPECT_THAT(markdown(), HasSubstr("| Cold(s) | Published(s) |"));
  EXPECT_THAT(markdown(), HasSubstr("| 63.78 | 151.58 |"));
  EXPECT_THAT(markdown(), HasSubstr("compare it with Cold"));
  MeasuredRun other = run;
  other.report.mutable_plan()->add_components()->set_name("transformer_2");
  EXPECT_THAT(RenderMarkdown(BenchmarkReport({other}, {})), Not(HasSubstr("Published")))
      << "a model with two experts";
  run.name = "02_Efficiency_Quality_704p";
  run.report.mutable_request()->set_num_frames(161);
  run.report.mutable_request()->set_steps(30);
  EXPECT_THAT(markdown(), HasSubstr("| 63.78 | 593.45 |"));
}

TEST(BenchmarkReportTest, TensorCoresAreBesideTheSms) {
  MeasuredRun run = Named("preview", GpuReport());
  run.report.mutable_stages(0)->set_tensor_activity_percent(61.25);
  EXPECT_THAT(RenderMarkdown(BenchmarkReport({run}, {})), HasSubstr("| 80.0 | 61.2 | 1600 |"));
}

TEST(BenchmarkReportTest, EachCaseShowsItsFrames) {
  MeasuredRun first = Named("first", GpuReport()), second = Named("second", GpuReport());
  first.frames = {"a", "b"};
  // The median of the case is another run, which has none.
  MeasuredRun quicker = Named("first", GpuReport());
  quicker.report.mutable_stages(0)->set_seconds(15);
  quicker.number = 2;
  MeasuredRun variant = Named("second", GpuReport(), "original");
  variant.frames = {"c"};
  const Section section = BenchmarkReport({first, quicker, variant, second}, {});
  int strips = 0;
  for (const Block& block : section.blocks) {
    const auto* const pictures = std::get_if<Pictures>(&block);
    if (pictures == nullptr) continue;
    ++strips;
    EXPECT_EQ(pictures->title, "Frames of first");
    EXPECT_EQ(pictures->jpegs, first.frames);
  }
  EXPECT_EQ(strips, 1);
}

TEST(BenchmarkReportTest, ActivationsAreMeasured) {
  const std::vector<ComponentMemory> memories = ComponentMemories(GpuReport());
  ASSERT_EQ(memories.size(), 3u);
  EXPECT_EQ(memories[1].component, "DiT Transformer");
  EXPECT_DOUBLE_EQ(*memories[1].peak, 36.0 * kGiB);
  EXPECT_DOUBLE_EQ(*memories[1].weights, 30.0 * kGiB);
  // 6 GiB beside the weights, one of which is the planned workspace.
  EXPECT_DOUBLE_EQ(*memories[1].activations, 5.0 * kGiB);
  EXPECT_DOUBLE_EQ(*memories[1].workspace, 1.0 * kGiB);
  EXPECT_DOUBLE_EQ(*memories[1].planned_activations, 7.0 * kGiB);
  EXPECT_EQ(memories[2].activations, std::nullopt) << "nothing tells the decoder's weights";
}

TEST(MemoryTelemetryTest, AddsUpToTheCard) {
  wan::v1::JobReport report = GpuReport();
  for (wan::v1::StageReport& stage : *report.mutable_stages()) {
    if (stage.stage() != "Step_0_Inference") continue;
    stage.set_gpu_weights_peak_bytes(31 * kGiB);
    stage.set_gpu_memory_reserved_peak_bytes(37 * kGiB);
    stage.set_gpu_memory_used_bytes(39 * kGiB);
  }
  // 36 GiB at the peak: 30 of this model's weights, 1 of another's, 4 of activations, 1 workspace.
  EXPECT_THAT(
      RenderMarkdown(MemoryTelemetry(report)),
      HasSubstr("| GPU memory in Step\\_0\\_Inference | GiB |\n| :--- | ---: |\n"
                "| Weights of text\\_encoder | 10.00 |\n| Weights of transformer | 10.00 |\n"
                "| Weights of vae | 10.00 |\n| Weights of other models | 1.00 |\n"
                "| Activations | 4.00 |\n"
                "| Workspace of the matrix libraries, as planned | 1.00 |\n"
                "| Kept by the allocator for later | 1.00 |\n"
                "| CUDA's context and other processes | 2.00 |\n"
                "| Free | 1.00 |\n| NVIDIA Test has | 40.00 |\n"));
  EXPECT_EQ(ComponentMemories(report)[1].note, "transformer: bf16, resident")
      << "its size is in the sum";
  report.mutable_plan()->mutable_components(1)->set_residency("host");
  EXPECT_THAT(RenderMarkdown(MemoryTelemetry(report)), HasSubstr("| Weights | 31.00 |\n"))
      << "which of them were there is not known";
  EXPECT_EQ(ComponentMemories(report)[1].note, "transformer: 10.00 GiB bf16, host");
}

TEST(MemoryTelemetryTest, WithoutAGpuItIsTheMachines) {
  wan::v1::JobReport report;
  report.mutable_system()->set_memory_total_bytes(24 * kGiB);
  EXPECT_THAT(RenderMarkdown(MemoryTelemetry(report)), HasSubstr("No memory was measured."));
  wan::v1::StageReport& step = AddStage(report, "Step_0_Inference", 0, 1);
  step.set_process_memory_peak_bytes(2 * kGiB);
  step.set_system_memory_used_bytes(5 * kGiB);
  EXPECT_THAT(RenderMarkdown(MemoryTelemetry(report)),
              HasSubstr("| The server process | 2.00 |\n| Everything else | 3.00 |\n"
                        "| Free | 19.00 |\n| The machine or its container has | 24.00 |\n"));
}

TEST(BenchmarkReportTest, AWorkspaceIsNoMoreThanWhatWasMeasured) {
  wan::v1::JobReport report = GpuReport();
  for (auto& planned : *report.mutable_plan()->mutable_stages()) {
    planned.set_workspace_bytes(8 * kGiB);
  }
  const std::vector<ComponentMemory> memories = ComponentMemories(report);
  EXPECT_DOUBLE_EQ(*memories[1].workspace, 6.0 * kGiB);
  EXPECT_DOUBLE_EQ(*memories[1].activations, 0);
  // Without a plan nothing tells it from the activations.
  report.clear_plan();
  EXPECT_EQ(ComponentMemories(report)[1].workspace, std::nullopt);
  EXPECT_DOUBLE_EQ(*ComponentMemories(report)[1].activations, 6.0 * kGiB);
  EXPECT_THAT(RenderMarkdown(BenchmarkReport({Named("a", report)}, {})),
              HasSubstr("the matrix libraries' workspace included"));
}

wan::v1::JobReport GroupReport() {
  wan::v1::JobReport report = GpuReport();
  report.set_device("cuda:0,1");
  for (const char* const device : {"cuda:0", "cuda:1"}) {
    wan::v1::DeviceShare& share = *report.add_devices();
    share.set_device(device);
    share.set_name("NVIDIA Test");
    share.set_gpu_memory_peak_bytes(36 * kGiB);
    share.set_energy_joules(7200);
    share.set_exchanged_bytes(kGiB / 2);
    share.set_exchange_seconds(0.5);
  }
  report.mutable_devices(1)->set_temperature_peak_celsius(71);
  return report;
}

TEST(DeviceTableTest, HasALineForEachDeviceOfTheGroup) {
  const Table table = DeviceTable(GroupReport());
  std::vector<std::string> titles, second;
  for (const Column& column : table.columns) titles.push_back(column.title);
  for (const Cell& cell : table.rows.at(1)) second.push_back(CellText(cell));
  EXPECT_THAT(titles, ::testing::ElementsAre("Device", "Name", "Peak Mem (GiB)", "Energy (Wh)",
                                             "Temp (C)", "Sent (GiB)", "Waited (s)", "Waited (%)"));
  EXPECT_THAT(second, ::testing::ElementsAre("cuda:1", "NVIDIA Test", "36.00", "2.0", "71", "0.500",
                                             "0.500", "2.5"));
  EXPECT_EQ(CellText(table.rows[0][4]), "-") << "nobody measured the first one's";
}

TEST(DeviceTableTest, IsInEveryFormat) {
  const MeasuredRun run = Named("a", GroupReport());
  const Document document = BuildReport({run}, {}, {ReportPart::kBenchmark});
  EXPECT_THAT(RenderText(document),
              AllOf(HasSubstr("[Device Shares]"), HasSubstr("cuda:1  NVIDIA Test")));
  EXPECT_THAT(RenderMarkdown(document), HasSubstr("| cuda:1 | NVIDIA Test | 36.00 |"));
  EXPECT_THAT(RenderJson(document, {run}), HasSubstr("\"exchanged_gib\": 0.5"));
  EXPECT_THAT(RenderHtml(document), HasSubstr("<td>cuda:1</td>"));
  EXPECT_THAT(RenderText(BuildTables({run})), HasSubstr("cuda:1  NVIDIA Test"));
  EXPECT_THAT(RenderText(BuildTables({run, Named("b", GpuReport())})),
              HasSubstr("cuda:1  NVIDIA Test"));
  EXPECT_THAT(RenderText(BuildTables({Named("b", GpuReport())})), Not(HasSubstr("cuda:1")));
  EXPECT_THAT(RenderText(BuildReport({Named("b", GpuReport())}, {}, {})),
              Not(HasSubstr("[Device Shares]")));
}

TEST(BenchmarkReportTest, SeveralJobsAreOneTable) {
  wan::v1::JobReport cold = GpuReport();
  cold.mutable_stages(0)->set_seconds(30);
  MeasuredRun second = Named("a", cold);
  second.number = 2;
  const std::vector<MeasuredRun> runs = {Named("a", GpuReport()), second, Named("b", GpuReport())};
  EXPECT_EQ(SummaryTable(runs).rows.size(), 3u);
  const std::vector<const MeasuredRun*> cases = Representatives(runs);
  ASSERT_EQ(cases.size(), 2u);
  EXPECT_EQ(TotalSeconds(cases[0]->report), 20) << "the lower median of two";
  EXPECT_THAT(RenderMarkdown(BenchmarkReport(runs, {})),
              HasSubstr("| 2: 20.00 to 30.00 s | 25.00 |"));
}

TEST(BenchmarkReportTest, SaysWhatNobodySaid) {
  wan::v1::JobReport report;
  report.set_device("cuda:0");
  std::ifstream file(WAN_SERIES_DIR "/03_Max_Quality_704p.txt");
  double start = 0;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("#")) continue;
    std::istringstream fields(line);
    int step = 0;
    double seconds = 0, memory = 0, cpu = 0, system = 0, sm = 0;
    fields >> step >> seconds >> memory >> cpu >> system >> sm;
    auto& stage = AddStage(report, absl::StrCat("Step_", step, "_Inference"), start, seconds);
    stage.set_sm_activity_percent(sm);
    stage.set_cpu_percent(cpu);
    start += seconds;
  }
  const std::string text = Unwrapped(RenderMarkdown(BenchmarkReport({Named("03", report)}, {})));
  EXPECT_THAT(
      text,
      HasSubstr(
          "Steps 13 to 45 took 15.05 s each instead of 6.89 s (+118 %); it began within step 12."));
  EXPECT_THAT(text, HasSubstr("SM activity was full before and after"));
  EXPECT_THAT(text, HasSubstr("no samples of clocks and their limits, power, and other processes"));
}

TEST(PerformanceAnalysisTest, HasTheSeedsSections) {
  const std::string text = Text(PerformanceAnalysis({Named("preview", GpuReport())}));
  for (const char* title :
       {"System Context\n====", "[Executive Summary]", "[Detailed Pipeline Latency]",
        "[Memory Telemetry]", "[Execution Trace Analysis]"}) {
    EXPECT_THAT(text, HasSubstr(title));
  }
  EXPECT_THAT(text, HasSubstr("NVIDIA Test (40.0 GiB)"));
  // 100 frames in 20 s, and in the 16 s of steps and decoding.
  EXPECT_THAT(text, HasSubstr("5.00 frames/s (4.51 MPx/s) over Total_Execution"));
  EXPECT_THAT(text, HasSubstr("6.25 frames/s over the steps and the decoding alone"));
  EXPECT_THAT(text, HasSubstr("- First Step"));
  EXPECT_THAT(text, Not(HasSubstr("0.0%")));
}

TEST(PerformanceAnalysisTest, CasesOfOneMachineShareItsContext) {
  MeasuredRun other = Named("second", GpuReport());
  const auto contexts = [&] {
    const std::string text = Text(PerformanceAnalysis({Named("first", GpuReport()), other}));
    size_t count = 0;
    for (size_t at = text.find("System Context"); at != std::string::npos;
         at = text.find("System Context", at + 1)) {
      ++count;
    }
    return count;
  };
  EXPECT_EQ(contexts(), 1u);
  other.report.mutable_system()->mutable_gpu()->set_name("NVIDIA Other");
  EXPECT_EQ(contexts(), 2u);
}

TEST(ExecutionTraceTest, StepsThatDifferInNothingShareALine) {
  wan::v1::JobReport report;
  for (int i = 0; i < 8; ++i) {
    auto& step = AddStage(report, absl::StrCat("Step_", i, "_Inference"), i, i < 4 ? 1 : 2);
    step.set_power_watts(i < 4 ? 600 + i : 700);
    if (i == 6) step.add_throttle_reasons("power cap");
  }
  // Means over the steps of a line; the throttled one has its own.
  EXPECT_THAT(RenderMarkdown(ExecutionTrace(report)),
              HasSubstr("| S0 to S3 | 602 | - |\n| S4, S5, S7 | 700 | - |\n"
                        "| S6 | 700 | power cap |\n"));
}

TEST(PerformanceAnalysisTest, EnergyIsInJoulesAsItsKeySays) {
  wan::v1::JobReport report = GpuReport();
  report.mutable_stages(0)->set_energy_joules(9000);
  const std::string json =
      RenderJson(Document{"", "", {}, {PerformanceAnalysis({Named("a", report)})}}, {});
  EXPECT_THAT(json, HasSubstr("\"energy_joules\": 9000.0"));
  EXPECT_THAT(json, HasSubstr("J of the card (2.5 Wh, mean 450 W)"));
}

TEST(BottleneckAnalysisTest, WithCeilings) {
  const Ceilings ceilings = TestCeilings();
  const Section section = BottleneckAnalysis({Named("preview", GpuReport())}, {ceilings});
  const std::string text = Text(section);
  EXPECT_THAT(text, HasSubstr("forward_unconditional"));
  EXPECT_THAT(text, HasSubstr("[Recommendations]\n1. Guidance computes each step twice"));
  EXPECT_THAT(text, HasSubstr("NVIDIA Test, 2026-01-01T00:00:00Z"));
  // A forward of 1.4 s, which cannot take less than 0.9 s.
  EXPECT_THAT(
      text,
      HasSubstr("one forward   500.000         1.400   357.14         0.900              1.56"));
  const std::vector<const Chart*> charts = ChartsOf(section);
  ASSERT_EQ(charts.size(), 1u);
  EXPECT_EQ(charts[0]->key, "roofline");
}

// A block of 125 ms for two texts, in the second step.
wan::v1::JobReport ProfiledReport() {
  wan::v1::JobReport report = GpuReport();
  for (wan::v1::StageReport& stage : *report.mutable_stages()) {
    if (stage.stage() != "Step_1_Inference") continue;
    wan::v1::BlockProfile& profile = *stage.mutable_block_profile();
    profile.set_part("forward");
    profile.set_block(4);
    profile.set_texts(2);
    profile.set_seconds(0.25);
    const auto add = [&](const char* name, const char* operator_class, double seconds, double flops,
                         double bytes) {
      wan::v1::BlockOperator& one = *profile.add_operators();
      one.set_name(name);
      one.set_operator_class(operator_class);
      one.set_seconds(seconds);
      if (flops > 0) one.set_flops(flops);
      if (bytes > 0) one.set_bytes(bytes);
    };
    add("self_attention", "self_attention", 0.1, 40e12, 2e9);
    add("feed_forward_in_gelu", "feed_forward", 0.07, 30e12, 2e9);
    add("feed_forward_out", "feed_forward", 0.05, 30e12, 2e9);
    add("next_weights", "weights", 0.02, 0, 0);
    add("feed_forward_residual_norm", "elementwise", 0.01, 0, 10e9);
  }
  return report;
}

TEST(BottleneckAnalysisTest, AProfileStandsBesideThePlan) {
  const Ceilings ceilings = TestCeilings();
  const Section section = BottleneckAnalysis({Named("preview", ProfiledReport())}, {ceilings});
  // Of one text: 50 ms, 40 % of the block; at least 20 TFLOP at 500 TFLOP/s.
  const std::string markdown = RenderMarkdown(section);
  EXPECT_THAT(markdown, HasSubstr("| self\\_attention | 20000.00 | 1000.0 | 50.000 | 40.0 | "
                                  "40.000 | 1.25 |"));
  EXPECT_THAT(markdown, HasSubstr("| waiting for streamed weights | - | - | 10.000 | 8.0 |"));
  // At least 40 ms and 50 ms: the passes over memory are not counted.
  EXPECT_THAT(markdown, HasSubstr("| one block | 50001.00 | 8000.0 | 125.000 | 100.0 | "
                                  "90.000 | 1.39 |"));
  EXPECT_THAT(
      Unwrapped(markdown),
      HasSubstr("measured in Step\\_1\\_Inference, forward, block 4 of 0 to 9, and divided by "
                "its two texts."));
  // Each operator as it ran, for both texts.
  EXPECT_THAT(
      markdown,
      HasSubstr("| feed\\_forward\\_out | feed\\_forward | 50.000 | 600.00 | 40.00 | 1.00 |"));
  const std::vector<const Chart*> charts = ChartsOf(section);
  ASSERT_EQ(charts.size(), 1u);
  std::vector<std::string> works;
  for (const auto& work : std::get<RooflineChart>(charts[0]->data).works)
    works.push_back(work.name);
  EXPECT_THAT(works, ::testing::ElementsAre("one forward", "self_attention", "feed_forward"));
  EXPECT_THAT(Unwrapped(Text(BottleneckAnalysis({Named("preview", GpuReport())}, {ceilings}))),
              HasSubstr("'wanctl generate --profile'"));
}

TEST(BottleneckAnalysisTest, TheDecodersFlopsAreComparedWithTheCard) {
  const Ceilings ceilings = TestCeilings();
  wan::v1::JobReport report = GpuReport();
  auto& planned = *report.mutable_plan()->add_stages();
  planned.set_stage("VAE_Decoding");
  planned.set_flops(1200e12);
  // 4 s at fp16; at least 2 s at 600 TFLOP/s.
  EXPECT_THAT(RenderMarkdown(BottleneckAnalysis({Named("preview", report)}, {ceilings})),
              HasSubstr("| VAE\\_Decoding | 1200.000 | 4.000 | 300.00 | 2.000 | 2.00 |"));
}

TEST(BottleneckAnalysisTest, WithoutCeilingsSaysHowToGetThem) {
  const std::string text = Text(BottleneckAnalysis({Named("preview", GpuReport())}, {}));
  EXPECT_THAT(text, HasSubstr("'wan_bench ceilings' measures them"));
  EXPECT_THAT(text, Not(HasSubstr("At least")));
}

TEST(OptionsReportTest, PairsAndCards) {
  wan::v1::JobReport slow = GpuReport();
  slow.mutable_request()->set_vae_precision(wan::v1::VAE_PRECISION_FP32);
  slow.mutable_stages(0)->set_seconds(50);
  MeasuredRun before = Named("preview", slow, "original");
  before.difference = ResultDifference{true, 0.0};
  const std::string text =
      RenderMarkdown(OptionsReport(Twice({Named("preview", GpuReport()), before}), {}));
  EXPECT_THAT(text, HasSubstr("vae\\_precision fp32"));
  EXPECT_THAT(text, HasSubstr("same bits"));
  EXPECT_THAT(text, HasSubstr("| 50.00 | 2: 50.00 to 50.00 s | 20.00 | 2: 20.00 to 20.00 s | "
                              "30.00 | 2.50 | faster |"));
  EXPECT_THAT(text, HasSubstr("Planned, Not Measured"));
  // 30 GiB of weights and 8 of work fit on 40 GB at once, on 24 GB no longer; 4 x 1 PFLOP take
  // 4.04 s at 989 TFLOP/s.
  EXPECT_THAT(text, HasSubstr("| preview | 38.00 | 18.00 | 8.00 | 4.04 | 4.04 | 12.82 | 12.82 | "
                              "11.05 | 25.81 | 24.24 a |"));
  EXPECT_THAT(text, Not(HasSubstr("Measured on"))) << "one device; the benchmark has its figures";
}

// What the job took on one card of the list says something of the others.
TEST(OptionsReportTest, OtherCardsHaveAnEstimate) {
  wan::v1::JobReport report = GpuReport();
  report.mutable_system()->mutable_gpu()->set_name("NVIDIA H100 80GB HBM3");
  report.mutable_system()->mutable_gpu()->set_memory_total_bytes(80 * kGiB);
  // 20 s at 989 TFLOP/s; on 24 GB the weights do not all fit.
  EXPECT_THAT(RenderMarkdown(OptionsReport({Named("a", report)}, {})),
              HasSubstr("| a, expected | - | - | - | ~20.00 | ~20.00 | ~63.40 | ~63.40 | ~54.64 | "
                        "~127.61 | - |"));
}

// The first run of a variant is compared, the median one is shown.
TEST(OptionsReportTest, SeveralRunsHaveTheComparisonOfTheFirst) {
  wan::v1::JobReport quick = GpuReport();
  quick.mutable_stages(0)->set_seconds(15);
  MeasuredRun first = Named("a", GpuReport(), "original");
  first.difference = ResultDifference{true, std::nullopt};
  MeasuredRun second = Named("a", quick, "original");
  second.number = 2;
  const std::string text =
      RenderMarkdown(OptionsReport({Named("a", GpuReport()), first, second}, {}));
  EXPECT_THAT(text, HasSubstr("| 17.50 | 2: 15.00 to 20.00 s | 20.00 | 1 | not told apart"));
  EXPECT_THAT(text, HasSubstr("latents: same bits"));
}

TEST(OptionsReportTest, AnotherServerIsNamedByWhatDiffers) {
  wan::v1::JobReport other = GpuReport();
  other.mutable_system()->mutable_gpu()->set_name("NVIDIA Other");
  other.mutable_system()->mutable_gpu()->set_driver_version("600.1");
  other.mutable_system()->set_server_revision("0123456789abcdef");
  for (wan::v1::StageReport& stage : *other.mutable_stages()) {
    if (stage.stage() == "Step_0_Inference") stage.set_seconds(6);
  }
  const std::string text = Unwrapped(RenderMarkdown(
      OptionsReport({Named("a", GpuReport()), Named("a", other, "other card")}, {})));
  EXPECT_THAT(text, HasSubstr("device NVIDIA Test; server 1.2.3 | device NVIDIA Other; "
                              "server 1.2.3-0123456789ab"));
  EXPECT_THAT(text, HasSubstr("The first step of a (other card) took 6.00 s, a regular one 3.00 s. "
                              "'wanctl bench ... --warm-up 1' keeps"));
  // Each machine has its row of the matrix.
  EXPECT_THAT(text, HasSubstr("| NVIDIA Test | 40.0 |"));
  EXPECT_THAT(text, HasSubstr("| NVIDIA Other | 40.0 | 600.1 | a (other card) |"));
}

TEST(OptionsReportTest, AnOptionOtherThanUpstreamsComesAfterTheCase) {
  wan::v1::JobReport faster = GpuReport();
  faster.mutable_request()->set_vae_precision(wan::v1::VAE_PRECISION_BF16);
  faster.mutable_stages(0)->set_seconds(10);
  const std::string text = RenderMarkdown(
      OptionsReport(Twice({Named("preview", GpuReport()), Named("preview", faster, "bf16")}), {}));
  EXPECT_THAT(text, HasSubstr("| 20.00 | 2: 20.00 to 20.00 s | 10.00 | 2: 10.00 to 10.00 s | "
                              "10.00 | 2.00 | faster |"));
}

TEST(OptionsReportTest, WithoutPairsSaysHowToGetThem) {
  const std::string text = Text(OptionsReport({Named("preview", GpuReport())}, {}));
  EXPECT_THAT(text, HasSubstr("--mode both"));
}

TEST(ReportTest, TheFirstScreenHasWhatItCostAndTheLargestSaving) {
  std::vector<MeasuredRun> runs =
      Twice({Named("first", GpuReport()), Named("second", GpuReport())});
  const std::string text = RenderText(BuildReport(runs, {}));
  size_t lines = 0, at = 0;
  for (; lines < 30 && at != std::string::npos; ++lines) at = text.find('\n', at + 1);
  const std::string screen = text.substr(0, at);
  EXPECT_THAT(screen, HasSubstr("Device: NVIDIA Test, 40.0 GiB\nModel:  5b\nDate:   2026-01-01\n"
                                "Runs:   4 of 2 cases\n"));
  EXPECT_THAT(screen, HasSubstr("1280*704"));
  EXPECT_THAT(screen, HasSubstr("20.00"));
  EXPECT_THAT(screen, HasSubstr("- second: 5.60 of 20.00 s by guidance_scale 1"));
}

TEST(ReportTest, PartsAndCeilingsOfAnotherCard) {
  Ceilings other = TestCeilings();
  other.device = "NVIDIA Other";
  const Document document =
      BuildReport({Named("a", GpuReport())}, {other}, {ReportPart::kBottlenecks});
  ASSERT_EQ(document.sections.size(), 1u);
  EXPECT_EQ(document.sections[0].key, "bottleneck_analysis");
  EXPECT_THAT(Text(document),
              HasSubstr("measured on NVIDIA Other, which none of these jobs ran on"));
}

TEST(ReportTest, EachCardHasItsOwnCeilings) {
  Ceilings slower = TestCeilings();
  slower.device = "NVIDIA Slower";
  slower.products["bf16"] = slower.attention["bf16"] = 250e12;
  wan::v1::JobReport there = GpuReport();
  there.mutable_system()->mutable_gpu()->set_name("NVIDIA Slower");
  const std::string markdown = RenderMarkdown(
      BottleneckAnalysis({Named("a", GpuReport()), Named("b", there)}, {TestCeilings(), slower}));
  // A forward of 500 TFLOP that took 1.4 s.
  EXPECT_THAT(markdown, HasSubstr("| one forward | 500.000 | 1.400 | 357.14 | 0.900 | 1.56 |"));
  EXPECT_THAT(markdown, HasSubstr("| one forward | 500.000 | 1.400 | 357.14 | 2.000 | 0.70 |"));
}

TEST(ReportTest, AnEmptyReportIsAReport) {
  const Document document = BuildReport({Named("jobs/x", wan::v1::JobReport())}, {});
  EXPECT_EQ(document.sections.size(), 4u);
  EXPECT_FALSE(Text(document).empty());
  EXPECT_FALSE(RenderHtml(document).empty());
}

}  // namespace
}  // namespace wan::client::reports
