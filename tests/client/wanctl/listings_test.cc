#include "client/wanctl/listings.h"

#include <gmock/gmock.h>
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <string>

#include "wan/v1/video_generation.pb.h"

namespace wan::client {
namespace {

template <typename Message>
Message FromText(const std::string& text) {
  Message message;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &message)) << text;
  return message;
}

TEST(ListingsTest, JobTable) {
  const auto response = FromText<wan::v1::ListJobsResponse>(R"(
      jobs { name: "jobs/a1" state: JOB_STATE_RUNNING create_time { seconds: 1767225600 }
             request { model: "5b" prompt: "A red cat runs on the beach, and then it stops." }
             progress { step: 3 total: 10 eta_seconds: 61 } }
      jobs { name: "jobs/b2" state: JOB_STATE_QUEUED queue_position: 0
             request { model: "5b" prompt: "猫\n猫" } }
      jobs { name: "jobs/c3" state: JOB_STATE_COMPLETED progress { step: 10 total: 10 } }
      jobs { name: "jobs/d4" })");
  EXPECT_EQ(JobTable({response.jobs().begin(), response.jobs().end()}),
            "Job      State        Model  Created               Progress         Prompt\n"
            "jobs/a1  RUNNING      5b     2026-01-01 00:00:00Z  3/10, 1:01 left  "
            "A red cat runs on the beach, and then it...\n"
            "jobs/b2  QUEUED       5b     -                     next to run      猫?猫\n"
            "jobs/c3  COMPLETED    -      -                     -                -\n"
            "jobs/d4  UNSPECIFIED  -      -                     -                -\n");
  EXPECT_EQ(JobTable({}), "Job  State  Model  Created  Progress  Prompt\n");
}

TEST(ListingsTest, AQualityIsShownWhereItIsNotExact) {
  const auto jobs = FromText<wan::v1::ListJobsResponse>(R"(
      jobs { name: "jobs/a1" request { prompt: "a" quality: QUALITY_FAST } }
      jobs { name: "jobs/b2" request { prompt: "b" quality: QUALITY_EXACT } }
      jobs { name: "jobs/c3" request { prompt: "c" } })");
  EXPECT_EQ(JobTable({jobs.jobs().begin(), jobs.jobs().end()}),
            "Job      State        Model  Created  Progress  Quality  Prompt\n"
            "jobs/a1  UNSPECIFIED  -      -        -         fast     a\n"
            "jobs/b2  UNSPECIFIED  -      -        -         exact    b\n"
            "jobs/c3  UNSPECIFIED  -      -        -         exact    c\n");
  EXPECT_THAT(JobTable({jobs.jobs(1), jobs.jobs(2)}), testing::Not(testing::HasSubstr("Quality")));
  EXPECT_THAT(JobText(jobs.jobs(0)), testing::HasSubstr("Quality:     fast\n"));
  EXPECT_THAT(JobText(jobs.jobs(1)), testing::Not(testing::HasSubstr("Quality")));
  wan::v1::Receipt receipt;
  *receipt.mutable_request() = jobs.jobs(0).request();
  EXPECT_THAT(ReceiptText(receipt), testing::HasSubstr("Quality:     fast\n"));
  const auto model =
      FromText<wan::v1::Model>(R"(name: "models/a" path: "/a" defaults { quality: QUALITY_HIGH })");
  EXPECT_THAT(ModelTable({model}), testing::AllOf(testing::HasSubstr("LoRAs  Quality  Path\n"),
                                                  testing::EndsWith("-      high     /a\n")));
}

TEST(ListingsTest, AQuoteSaysWhatWasDecided) {
  const auto quote = FromText<wan::v1::QuoteResponse>(R"(
      request { width: 64 height: 32 num_frames: 5 quality: QUALITY_FAST decoder: DECODER_TINY }
      steps: 20 flops: 7 eight_bits: true reused_steps: 5 reused_steps: 7 exact_blocks: 0
      exact_blocks: 29)");
  EXPECT_EQ(QuoteText(quote),
            "Video:       64x32, 5 frames, 20 steps\n"
            "Quality:     fast\n"
            "Decoder:     tiny\n"
            "In 8 bits:   products and self-attention of the transformers\n"
            "Exact:       blocks 0, 29\n"
            "Reused:      blocks in 2 of 20 steps: 5, 7\n"
            "Operations:  7\n"
            "Jobs ahead:  0\n");
}

