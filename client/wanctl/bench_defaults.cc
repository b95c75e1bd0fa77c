#include "client/wanctl/bench_cases.h"

namespace wan::client {
namespace {

// The cases for the server of scripts/demo; each takes seconds on a CPU. That server computes
// everything in fp32, so 'original' differs only in being a first run without a warm-up.
constexpr char kDemo[] = R"(
defaults: {model: demo, profile: true}
cases:
  - name: 01_Preview_128
    prompt: a red circle moves left to right over a dark blue background
    size: 128x128
    frames: 9
    steps: 4
    original: {warm_up: false}
  - name: 02_Default_256
    prompt: a small white circle bounces and an orange triangle grows, on a grey background
    size: 256x256
    frames: 33
    steps: 20
    original: {warm_up: false}
    options:
      one forward a step (guidance 1): {guidance: 1}
)";

// The cases of published reports about Wan2.2, under the reports' names: previews, efficiency,
// quality and fifteen seconds of TI2V-5B at 704p, and T2V-A14B at 480p and 720p. (One report says
// 480p and 720p although its column Res has 1280*704.) 'original' computes the autoencoder in fp32,
// as Wan's generate.py does.
constexpr char kSeeds[] = R"(
defaults:
  model: ti2v-5b
  profile: true
  prompt: >-
    Two anthropomorphic cats in comfy boxing gear and bright gloves fight intensely on a spotlighted stage.
cases:
  - {name: 01_Speed_Preview_704p, size: 1280x704, frames: 161, steps: 5, original: {vae_precision: fp32}}
  - {name: 02_Efficiency_Quality_704p, size: 1280x704, frames: 161, steps: 30, original: {vae_precision: fp32}}
  - {name: 03_Max_Quality_704p, size: 1280x704, frames: 161, steps: 50, original: {vae_precision: fp32}}
  - {name: 04_15s_50steps_720p, size: 1280x704, frames: 361, steps: 50, original: {vae_precision: fp32}}
  - {name: 01_5B_Speed_Preview_704p, size: 1280x704, frames: 81, steps: 5, original: {vae_precision: fp32}}
  - {name: 02_5B_Efficiency_Mode_704p, size: 1280x704, frames: 81, steps: 10, original: {vae_precision: fp32}}
  - name: 03_5B_Performance_Mode_704p
    size: 1280x704
    frames: 81
    steps: 10
    original: {vae_precision: fp32}
    options:
      autoencoder in TF32: {vae_precision: tf32}
      autoencoder in bf16: {vae_precision: bf16}
      without a warm-up: {warm_up: false}
  - {name: 01_Speed_Preview_480p, size: 1280x704, frames: 81, steps: 5, original: {vae_precision: fp32}}
  - {name: 02_Efficiency_Mode_720p, size: 1280x704, frames: 81, steps: 10, original: {vae_precision: fp32}}
  - {name: 03_Performance_Mode_720p, size: 1280x704, frames: 81, steps: 10, original: {vae_precision: fp32}}
  - {name: 04_14B_Speed_Preview_480p, model: t2v-a14b, size: 832x480, frames: 81, steps: 5, original: {vae_precision: fp32}}
  - name: 05_14B_Map_720p
    model: t2v-a14b
    size: 1280x720
    frames: 81
    steps: 40
    original: {vae_precision: fp32}
)";

}  // namespace

const char* DefaultBenchCases(const std::string& name) {
  if (name == "demo") return kDemo;
  if (name == "seeds") return kSeeds;
  return nullptr;
}

}  // namespace wan::client
