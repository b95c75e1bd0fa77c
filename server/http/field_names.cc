#include "server/http/field_names.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "server/config/nearest_name.h"
#include "wan/v1/generation.pb.h"

namespace wan::server {
namespace {

constexpr std::string_view kIdempotencyKey = "Idempotency-Key";
// The only label that this API can set.
constexpr std::string_view kUser = "user";

constexpr std::pair<std::string_view, std::string_view> kContractNames[] = {
    {"steps", "num_inference_steps"},
    {"shift", "flow_shift"},
    {"image", "input_reference"},
    {"request_id", kIdempotencyKey},
    {"guidance_scale[0]", "guidance_scale"},
    {"guidance_scale[1]", "guidance_scale"},
    {"latents.job", "latents.video"},
    {"initial_latents.job", "initial_latents.video"},
    {"outputs", "keep_latents"},
};

// For each of our fields, the names that it has in other APIs and programs, in lower case and
// without underscores. The last two rows are fields of an entry of `loras`.
constexpr std::pair<std::string_view, const char*> kMeanings[] = {
    {"num_inference_steps",
     "numsteps inferencesteps samplesteps samplingsteps numsamplingsteps denoisingsteps stepcount "
     "diffusionsteps"},
    {"flow_shift", "sampleshift timestepshift timeshift sigmashift scheduleshift"},
    {"input_reference",
     "imageurl inputimage inputimageurl initimage startimage firstframe firstframeimage "
     "firstframeurl referenceimage imagereference reference images imagefile file img "
     "conditionimage"},
    {"seconds", "duration nseconds numseconds durationseconds videolength length"},
    {"num_frames", "frames nframes framenum framecount numberofframes videoframes"},
    {"fps", "framerate framespersecond rate"},
    {"guidance_scale",
     "cfg cfgscale guidance guidescale sampleguidescale guidancescalehigh guidancehigh "
     "classifierfreeguidance"},
    {"guidance_scale_2", "guidancescalelow guidancelow cfglow guidance2 cfgscale2"},
    {"size", "resolution imagesize videosize dimensions aspectratio"},
    {"negative_prompt", "negative nprompt negprompt negativetext uncondprompt"},
    {"prompt", "text caption description input textprompt positiveprompt"},
    {"loras", "lora lorapath loraname adapters loraweights loramodules"},
    {"quality", "qualitymode qualitypreset precision quantization quantize"},
    {"decoder", "vaedecoder tinydecoder taehv tiny vaemode"},
    {"seed", "randomseed noiseseed baseseed generatorseed"},
    {"n",
     "numvideos nvideos nvariants numoutputs numvideosperprompt numgenerations batchsize "
     "numsamples"},
    {"webhook_url", "webhook callback callbackurl notifyurl"},
    {kUser, "userid safetyidentifier enduser"},
    {"strength", "denoise denoisestrength denoisingstrength noisestrength videostrength"},
    {"keep_latents", "outputlatents savelatents returnlatents outputtype"},
    {"latents", "latent inputvideo sourcevideo videoreference initvideo"},
    {"initial_latents", "initiallatent noiselatents fixedlatents"},
    {"model", "modelid modelname engine checkpoint"},
    {"exact_size", "exact crop forcesize"},
    {"name", "path id loraname adapter adaptername"},
    {"scale", "weight strength multiplier lorascale alpha factor"},
};

// Returns the name in lower case without separators: "numinferencesteps" for "num-inference-steps".
std::string Plain(std::string_view name) {
  std::string plain;
  for (const char c : name) {
    if (absl::ascii_isalnum(static_cast<unsigned char>(c))) {
      plain.push_back(absl::ascii_tolower(static_cast<unsigned char>(c)));
    }
  }
  return plain;
}

}  // namespace

std::string HttpFieldOf(std::string_view field) {
  for (const auto& [ours, theirs] : kContractNames) {
    if (field == ours) return std::string(theirs);
  }
  return std::string(field.starts_with("labels") ? kUser : field);
}

std::string_view FieldMeantBy(std::string_view name, const std::vector<std::string_view>& known) {
  const auto is_known = [&](std::string_view field) {
    return std::find(known.begin(), known.end(), field) != known.end();
  };
  const std::string plain = Plain(name);
  for (const std::string_view field : known) {
    if (!plain.empty() && plain == Plain(field)) return field;
  }
  for (const auto& [ours, theirs] : kContractNames) {
    if (name == ours && is_known(theirs)) return theirs;
  }
  for (const auto& [field, names] : kMeanings) {
    if (!is_known(field)) continue;
    for (const absl::string_view other : absl::StrSplit(names, ' ')) {
      if (other == plain) return field;
    }
  }
  return NearestName(name, known);
}

std::string AdviceForUnknown(std::string_view name, const std::vector<std::string_view>& known) {
  const std::string ours = HttpFieldOf(name);
  if (ours == kIdempotencyKey || Plain(name) == Plain(kIdempotencyKey)) {
    return "send the header Idempotency-Key instead";
  }
  if ((ours == name || ours == kUser) &&
      wan::v1::GenerationRequest::descriptor()->FindFieldByName(std::string(name)) != nullptr) {
    return "only the gRPC API has it (docs/use/api.md)";
  }
  const std::string_view meant = FieldMeantBy(name, known);
  if (meant.empty()) return "leave it out (docs/use/openai.md lists the fields)";
  return absl::StrCat("did you mean ", std::string(meant), "?");
}

}  // namespace wan::server