TEST(ListingsTest, JobText) {
  const auto job = FromText<wan::v1::Job>(R"(
      name: "jobs/a1" state: JOB_STATE_FAILED attempt: 2 image_sha256: "abcd"
      request { model: "5b" prompt: "a cat" negative_prompt: "a dog" width: 1280 height: 704
                num_frames: 121 fps: 24 steps: 50 solver: SOLVER_DPMPP guidance_scale: 3.5
                guidance_scale: 4 shift: 5 seed: 42 priority: 7 request_id: "r1"
                loras { name: "style" scale: 1 } loras { name: "light" scale: -0.5 }
                initial_latents { sha256: "1234" } latents { job: "jobs/a0" sha256: "5678" }
                strength: 0.6
                labels { key: "take" value: "2" } labels { key: "film" value: "x" }
                deadline { seconds: 1767225660 } }
      create_time { seconds: 1767225600 } start_time { seconds: 1767225601 }
      end_time { seconds: 1767225602 }
      artifacts { name: "jobs/a1/artifacts/video.mp4" size_bytes: 2048 sha256: "ef01" }
      error { code: 13 message: "out of memory" })");
  EXPECT_EQ(JobText(job),
            "Job:         jobs/a1\n"
            "State:       FAILED (attempt 2)\n"
            "Model:       5b\n"
            "Prompt:      a cat\n"
            "Not:         a dog\n"
            "Image:       abcd\n"
            "First noise: sha256 1234\n"
            "Latents:     jobs/a0, sha256 5678\n"
            "Video:       1280x704, 121 frames, 24 fps\n"
            "Sampling:    50 steps of dpm++, guidance 3.5,4, shift 5, seed 42, strength 0.6\n"
            "LoRAs:       style, light x -0.5\n"
            "Priority:    7\n"
            "Request ID:  r1\n"
            "Labels:      film=x, take=2\n"
            "Created:     2026-01-01 00:00:00Z\n"
            "Started:     2026-01-01 00:00:01Z\n"
            "Ended:       2026-01-01 00:00:02Z\n"
            "Deadline:    2026-01-01 00:01:00Z\n"
            "Artifact:    jobs/a1/artifacts/video.mp4  2.0 KiB  sha256 ef01\n"
            "Error:       INTERNAL: out of memory\n");
  EXPECT_EQ(JobText(FromText<wan::v1::Job>(
                R"(name: "jobs/b2" state: JOB_STATE_RUNNING attempt: 1
                   progress { step: 1 total: 4 })")),
            "Job:         jobs/b2\n"
            "State:       RUNNING\n"
            "Progress:    1/4\n");
}

TEST(ListingsTest, JobTextSaysWhatWasDoneWithTheImage) {
  const auto text = [](const std::string& image) {
    return JobText(FromText<wan::v1::Job>(
        R"(name: "jobs/a1" state: JOB_STATE_QUEUED input_image { )" + image + "}"));
  };
  EXPECT_EQ(text(R"(format: "JPEG" width: 320 height: 192 exif_orientation: 1 bits_per_sample: 8)"),
            "Job:         jobs/a1\n"
            "State:       QUEUED\n"
            "Image read:  JPEG, 320x192\n");
  EXPECT_EQ(text(R"(format: "PNG" width: 192 height: 320 exif_orientation: 6 grey: true
                    blended_over: "#ffffff" bits_per_sample: 16)"),
            "Job:         jobs/a1\n"
            "State:       QUEUED\n"
            "Image read:  PNG, 192x320, turned as EXIF orientation 6 says, blended over #ffffff, "
            "16 bits scaled to 8, grey\n");
}

TEST(ListingsTest, JobTextShowsWhatIsMissingAndOnWhatTheBitsDepend) {
  const auto job = FromText<wan::v1::Job>(R"(
      name: "jobs/a1" state: JOB_STATE_COMPLETED attempt: 3
      lost_attempts { attempt: 1 end_time { seconds: 1767225600 } stage: "VAE_Decoding" }
      lost_attempts { attempt: 2 end_time { seconds: 1767225660 } }
      omissions { error { code: 8 message: "out of memory" } }
      omissions { output: OUTPUT_KIND_LOSSLESS_MKV error { code: 14 message: "the disk is full" } }
      provenance { server_version: "1.2.3" noise_device: "cuda" device_name: "NVIDIA H200"
                   dtype: "bf16" libraries: "LibTorch 2.11.0, cuDNN 91900" batched_guidance: true
                   decode_tile_rows: 2 decode_tile_columns: 3 cpu_components: "text_encoder"
                   cpu_components: "vae" })");
  EXPECT_EQ(JobText(job),
            "Job:         jobs/a1\n"
            "State:       COMPLETED (attempt 3)\n"
            "Missing:     previews: RESOURCE_EXHAUSTED: out of memory\n"
            "Missing:     mkv: UNAVAILABLE: the disk is full\n"
            "Lost:        attempt 1, last reported 2026-01-01 00:00:00Z in VAE_Decoding\n"
            "Lost:        attempt 2, last reported 2026-01-01 00:01:00Z\n"
            "Device:      NVIDIA H200\n"
            "Dtype:       bf16\n"
            "Libraries:   LibTorch 2.11.0, cuDNN 91900\n"
            "Noise:       drawn by the generator of cuda\n"
            "Guidance:    both forwards of a step in one batch\n"
            "Decoded in:  2x3 tiles\n"
            "On the CPU:  text_encoder, vae\n"
            "Server:      1.2.3\n");
  // Whole frames and separate forwards are the rule, and a running attempt is not lost.
  EXPECT_EQ(JobText(FromText<wan::v1::Job>(R"(
                name: "jobs/b2" state: JOB_STATE_RUNNING lost_attempts { attempt: 1 }
                provenance { noise_device: "cpu" decode_tile_rows: 1 decode_tile_columns: 1 })")),
            "Job:         jobs/b2\n"
            "State:       RUNNING\n"
            "Noise:       drawn by the generator of cpu\n");
}

TEST(ListingsTest, ModelTable) {
  const auto response = FromText<wan::v1::ListModelsResponse>(R"(
      models { name: "models/5b" state: MODEL_STATE_READY path: "/ckpt" family: "ti2v-5b"
               layout: "original" warm_shapes { width: 1280 height: 704 num_frames: 121 }
               loras { name: "style" } loras { name: "light" }
               components { name: "transformer" bytes: 10737418240 device: "cuda:0" dtype: "bf16" }
               components { name: "vae" bytes: 1073741824 device: "cuda:0" dtype: "fp32" } }
      models { name: "models/bad" state: MODEL_STATE_FAILED
               error { code: 15 message: "a.safetensors: tensor 'x' is cut" } })");
  EXPECT_EQ(ModelTable({response.models().begin(), response.models().end()}),
            "Model       State   Family   Layout     Weights  Device  Dtype      Warm shapes   "
            "LoRAs        "
            "Path\n"
            "models/5b   READY   ti2v-5b  original  11.0 GiB  cuda:0  bf16,fp32  1280x704x121  "
            "style,light  "
            "/ckpt\n"
            "models/bad  FAILED  -        -                -  -       -          -             -   "
            "         "
            "-\n"
            "models/bad: DATA_LOSS: a.safetensors: tensor 'x' is cut\n");
}

TEST(ListingsTest, WhatLorasAreMergedWith) {
  const auto response = FromText<wan::v1::ListModelsResponse>(R"(
      models { name: "models/5b" state: MODEL_STATE_READY
               loras { name: "style" parts { expert: "only" path: "/l/s.safetensors" rank: 4
                                             tensors: 60 min_factor: 0.5 max_factor: 0.5 } }
               loras { name: "fast" parts { expert: "high" path: "/l/f.safetensors" rank: 64
                                            tensors: 400 min_factor: 0.125 max_factor: 1
                                            left_out_tensors: "a" left_out_tensors: "b"
                                            left_out_tensors: "c" left_out_tensors: "d"
                                            left_out_count: 322 } }
               loras { name: "norms" parts { expert: "low" path: "/l/n" tensors: 2 } } })");
  EXPECT_THAT(
      ModelTable({response.models().begin(), response.models().end()}),
      testing::EndsWith(
          "models/5b LoRA style: 60 tensors, rank 4, factor 0.5, /l/s.safetensors\n"
          "models/5b LoRA fast@high: 400 tensors, rank 64, factor 0.125 to 1, /l/f.safetensors\n"
          "models/5b LoRA fast@high: 322 tensors were left out, for which the model has no place: "
          "a, b, c, ...\n"
          "models/5b LoRA norms@low: 2 tensors, /l/n\n"));
}

TEST(ListingsTest, WidenedWeightsAreNamed) {
  const auto response = FromText<wan::v1::ListModelsResponse>(R"(
      models { name: "models/a" state: MODEL_STATE_READY
               components { name: "transformer" dtype: "bf16" stored_as: "Q4_K, Q6_K" }
               components { name: "vae" dtype: "fp32" } })");
  EXPECT_THAT(ModelTable({response.models().begin(), response.models().end()}),
              testing::EndsWith("\nmodels/a transformer: widened from Q4_K, Q6_K\n"));
}

TEST(ListingsTest, WhatADistilledCheckpointWasRecognisedAs) {
  const auto response = FromText<wan::v1::ListModelsResponse>(R"(
      models { name: "models/5b" state: MODEL_STATE_READY }
      models { name: "models/fast" state: MODEL_STATE_READY
               distillation: "FastWan, by a sign: 3 steps of lcm without guidance" })");
  EXPECT_THAT(ModelTable({response.models().begin(), response.models().end()}),
              testing::EndsWith("\nmodels/fast: recognised as FastWan, by a sign: 3 steps of lcm "
                                "without guidance\n"));
}

TEST(ListingsTest, WhetherTheTinyDecoderCanBeUsed) {
  const auto response = FromText<wan::v1::ListModelsResponse>(R"(
      models { name: "models/5b" state: MODEL_STATE_READY tiny_decoder: true }
      models { name: "models/cut" state: MODEL_STATE_READY
               tiny_decoder_error { code: 15 message: "/m/taew2_2.pth: is cut" } })");
  EXPECT_THAT(ModelTable({response.models().begin(), response.models().end()}),
              testing::EndsWith("\nmodels/5b: has a tiny decoder\n"
                                "models/cut: its tiny decoder cannot be used: /m/taew2_2.pth: is "
                                "cut\n"));
}

TEST(ListingsTest, TheKindsAndStepsOfLorasAndThoseThatWereSkipped) {
  const auto response = FromText<wan::v1::ListModelsResponse>(R"(
      models { name: "models/a14b" state: MODEL_STATE_READY
               loras { name: "fast" schedule_recognised: true
                       schedule { steps: 4 guidance_scale: 1 shift: 5 boundary_step: 2 }
                       parts { expert: "high" path: "/l/f" rank: 64 tensors: 400
                               min_factor: 1 max_factor: 1 kinds: "DoRA" kinds: "LoRA" } }
               skipped_loras { name: "bad" error { code: 15 message: "/l/bad: is cut" } } })");
  EXPECT_THAT(ModelTable({response.models().begin(), response.models().end()}),
              testing::EndsWith(
                  "models/a14b LoRA fast@high: DoRA, LoRA, 400 tensors, rank 64, factor 1, /l/f\n"
                  "models/a14b LoRA fast: 4 steps, guidance 1, shift 5, low noise from step 3, "
                  "recognised from its files\n"
                  "models/a14b LoRA bad was skipped: /l/bad: is cut\n"));
}

TEST(ListingsTest, WhereAModelIs) {
  const auto response = FromText<wan::v1::ListModelsResponse>(R"(
      models { name: "models/5b" state: MODEL_STATE_READY
               components { name: "vae" bytes: 1073741824 device: "cuda:0" dtype: "fp32" }
               placements { group: 0 state: MODEL_STATE_READY
                 components { name: "vae" bytes: 1073741824 device: "cuda:0" dtype: "fp32" } }
               placements { group: 1 state: MODEL_STATE_FAILED error { code: 8 message: "full" } }
               placements { group: 2 state: MODEL_STATE_READY
                 components { name: "transformer" device: "cuda:2,cuda:3" dtype: "bf16" }
                 components { name: "vae" bytes: 1073741824 device: "cuda:2" dtype: "fp32" } } })");
  EXPECT_THAT(ModelTable({response.models().begin(), response.models().end()}),
              testing::AllOf(testing::HasSubstr("1.0 GiB  cuda:0,cuda:2,cuda:3  "),
                             testing::HasSubstr("models/5b in group 1: RESOURCE_EXHAUSTED: full")));
}

TEST(ListingsTest, TheGroupsOfDevices) {
  const auto samples = FromText<wan::v1::WatchDevicesResponse>(R"(
      devices { device: "cpu" name: "EPYC" } devices { device: "cuda:1" name: "H200" group: 1 })");
  EXPECT_THAT(DeviceTable(samples), testing::AllOf(testing::HasSubstr("Process (GiB)  Group\n"),
                                                   testing::EndsWith("-      1\n")));
}

TEST(ListingsTest, DeviceTable) {
  const auto samples = FromText<wan::v1::WatchDevicesResponse>(R"(
      devices { device: "cpu" name: "EPYC" memory_used_bytes: 1073741824
                memory_total_bytes: 4294967296 cpu_percent: 12.5 process_cpu_percent: 4 process_memory_bytes: 536870912 }
      devices { device: "cuda:0" name: "NVIDIA H200" sm_activity_percent: 97.25
                allocator_bytes: 2147483648 power_watts: 512.4 temperature_celsius: 61
                sm_clock_mhz: 1980 })");
  EXPECT_EQ(DeviceTable(samples),
            "Device  Name         SM %  Used (GiB)  Total (GiB)  Allocator (GiB)  Power (W)  "
            "Temp (C)  SM clock (MHz)  CPU %  Own CPU %  Process (GiB)\n"
            "cpu     EPYC            -        1.00         4.00                -          -  "
            "       -               -   12.5        4.0           0.50\n"
            "cuda:0  NVIDIA H200  97.2           -            -             2.00        512  "
            "      61            1980      -          -              -\n");
}

TEST(ListingsTest, ServerInfoText) {
  const auto info = FromText<wan::v1::ServerInfo>(R"(
      version: "0.1.0" start_time { seconds: 1767225600 } devices: "cuda:0" devices: "cuda:1"
      dtype: "bf16" queued_jobs: 3 running_jobs: 1 queue_capacity: 64
      libraries { key: "libtorch" value: "2.11.0" } libraries { key: "grpc" value: "1.51.1" })");
  EXPECT_EQ(ServerInfoText(info),
            "Version:     0.1.0\n"
            "Started:     2026-01-01 00:00:00Z\n"
            "Devices:     cuda:0, cuda:1\n"
            "Dtype:       bf16\n"
            "Jobs:        1 running, 3 waiting of at most 64\n"
            "Library:     grpc 1.51.1\n"
            "Library:     libtorch 2.11.0\n");
}

TEST(ListingsTest, GroupsOfAServer) {
  const auto info = FromText<wan::v1::ServerInfo>(R"(
      groups { number: 0 devices: "cuda:0" devices: "cuda:1" resident_models: "a"
               resident_models: "b" job: "jobs/1" }
      groups { number: 1 devices: "cuda:2" }
      groups { number: 2 devices: "cuda:3" error { code: 14 message: "it fell off the bus" } })");
  EXPECT_THAT(ServerInfoText(info),
              testing::AllOf(testing::HasSubstr("0: cuda:0,cuda:1, runs jobs/1, has a,b\n"),
                             testing::HasSubstr("1: cuda:2, free\n"),
                             testing::HasSubstr("2: cuda:3, has left: it fell off the bus\n")));
}

TEST(ListingsTest, WhyAServerDoesNotServe) {
  const auto info = FromText<wan::v1::ServerInfo>(R"(
      not_serving_reasons { reason: "DRAINING" message: "it is drained" }
      not_serving_reasons { reason: "DISK_FULL" message: "1 byte is free" })");
  EXPECT_THAT(ServerInfoText(info),
              testing::HasSubstr("Not serving: it is drained; 1 byte is free\n"));
}

}  // namespace
}  // namespace wan::client
