#include "server/conversion/convert.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "engine/api/decoder.h"
#include "engine/api/errors.h"
#include "engine/api/quality.h"
#include "engine/api/vae_precision.h"
#include "engine/schedulers/flow_schedule.h"
#include "gmock/gmock.h"
#include "google/rpc/error_details.pb.h"
#include "gtest/gtest.h"
#include "proto/enum_words.h"
#include "server/conversion/errors.h"
#include "server/conversion/message_texts.h"

namespace wan::server {
namespace {

using testing::ElementsAre;
using testing::UnorderedElementsAreArray;

TEST(ConvertTest, FullRequestGoesThereAndBack) {
  wan::v1::GenerationRequest request;
  request.set_model("m");
  request.set_prompt("p");
  request.set_negative_prompt("n");
  request.set_width(64);
  request.set_height(32);
  request.set_num_frames(9);
  request.set_fps(12);
  request.set_steps(7);
  request.add_guidance_scale(3.5);
  request.add_guidance_scale(4.5);
  request.set_shift(8);
  request.set_solver(wan::v1::SOLVER_DPMPP);
  request.set_seed(99);
  request.add_outputs(wan::v1::OUTPUT_KIND_LATENTS);
  request.add_outputs(wan::v1::OUTPUT_KIND_LOSSLESS_MKV);
  request.set_preview_interval(2);
  request.set_profile(true);
  request.set_calibrate(true);
  request.set_progressive(true);
  request.add_loras()->set_name("style");
  request.mutable_loras(0)->set_scale(-0.5);
  request.add_loras()->set_name("none");
  request.mutable_loras(1)->set_scale(0);
  request.set_background("#0a80ff");
  const auto image = std::make_shared<const std::string>("image");
  const GenerationRequest engine = ToEngineRequest(request, {.image = image});
  EXPECT_EQ(engine.image, image);
  EXPECT_EQ(engine.solver, "dpm++");
  EXPECT_THAT(engine.outputs, ElementsAre(OutputKind::kLatents, OutputKind::kLosslessMkv));
  EXPECT_EQ(ToProto(engine).DebugString(), request.DebugString());
}

TEST(ConvertTest, SigmasBoundaryAndScalesOfExpertsComeBack) {
  wan::v1::GenerationRequest request;
  request.add_sigmas(1);
  request.add_sigmas(0.5);
  request.set_boundary_step(1);
  wan::v1::LoraScale& lora = *request.add_loras();
  lora.set_name("fast");
  lora.set_scale(1);
  lora.set_high_scale(0.5);
  lora.set_low_scale(0);
  const GenerationRequest taken = ToEngineRequest(request);
  EXPECT_THAT(taken.sigmas, ElementsAre(1, 0.5));
  EXPECT_EQ(taken.boundary_step, 1);
  EXPECT_EQ(taken.loras[0].For(ExpertRole::kHighNoise), 0.5);
  EXPECT_EQ(taken.loras[0].For(ExpertRole::kLowNoise), 0);
  const wan::v1::GenerationRequest back = ToProto(taken);
  EXPECT_EQ(back.sigmas_size(), 2);
  EXPECT_EQ(back.boundary_step(), 1);
  EXPECT_EQ(back.loras(0).high_scale(), 0.5);
  EXPECT_TRUE(back.loras(0).has_low_scale());
}

TEST(ConvertTest, SchedulesAndEditsOfLoras) {
  wan::v1::LoadModelRequest load;
  wan::v1::LoraSource& added = *load.add_added_loras();
  added.set_name("fast");
  added.set_path("/f");
  added.mutable_schedule()->set_steps(4);
  added.mutable_schedule()->set_shift(5);
  added.mutable_schedule()->set_boundary_step(2);
  load.add_removed_loras("style");
  const absl::StatusOr<LoraEdits> edits = ToLoraEdits(load);
  ASSERT_TRUE(edits.ok()) << edits.status();
  const LoraSchedule schedule = {.steps = 4, .shift = 5, .boundary_step = 2};
  EXPECT_EQ(edits->add[0].schedule, schedule) << "guidance 1, if nothing is said";
  EXPECT_THAT(edits->remove, ElementsAre("style"));
  load.set_path("/m");
  EXPECT_EQ(FieldViolationsOf(ToLoraEdits(load).status())[0].field, "added_loras");

  ModelDescription description;
  description.loras = {{.name = "fast", .schedule = schedule, .is_recognised = true}};
  description.skipped_loras = {{"bad", "/bad", absl::DataLossError("is cut")}};
  EXPECT_FALSE(ToProto(description).has_tiny_decoder_error());
  description.tiny_decoder_error = absl::DataLossError("/m/taew2_2.pth: is cut");
  const wan::v1::Model model = ToProto(description);
  EXPECT_EQ(model.loras(0).schedule().steps(), 4);
  EXPECT_EQ(model.loras(0).schedule().guidance_scale(0), 1);
  EXPECT_TRUE(model.loras(0).schedule_recognised());
  EXPECT_EQ(model.skipped_loras(0).error().message(), "is cut");
  EXPECT_EQ(model.tiny_decoder_error().message(), "/m/taew2_2.pth: is cut");
}

TEST(ConvertTest, ALoraWithoutAScaleIsTakenAsItIs) {
  wan::v1::GenerationRequest request;
  request.add_loras()->set_name("style");
  EXPECT_THAT(ToEngineRequest(request).loras, ElementsAre(LoraScale{"style", 1}));
}

TEST(ConvertTest, ModelsShowTheirLoras) {
  ModelDescription description;
  description.name = "m";
  LoraPartDescription high = {ExpertRole::kHighNoise, "/h", 32, 400, 0.5, 2.0, {}};
  for (int i = 0; i < 105; ++i) high.left_out_tensors.push_back(absl::StrCat("img_", 1000 + i));
  description.loras = {
      {"pair",
       {high, {ExpertRole::kLowNoise, "/l", 16, 300, std::nullopt, std::nullopt, {}}},
       1000}};
  const wan::v1::Model model = ToProto(description);
  ASSERT_EQ(model.loras_size(), 1);
  EXPECT_EQ(model.loras(0).name(), "pair");
  EXPECT_EQ(model.loras(0).host_bytes(), 1000u);
  ASSERT_EQ(model.loras(0).parts_size(), 2);
  const wan::v1::Lora::Part& low = model.loras(0).parts(1);
  EXPECT_EQ(low.expert(), "low");
  EXPECT_EQ(low.path(), "/l");
  EXPECT_EQ(low.rank(), 16);
  EXPECT_EQ(low.tensors(), 300);
  EXPECT_FALSE(low.has_min_factor() || low.has_max_factor());
  EXPECT_EQ(low.left_out_count(), 0);
  EXPECT_EQ(model.loras(0).parts(0).min_factor(), 0.5);
  EXPECT_EQ(model.loras(0).parts(0).max_factor(), 2);
  EXPECT_EQ(model.loras(0).parts(0).left_out_count(), 105);
  EXPECT_EQ(model.loras(0).parts(0).left_out_tensors_size(), 100);
  EXPECT_EQ(model.loras(0).parts(0).left_out_tensors(99), "img_1099");

  wan::v1::LoadModelRequest load;
  load.set_name("models/m");
  load.set_path("/ckpt");
  wan::v1::LoraSource& source = *load.add_loras();
  source.set_name("pair");
  source.set_expert("low");
  source.set_path("/l");
  *load.add_loras() = source;
  load.mutable_loras(1)->clear_expert();
  const absl::StatusOr<ModelSpec> spec = ToModelSpec(load);
  ASSERT_TRUE(spec.ok()) << spec.status();
  EXPECT_EQ(spec->name, "models/m");
  EXPECT_EQ(spec->path, "/ckpt");
  EXPECT_THAT(spec->loras, ElementsAre(LoraSource{"pair", ExpertRole::kLowNoise, "/l"},
                                       LoraSource{"pair", std::nullopt, "/l"}));

  load.mutable_loras(1)->set_expert("middle");
  EXPECT_THAT(
      FieldViolationsOf(ToModelSpec(load).status()),
      ElementsAre(FieldViolation{"loras[1].expert",
                                 "is 'middle'; must be high or low, or empty for every expert"}));
}

TEST(ConvertTest, UnsetFieldsStayUnset) {
  const GenerationRequest engine = ToEngineRequest({});
  EXPECT_FALSE(engine.negative_prompt || engine.width || engine.height || engine.num_frames ||
               engine.fps || engine.h264_crf || engine.steps || engine.shift || engine.seed);
  EXPECT_TRUE(engine.solver.empty() && engine.outputs.empty() && engine.guidance_scale.empty());
  EXPECT_EQ(ToProto(engine).DebugString(), "");
}

TEST(ConvertTest, TheRateFactorPassesBothWays) {
  wan::v1::GenerationRequest request;
  request.set_h264_crf(0);
  EXPECT_EQ(ToEngineRequest(request).h264_crf, 0) << "planning refuses it, and says why";
  request.set_h264_crf(23);
  const GenerationRequest engine = ToEngineRequest(request);
  EXPECT_EQ(engine.h264_crf, 23);
  EXPECT_EQ(ToProto(engine).h264_crf(), 23);
}

TEST(ConvertTest, EveryVaePrecisionHasItsOwnValue) {
  for (const auto& [proto, precision] :
       {std::pair{wan::v1::VAE_PRECISION_FP32, VaePrecision::kFp32},
        {wan::v1::VAE_PRECISION_TF32, VaePrecision::kTf32},
        {wan::v1::VAE_PRECISION_FP16, VaePrecision::kFp16},
        {wan::v1::VAE_PRECISION_BF16, VaePrecision::kBf16}}) {
    wan::v1::GenerationRequest request;
    request.set_vae_precision(proto);
    const GenerationRequest engine = ToEngineRequest(request);
    EXPECT_EQ(engine.vae_precision, precision);
    EXPECT_EQ(ToProto(engine).vae_precision(), proto);
  }
  EXPECT_FALSE(ToEngineRequest({}).vae_precision.has_value()) << "the server's setting";
}

TEST(ConvertTest, EveryDecoderHasItsOwnValue) {
  for (const auto& [proto, decoder] : {std::pair{wan::v1::DECODER_FULL, Decoder::kFull},
                                       {wan::v1::DECODER_TINY, Decoder::kTiny}}) {
    wan::v1::GenerationRequest request;
    request.set_decoder(proto);
    const GenerationRequest engine = ToEngineRequest(request);
    EXPECT_EQ(engine.decoder, decoder);
    EXPECT_EQ(ToProto(engine).decoder(), proto);
  }
  EXPECT_FALSE(ToEngineRequest({}).decoder.has_value());
}

TEST(ConvertTest, EveryQualityHasItsOwnValue) {
  for (const Quality quality : kQualities) {
    wan::v1::GenerationRequest request;
    request.set_quality(ValueOf<wan::v1::Quality>(NameOf(quality)).value());
    EXPECT_EQ(ToEngineRequest(request).quality, quality);
    EXPECT_EQ(ToProto(ToEngineRequest(request)).quality(), request.quality());
    EXPECT_EQ(QualityOf(request), NameOf(quality));
  }
  EXPECT_EQ(WordsOf<wan::v1::Quality>().size(), kQualities.size());
  EXPECT_FALSE(ToEngineRequest({}).quality.has_value()) << "the server's setting";
}

// Its server may have another setting now.
TEST(ConvertTest, AStoredRequestWithoutAQualityIsExact) {
  wan::v1::Job job;
  EXPECT_EQ(QualityOf(job.request()), "exact");
  EXPECT_EQ(RequestOf(job).quality, Quality::kExact);
  job.mutable_request()->set_quality(wan::v1::QUALITY_FAST);
  EXPECT_EQ(RequestOf(job).quality, Quality::kFast);
  EXPECT_TRUE(RequestOf(job).size_is_exact);
}

TEST(ConvertTest, EverySolverHasAName) {
  for (const auto& [solver, name] :
       {std::pair(wan::v1::SOLVER_UNSPECIFIED, ""), std::pair(wan::v1::SOLVER_UNIPC, "unipc"),
        std::pair(wan::v1::SOLVER_DPMPP, "dpm++"), std::pair(wan::v1::SOLVER_EULER, "euler")}) {
    wan::v1::GenerationRequest request;
    request.set_solver(solver);
    EXPECT_EQ(ToEngineRequest(request).solver, name);
    EXPECT_EQ(ToProto(ToEngineRequest(request)).solver(), solver);
  }
}

TEST(ConvertTest, TheContractHasAWordForWhateverTheEngineNames) {
  EXPECT_THAT(WordsOf<wan::v1::Solver>(), UnorderedElementsAreArray(FlowSolverNames()));
  std::vector<std::string> precisions;
  for (const VaePrecision precision : kVaePrecisions) precisions.emplace_back(NameOf(precision));
  EXPECT_THAT(WordsOf<wan::v1::VaePrecision>(), UnorderedElementsAreArray(precisions));
  std::vector<std::string> decoders;
  for (const Decoder decoder : kDecoders) decoders.emplace_back(NameOf(decoder));
  EXPECT_THAT(WordsOf<wan::v1::Decoder>(), UnorderedElementsAreArray(decoders));
}

TEST(ConvertTest, NegativeSeedIsNoSeed) {
  wan::v1::GenerationRequest request;
  request.set_seed(-1);
  EXPECT_EQ(ToEngineRequest(request).seed, std::nullopt);
  request.set_seed(0);
  EXPECT_EQ(ToEngineRequest(request).seed, 0);
}

TEST(ConvertTest, EveryOutputKindHasAFileAndAType) {
  EXPECT_EQ(ArtifactFileName(OutputKind::kMp4), "video.mp4");
  EXPECT_EQ(ArtifactFileName(OutputKind::kLosslessMkv), "video.mkv");
  EXPECT_EQ(ArtifactFileName(OutputKind::kLatents), "latents.safetensors");
  EXPECT_EQ(ArtifactContentType(OutputKind::kLosslessMkv), "video/x-matroska");
}

TEST(ConvertTest, StageReportHasWhatWasMeasuredAndNothingElse) {
  SpanRecord record{.stage = {StageKind::kStepInference, 2}};
  record.start = absl::FromUnixMillis(1'500);
  record.seconds = 2;
  record.usage.sm_activity_percent = 75;
  record.usage.gpu_memory_peak_bytes = 10;
  record.step = std::make_shared<const StepFacts>(StepFacts{2, 5, 600, ExpertRole::kHighNoise});
  const wan::v1::StageReport report = ToProto(record);
  EXPECT_EQ(report.stage(), "Step_2_Inference");
  EXPECT_EQ(report.start_time().seconds(), 1);
  EXPECT_EQ(report.start_time().nanos(), 500'000'000);
  EXPECT_EQ(report.load(), 150);
  EXPECT_EQ(report.gpu_memory_peak_bytes(), 10);
  EXPECT_EQ(report.expert(), "high");
  EXPECT_EQ(report.error(), "");
  EXPECT_FALSE(report.has_gpu_memory_start_bytes());
  EXPECT_FALSE(report.has_cpu_percent());
  const wan::v1::StepProgress progress = ToStepProgress(record);
  EXPECT_EQ(progress.step(), 3);
  EXPECT_EQ(progress.total(), 5);
  EXPECT_EQ(progress.timestep(), 600);
  EXPECT_EQ(progress.sm_activity_percent(), 75);
  EXPECT_FALSE(progress.has_eta_seconds());

  record.usage = {};
  record.status = absl::CancelledError("");
  EXPECT_FALSE(ToProto(record).has_load());
  EXPECT_EQ(ToProto(record).error(), "CANCELLED");
}

TEST(ConvertTest, StageReportHasEachFigureOfTheGpu) {
  SpanRecord record{.stage = StageKind::kVaeDecoding};
  EXPECT_FALSE(ToProto(record).has_energy_joules());
  EXPECT_FALSE(ToProto(record).has_throttled_seconds());
  record.usage.gpu_memory_reserved_peak_bytes = 1;
  record.usage.gpu_weights_peak_bytes = 14;
  record.parts = {{.name = "forward", .start_seconds = 1, .seconds = 2, .flops = 3},
                  {.name = "vae", .start_seconds = 4, .seconds = 5, .bytes = 6}};
  record.usage.gpu = {.sm_occupancy_percent = 2,
                      .tensor_activity_percent = 3,
                      .dram_bandwidth_percent = 4,
                      .energy_joules = 7,
                      .power_watts = 5,
                      .power_peak_watts = 6,
                      .sm_clock_mhz = 8,
                      .sm_clock_min_mhz = 9,
                      .memory_clock_mhz = 10,
                      .temperature_peak_celsius = 11,
                      .throttle_reasons = {"power cap", "temperature"},
                      .throttled_seconds = 12,
                      .processes = 13};
  wan::v1::StageReport report = ToProto(record);
  report.clear_start_time();
  EXPECT_EQ(report.ShortDebugString(),
            "stage: \"VAE_Decoding\" sm_occupancy_percent: 2 tensor_activity_percent: 3 "
            "dram_bandwidth_percent: 4 power_watts: 5 power_peak_watts: 6 energy_joules: 7 "
            "sm_clock_mhz: 8 sm_clock_min_mhz: 9 memory_clock_mhz: 10 "
            "temperature_peak_celsius: 11 throttle_reasons: \"power cap\" "
            "throttle_reasons: \"temperature\" throttled_seconds: 12 gpu_processes: 13 "
            "gpu_memory_reserved_peak_bytes: 1 gpu_weights_peak_bytes: 14 "
            "parts { name: \"forward\" start_seconds: 1 seconds: 2 flops: 3 } "
            "parts { name: \"vae\" start_seconds: 4 seconds: 5 bytes: 6 }");
}

TEST(ConvertTest, StageReportHasTheProfileOfABlock) {
  SpanRecord record{.stage = {StageKind::kStepInference, 1}};
  EXPECT_FALSE(ToProto(record).has_block_profile());
  record.block_profile = std::make_shared<const BlockProfile>(BlockProfile{
      "forward",
      15,
      2,
      {{{"text_output", "projections", 3, 4}, 0.5}, {{"next_weights", "weights"}, 0.25}}});
  EXPECT_EQ(ToProto(record).block_profile().ShortDebugString(),
            "part: \"forward\" block: 15 texts: 2 seconds: 0.75 "
            "operators { name: \"text_output\" operator_class: \"projections\" seconds: 0.5 "
            "flops: 3 bytes: 4 } "
            "operators { name: \"next_weights\" operator_class: \"weights\" seconds: 0.25 }");
}

TEST(ConvertTest, TimesGoThereAndBack) {
  for (const absl::Time time : {absl::FromUnixNanos(1'234'567'890'123'456'789),
                                absl::FromUnixNanos(-1), absl::UnixEpoch()}) {
    const google::protobuf::Timestamp timestamp = ToProto(time);
    EXPECT_GE(timestamp.nanos(), 0);
    EXPECT_EQ(ToTime(timestamp), time);
  }
}

TEST(ConvertTest, StatusCarriesItsDetails) {
  const google::rpc::Status full = ToProto(QueueFullError(3, absl::Milliseconds(2500)));
  EXPECT_EQ(full.code(), 8);
  ASSERT_EQ(full.details_size(), 2);
  google::rpc::ErrorInfo info;
  google::rpc::RetryInfo retry;
  ASSERT_TRUE(full.details(0).UnpackTo(&info) && full.details(1).UnpackTo(&retry));
  EXPECT_EQ(info.reason(), "QUEUE_FULL");
  EXPECT_EQ(info.domain(), "wanserve");
  EXPECT_EQ(retry.retry_delay().seconds(), 2);
  EXPECT_EQ(retry.retry_delay().nanos(), 500'000'000);

  const google::rpc::Status fields = ToProto(InvalidFields({{"width", "bad"}, {"steps", "worse"}}));
  google::rpc::BadRequest bad;
  ASSERT_EQ(fields.details_size(), 2);
  ASSERT_TRUE(fields.details(0).UnpackTo(&info) && fields.details(1).UnpackTo(&bad));
  EXPECT_EQ(info.reason(), "INVALID_ARGUMENT");
  ASSERT_EQ(bad.field_violations_size(), 2);
  EXPECT_EQ(bad.field_violations(1).field(), "steps");
  EXPECT_EQ(bad.field_violations(1).description(), "worse");

  EXPECT_EQ(ToProto(absl::OkStatus()).DebugString(), "");
  EXPECT_EQ(fields.code(), 3);
  EXPECT_EQ(fields.message(), "width: bad; steps: worse");
}

TEST(ConvertTest, ModelDescription) {
  ModelDescription description;
  description.name = "m";
  description.family = FamilyId::kTi2v5b;
  description.components = {{ModelComponent::kVae, 12, 6, "cpu", "fp32", "Q8_0"}};
  description.warm_shapes = {{64, 32, 5}};
  description.distillation = "FastWan";
  description.defaults.steps = 50;
  description.accepts_image = true;
  description.spatial_stride = 32;
  description.temporal_stride = 4;
  const wan::v1::Model model = ToProto(description);
  EXPECT_EQ(model.name(), "models/m");
  EXPECT_EQ(model.family(), "ti2v-5b");
  EXPECT_EQ(model.distillation(), "FastWan");
  EXPECT_EQ(model.components(0).name(), "vae");
  EXPECT_EQ(model.components(0).bytes(), 12);
  EXPECT_EQ(model.components(0).parameters(), 6);
  EXPECT_EQ(model.components(0).stored_as(), "Q8_0");
  EXPECT_EQ(model.warm_shapes(0).num_frames(), 5);
  EXPECT_EQ(model.defaults().steps(), 50);
  EXPECT_TRUE(model.accepts_image());
  EXPECT_EQ(model.spatial_stride(), 32);
  EXPECT_EQ(model.temporal_stride(), 4);
  EXPECT_EQ(ToVideoShape(model.warm_shapes(0)), (VideoShape{64, 32, 5}));
}

TEST(ConvertTest, TextsFromOutsideCanBeReadBack) {
  absl::Status status = InvalidFields({{"caf\xe9", "is caf\xe9"}});
  status = WithMetadata(absl::Status(status.code(), "/models/caf\xe9: is damaged"), "k", "caf\xe9");
  const google::rpc::Status message = ToProto(status);
  EXPECT_TRUE(ReadsBack(message));
  google::rpc::ErrorInfo info;
  ASSERT_EQ(message.details_size(), 1);
  EXPECT_TRUE(message.details(0).UnpackTo(&info));
  const google::rpc::Status invalid = ToProto(InvalidFields({{"caf\xe9", "is caf\xe9"}}));
  google::rpc::BadRequest bad_request;
  ASSERT_EQ(invalid.details_size(), 2);
  EXPECT_TRUE(invalid.details(1).UnpackTo(&bad_request));

  ModelDescription model;
  model.name = "m";
  model.path = "/models/caf\xe9";
  LoraPartDescription part;
  part.path = "/loras/caf\xe9";
  part.left_out_tensors = {"caf\xe9"};
  model.loras.push_back({.name = "ink", .parts = {part}});
  EXPECT_TRUE(ReadsBack(ToProto(model)));
  DeviceSample sample;
  sample.name = "GPU\xae";
  EXPECT_TRUE(ReadsBack(ToProto(sample, absl::UnixEpoch())));
  SpanRecord span{StageKind::kT5Encoding};
  span.status = absl::InternalError("caf\xe9");
  EXPECT_TRUE(ReadsBack(ToProto(span)));
}

TEST(ConvertTest, DeviceSampleLeavesOutWhatIsNotMeasured) {
  DeviceSample sample;
  sample.device = "cpu";
  sample.cpu_percent = 12;
  sample.process_cpu_percent = 5;
  const wan::v1::DeviceSample message = ToProto(sample, absl::UnixEpoch());
  EXPECT_EQ(message.cpu_percent(), 12);
  EXPECT_EQ(message.process_cpu_percent(), 5);
  EXPECT_FALSE(message.has_sm_activity_percent());
  EXPECT_FALSE(message.has_allocator_bytes());
  EXPECT_FALSE(message.has_energy_joules());
  EXPECT_TRUE(message.has_time());

  sample.uuid = "GPU-1";
  sample.energy_joules = 2;
  sample.throttled_seconds = 3;
  sample.throttle_reasons = {"power cap"};
  sample.processes = 4;
  const wan::v1::DeviceSample gpu = ToProto(sample, absl::UnixEpoch());
  EXPECT_EQ(gpu.uuid(), "GPU-1");
  EXPECT_EQ(gpu.energy_joules(), 2);
  EXPECT_EQ(gpu.throttled_seconds(), 3);
  EXPECT_EQ(gpu.throttle_reasons(0), "power cap");
  EXPECT_EQ(gpu.gpu_processes(), 4);
}

TEST(ConvertTest, ProvenanceNamesWeightsInEightBits) {
  GenerationPlan plan;
  EXPECT_TRUE(ProvenanceOf(plan, {}).eight_bit_weights().empty());
  plan.eight_bit_weights = {.transformers = true, .text_encoder = true};
  EXPECT_THAT(ProvenanceOf(plan, {}).eight_bit_weights(),
              ElementsAre("transformers", "text_encoder"));
}

TEST(ConvertTest, ProvenanceNamesExactBlocks) {
  GenerationPlan plan;
  plan.exact_blocks = {0, 5};
  EXPECT_THAT(ProvenanceOf(plan, {}).exact_blocks(), ElementsAre(0, 5));
}

}  // namespace
}  // namespace wan::server
