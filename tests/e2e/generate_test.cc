// Prompt to video through the real server.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <openssl/sha.h>

#include <cstdlib>
#include <fstream>
#include <map>
#include <span>
#include <thread>

#include "engine/media/image_decode.h"
#include "engine/media/image_encode.h"
#include "engine/media/video_reader.h"
#include "tests/e2e/test_server.h"
#include "tests/support/latents_gap.h"
#include "tests/support/prometheus_text.h"

namespace wan::e2e {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using wan::v1::Event;

std::string Sha256Hex(const std::string& bytes) {
  unsigned char digest[SHA256_DIGEST_LENGTH];
  SHA256(reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(), digest);
  std::string hex;
  for (const unsigned char byte : digest) {
    hex += "0123456789abcdef"[byte >> 4];
    hex += "0123456789abcdef"[byte & 15];
  }
  return hex;
}

std::vector<std::string> FinishedStages(const std::vector<Event>& events) {
  std::vector<std::string> stages;
  for (const Event& event : events) {
    if (event.has_stage_finished()) stages.push_back(event.stage_finished().stage());
  }
  return stages;
}

void ExpectContiguous(const std::vector<Event>& events, int64_t first = 1) {
  for (size_t i = 0; i < events.size(); ++i) {
    ASSERT_EQ(events[i].sequence(), first + static_cast<int64_t>(i));
  }
}

class GenerateTest : public testing::Test {
 protected:
  TemporaryFolder folder_;
  TestServer server_{{.data_dir = folder_.path()}};
};

TEST_F(GenerateTest, StreamsEveryStageAndStepAndLeavesEveryArtifact) {
  grpc::ClientContext context;
  wan::v1::GenerateRequest request;
  *request.mutable_request() = TinyRequest(/*steps=*/3);
  for (const auto kind : {wan::v1::OUTPUT_KIND_MP4, wan::v1::OUTPUT_KIND_LOSSLESS_MKV,
                          wan::v1::OUTPUT_KIND_LATENTS}) {
    request.mutable_request()->add_outputs(kind);
  }
  const auto reader = server_.videos().Generate(&context, request);
  std::vector<Event> events;
  for (Event event; reader->Read(&event);) events.push_back(event);
  ASSERT_TRUE(reader->Finish().ok());

  ExpectContiguous(events);
  EXPECT_TRUE(events.front().has_queued());
  EXPECT_EQ(events.front().queued().position(), 0);
  const std::vector<std::string> stages = FinishedStages(events);
  for (const char* stage :
       {"Queue_Wait", "TI2V_Preprocess", "T5_Encoding", "Step_0_Loading", "Step_0_Inference",
        "Step_2_Inference", "VAE_Decoding", "Video_Encoding", "Total_Execution"}) {
    EXPECT_THAT(stages, Contains(stage));
  }
  std::vector<int> steps;
  for (const Event& event : events) {
    if (event.has_step_progress()) {
      steps.push_back(event.step_progress().step());
      EXPECT_EQ(event.step_progress().total(), 3);
      EXPECT_EQ(event.step_progress().expert(), "only");
      EXPECT_FALSE(event.step_progress().has_sm_activity_percent());
    }
    if (event.has_stage_finished()) {
      // No GPU here: its figures are absent, never 0.
      EXPECT_FALSE(event.stage_finished().has_gpu_memory_peak_bytes());
      EXPECT_FALSE(event.stage_finished().has_sm_activity_percent());
      if (event.stage_finished().stage() == "Step_1_Inference") {
        EXPECT_TRUE(event.stage_finished().has_system_memory_used_bytes());
        EXPECT_TRUE(event.stage_finished().has_process_memory_peak_bytes());
        EXPECT_GT(event.stage_finished().seconds(), 0);
      }
    }
  }
  EXPECT_THAT(steps, ElementsAre(1, 2, 3));

  ASSERT_TRUE(events.back().has_completed());
  ASSERT_EQ(events.back().completed().artifacts_size(), 3);
  for (const auto& artifact : events.back().completed().artifacts()) {
    const std::string bytes = server_.Download(artifact.name());
    EXPECT_EQ(bytes.size(), artifact.size_bytes());
    EXPECT_EQ(Sha256Hex(bytes), artifact.sha256()) << artifact.name();
    // Resumed in the middle, the rest is the same.
    const uint64_t half = artifact.size_bytes() / 2;
    EXPECT_EQ(server_.Download(artifact.name(), half), bytes.substr(half));
    EXPECT_EQ(server_.Download(artifact.name(), artifact.size_bytes()), "");
  }
}

TEST_F(GenerateTest, TheVideoIsWhatAPlayerExpects) {
  wan::v1::GenerationRequest request = TinyRequest();
  request.set_fps(12);
  const wan::v1::Job job = server_.Await(server_.Submit(request).name());
  ASSERT_EQ(job.artifacts_size(), 1);
  const std::string path = folder_.File("video.mp4");
  std::ofstream(path, std::ios::binary) << server_.Download(job.artifacts(0).name());
  const ProcessResult probe =
      RunProcess({"ffprobe", "-v", "error", "-count_frames", "-show_entries",
                  "stream=codec_name,pix_fmt,width,height,r_frame_rate,nb_read_frames", "-of",
                  "default=noprint_wrappers=1", path});
  EXPECT_EQ(probe.exit_code, 0) << probe.err;
  for (const char* fact : {"codec_name=h264", "pix_fmt=yuv420p", "width=64", "height=32",
                           "r_frame_rate=12/1", "nb_read_frames=5"}) {
    EXPECT_THAT(probe.out, HasSubstr(fact));
  }
  EXPECT_EQ(probe.err, "");
}

TEST_F(GenerateTest, ManyWatchersSeeTheSameLog) {
  const std::string job = server_.Submit(TinyRequest(/*steps=*/8)).name();
  constexpr int kWatchers = 12;
  std::vector<std::vector<Event>> logs(kWatchers);
  std::vector<std::thread> threads;
  for (int i = 0; i < kWatchers; ++i) {
    threads.emplace_back([&, i] {
      // Every third one goes away early and comes back where it was.
      if (i % 3 != 0) {
        logs[i] = server_.Watch(job);
        return;
      }
      logs[i] = server_.Watch(job, 0, [](const Event& event) { return event.sequence() == 4; });
      for (Event& event : server_.Watch(job, 4)) logs[i].push_back(std::move(event));
    });
  }
  for (std::thread& thread : threads) thread.join();
  const std::vector<Event> replay = server_.Watch(job);
  ExpectContiguous(replay);
  ASSERT_TRUE(replay.back().has_completed());
  for (const std::vector<Event>& log : logs) {
    ASSERT_EQ(log.size(), replay.size());
    for (size_t i = 0; i < log.size(); ++i) {
      EXPECT_EQ(log[i].SerializeAsString(), replay[i].SerializeAsString());
    }
  }
}

TEST_F(GenerateTest, TheReportIsTheStageTable) {
  const std::string name = server_.Submit(TinyRequest(/*steps=*/2)).name();
  server_.Await(name);
  grpc::ClientContext context;
  wan::v1::GetReportRequest request;
  request.set_job(name);
  wan::v1::JobReport report;
  ASSERT_TRUE(server_.videos().GetReport(&context, request, &report).ok());
  std::vector<std::string> stages;
  double steps_seconds = 0;
  double total = 0;
  for (const auto& stage : report.stages()) {
    stages.push_back(stage.stage());
    if (stage.stage().find("_Inference") != std::string::npos) steps_seconds += stage.seconds();
    if (stage.stage() == "Total_Execution") total = stage.seconds();
  }
  EXPECT_THAT(stages, testing::UnorderedElementsAre(
                          "Queue_Wait", "TI2V_Preprocess", "T5_Encoding", "Step_0_Loading",
                          "Step_0_Inference", "Step_1_Loading", "Step_1_Inference", "VAE_Decoding",
                          "Video_Encoding", "Total_Execution"));
  EXPECT_GT(total, steps_seconds);
  EXPECT_EQ(report.device(), "cpu");
  EXPECT_EQ(report.dtype(), "fp32");
}

TEST_F(GenerateTest, MetricsHoldTheStagesOfTheReport) {
  const std::string name = server_.Submit(TinyRequest(/*steps=*/4)).name();
  server_.Await(name);
  const std::string text = server_.Metrics();
  const auto metrics = support::PrometheusText::Parse(text);
  ASSERT_TRUE(metrics.ok()) << metrics.status();
  const auto count = [&](const std::string& stage) {
    const char* const quality = stage == "Model_Initialization" ? "" : "exact";
    return metrics->Value("wan_stage_seconds_count",
                          {{"model", "tiny"}, {"quality", quality}, {"stage", stage}});
  };
  EXPECT_EQ(count("Step_Inference"), 4);
  for (const char* stage : {"Model_Initialization", "TI2V_Preprocess", "T5_Encoding",
                            "VAE_Decoding", "Video_Encoding", "Queue_Wait", "Total_Execution"}) {
    EXPECT_EQ(count(stage), 1) << stage;
  }
  EXPECT_EQ(metrics->Value("wan_jobs_total",
                           {{"model", "tiny"}, {"quality", "exact"}, {"state", "completed"}}),
            1);
  EXPECT_EQ(metrics->Value("wan_queue_length", {{"model", "tiny"}}), 0);
  // Buckets from a millisecond to more than a day; no job in a label; no GPU, no GPU figures.
  for (const char* bound : {"0.001", "126000.0"}) {
    EXPECT_TRUE(
        metrics
            ->Value(
                "wan_stage_seconds_bucket",
                {{"model", "tiny"}, {"quality", "exact"}, {"stage", "T5_Encoding"}, {"le", bound}})
            .has_value())
        << bound;
  }
  EXPECT_THAT(text, testing::Not(HasSubstr(name.substr(name.find('/') + 1))));
  for (const auto& [family, unused] : metrics->families()) {
    EXPECT_NE(family.rfind("wan_gpu_", 0), 0u) << family;
  }
}

TEST_F(GenerateTest, SameSeedSameLatents) {
  const auto latents = [&](int64_t seed) {
    wan::v1::GenerationRequest request = TinyRequest(2, seed);
    request.add_outputs(wan::v1::OUTPUT_KIND_LATENTS);
    return server_.Await(server_.Submit(request).name()).artifacts(0).sha256();
  };
  const std::string first = latents(11);
  EXPECT_EQ(first, latents(11));
  EXPECT_NE(first, latents(12));
}

// The forwards of a job, by what they compute.
std::map<std::string, int> CountForwards(const wan::v1::JobReport& report) {
  std::map<std::string, int> forwards;
  for (const auto& stage : report.stages()) {
    for (const auto& part : stage.parts()) {
      if (part.name().rfind("forward", 0) == 0) ++forwards[part.name()];
    }
  }
  return forwards;
}

TEST(GuidanceBatchingTest, GivesTheSameVideoInOneBatchAndSplit) {
  // By default the first has one batch, the second two forwards (docs/operate/memory.md).
  std::vector<wan::v1::GenerationRequest> requests(2, TinyRequest(/*steps=*/2));
  requests[1].set_width(512);
  requests[1].set_height(544);
  requests[1].set_num_frames(65);
  std::map<std::string, std::vector<std::string>> latents;  // by the setting
  for (const std::string setting : {"batched", "split"}) {
    const bool batched = setting == "batched";
    const std::map<std::string, int> forwards =
        batched
            ? std::map<std::string, int>{{"forward", 2}}
            : std::map<std::string, int>{{"forward_conditional", 2}, {"forward_unconditional", 2}};
    const TemporaryFolder folder;
    TestServer server({.data_dir = folder.path(), .flags = {"--guidance-batching", setting}});
    for (wan::v1::GenerationRequest request : requests) {
      request.add_outputs(wan::v1::OUTPUT_KIND_LATENTS);
      const wan::v1::Job job = server.Await(server.Submit(request).name());
      ASSERT_EQ(job.state(), wan::v1::JOB_STATE_COMPLETED) << job.ShortDebugString();
      EXPECT_EQ(job.provenance().batched_guidance(), batched);
      latents[setting].push_back(server.Download(job.artifacts(0).name()));

      grpc::ClientContext context;
      wan::v1::GetReportRequest get;
      get.set_job(job.name());
      wan::v1::JobReport report;
      ASSERT_TRUE(server.videos().GetReport(&context, get, &report).ok());
      EXPECT_EQ(CountForwards(report), forwards);
    }
  }
  for (size_t i = 0; i < requests.size(); ++i) {
    EXPECT_LE(support::RelativeGap(latents["split"][i], latents["batched"][i]),
              support::kGuidedRoundingGap);
  }
}

TEST_F(GenerateTest, ImageToVideoTakesTheImagesRatio) {
  wan::v1::GenerationRequest request = TinyRequest();
  request.set_image(ReadWholeFile(std::string(WAN_GOLDEN_DIR) + "/pipelines/ti2v-i2v.png"));
  request.set_width(96);
  request.set_height(64);
  const std::string name = server_.Submit(request).name();
  EXPECT_THAT(FinishedStages(server_.Watch(name)), Contains("VAE_Encoding"));
  const wan::v1::Job job = server_.Get(name);
  EXPECT_EQ(job.state(), wan::v1::JOB_STATE_COMPLETED);
  EXPECT_EQ(job.request().width(), 96);
  EXPECT_TRUE(job.request().image().empty());
  EXPECT_EQ(job.image_sha256().size(), 64u);
}

// A photo as a camera writes it that is held on its side, with the orientation 6.
std::string TurnedPhoto() {
  std::vector<uint8_t> rgb;
  for (int i = 0; i < 96 * 64; ++i) {
    for (const int value : {i % 96 * 2, i / 96 * 4, 40}) rgb.push_back(static_cast<uint8_t>(value));
  }
  std::string photo = EncodeJpeg(rgb, 96, 64).value();
  // After the mark of the file's start: a segment with a TIFF file of one entry.
  constexpr char kExif[] =
      "\xff\xe1\0\x22"
      "Exif\0\0II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0\x06\0\0\0\0\0\0\0";
  return photo.insert(2, std::string(kExif, sizeof kExif - 1));
}

TEST_F(GenerateTest, APhotoIsTurnedAndTheJobSaysSo) {
  wan::v1::GenerationRequest request = TinyRequest();
  request.set_image(TurnedPhoto());
  request.set_width(96);
  request.set_height(64);
  request.clear_outputs();
  request.add_outputs(wan::v1::OUTPUT_KIND_LATENTS);
  const wan::v1::Job turned = server_.Await(server_.Submit(request).name());
  ASSERT_EQ(turned.state(), wan::v1::JOB_STATE_COMPLETED) << turned.ShortDebugString();
  EXPECT_EQ(turned.request().width(), 64);
  EXPECT_EQ(turned.request().height(), 96);
  EXPECT_EQ(turned.request().background(), "#ffffff");
  EXPECT_EQ(turned.input_image().ShortDebugString(),
            R"(format: "JPEG" width: 64 height: 96 exif_orientation: 6 bits_per_sample: 8)");

  // The same pixels in a file that stores them as they are shown.
  const RgbImage shown = DecodeImage(request.image()).value().image;
  request.set_image(EncodePng(shown.pixels, shown.width, shown.height).value());
  const wan::v1::Job upright = server_.Await(server_.Submit(request).name());
  EXPECT_EQ(upright.input_image().exif_orientation(), 1);
  EXPECT_EQ(Sha256Hex(server_.Download(upright.artifacts(0).name())),
            Sha256Hex(server_.Download(turned.artifacts(0).name())));
}

// The first frame of the job's lossless video as a viewer of its JPEG would see it.
RgbImage FirstFrameThroughJpeg(const std::string& path) {
  const VideoClip clip = ReadVideo(path).value();
  const std::span<const uint8_t> frame(clip.rgb.data(), clip.rgb.size() / clip.frames);
  return DecodeImage(EncodeJpeg(frame, clip.width, clip.height).value()).value().image;
}

// Mean distance of two pictures of one size, in values of 8 bits.
double MeanDistance(const RgbImage& a, const RgbImage& b) {
  double sum = 0;
  for (size_t i = 0; i < a.pixels.size(); ++i) sum += std::abs(a.pixels[i] - b.pixels.at(i));
  return sum / static_cast<double>(a.pixels.size());
}

TEST_F(GenerateTest, PreviewsAreJpegsOfTheEstimate) {
  grpc::ClientContext context;
  wan::v1::GenerateRequest request;
  *request.mutable_request() = TinyRequest(/*steps=*/4);
  request.mutable_request()->set_solver(wan::v1::SOLVER_EULER);
  request.mutable_request()->set_preview_interval(2);
  request.mutable_request()->add_outputs(wan::v1::OUTPUT_KIND_LOSSLESS_MKV);
  const auto reader = server_.videos().Generate(&context, request);
  std::map<int, RgbImage> previews;  // by step
  std::string video;
  for (Event event; reader->Read(&event);) {
    if (event.has_completed()) video = event.completed().artifacts(0).name();
    if (!event.has_preview()) continue;
    EXPECT_EQ(event.sequence(), 0);
    const absl::StatusOr<DecodedImage> preview = DecodeImage(event.preview().jpeg());
    ASSERT_TRUE(preview.ok()) << preview.status();
    EXPECT_EQ(preview->image.width, 64);
    EXPECT_EQ(preview->image.height, 32);
    previews[event.preview().step()] = preview->image;
  }
  EXPECT_TRUE(reader->Finish().ok());
  // A reader that is slow may miss the first, never the stream's end.
  ASSERT_EQ(previews.count(4), 1u);
  EXPECT_LE(previews.size(), 2u);
  // Euler's last step ends where its estimate is: the last preview is the video's first frame.
  const std::string path = folder_.File("video.mkv");
  std::ofstream(path, std::ios::binary) << server_.Download(video);
  const RgbImage frame = FirstFrameThroughJpeg(path);
  EXPECT_LE(MeanDistance(previews[4], frame), 1);
  if (previews.count(2) == 1) {
    EXPECT_GT(MeanDistance(previews[2], frame), 2);
  }
}

TEST_F(GenerateTest, ModelsAndDevicesAreDescribed) {
  grpc::ClientContext context;
  wan::v1::ListModelsResponse models;
  ASSERT_TRUE(server_.models().ListModels(&context, {}, &models).ok());
  ASSERT_EQ(models.models_size(), 1);
  EXPECT_EQ(models.models(0).state(), wan::v1::MODEL_STATE_READY);
  EXPECT_EQ(models.models(0).family(), "ti2v-5b");
  EXPECT_EQ(models.models(0).components_size(), 3);
  EXPECT_EQ(models.models(0).defaults().steps(), 50);

  grpc::ClientContext watch_context;
  wan::v1::WatchDevicesRequest watch;
  watch.set_count(1);
  const auto reader = server_.telemetry().WatchDevices(&watch_context, watch);
  wan::v1::WatchDevicesResponse response;
  ASSERT_TRUE(reader->Read(&response));
  ASSERT_EQ(response.devices_size(), 1);
  EXPECT_EQ(response.devices(0).device(), "cpu");
  EXPECT_FALSE(response.devices(0).has_power_watts());
  EXPECT_FALSE(reader->Read(&response));
  EXPECT_TRUE(reader->Finish().ok());
}

}  // namespace
}  // namespace wan::e2e
