#include "server/http/video_request.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "engine/api/errors.h"
#include "engine/api/request_limits.h"
#include "engine/api/utf8.h"
#include "proto/enum_words.h"
#include "server/conversion/names.h"
#include "server/http/field_names.h"
#include "server/http/form_fields.h"
#include "server/http/video_id.h"

namespace wan::server {
namespace {

using nlohmann::json;
using Request = wan::v1::GenerationRequest;

constexpr char kImage[] = "input_reference";
constexpr char kUserLabel[] = "user";
// All current models have this stride; it is used while the model is unknown.
constexpr int32_t kFramesStride = 4;
constexpr double kMaxSeconds = 3'600;

// Takes the fields "size", or "width" and "height". `model` is null if the model is unknown.
void TakeSize(FormFields& fields, const wan::v1::Model* model,
              wan::v1::GenerationRequest& request) {
  const int32_t stride = model == nullptr ? 0 : model->spatial_stride();
  const std::string right =
      stride > 0 ? absl::StrCat("a multiple of ", stride, " from ", stride, " to ", kMaxSide)
                 : absl::StrCat("a whole number of pixels up to ", kMaxSide);
  const std::optional<json> size = fields.TakeNotBlank("size");
  const std::optional<int64_t> width = fields.Integer("width", right);
  const std::optional<int64_t> height = fields.Integer("height", right);
  request.set_exact_size(fields.Flag("exact_size"));
  if (width.has_value()) request.set_width(static_cast<int32_t>(*width));
  if (height.has_value()) request.set_height(static_cast<int32_t>(*height));
  if (!size.has_value()) return;
  if (width.has_value() || height.has_value()) {
    fields.Wrong("size", "excludes width and height; give either size or these");
    return;
  }
  // Accept '*' as well, because Wan's generate.py writes "1280*704".
  const auto* const text = size->get_ptr<const std::string*>();
  const size_t by = text == nullptr ? std::string::npos : text->find_first_of("x*");
  int32_t across = 0;
  int32_t down = 0;
  if (by == std::string::npos || !absl::SimpleAtoi(text->substr(0, by), &across) ||
      !absl::SimpleAtoi(text->substr(by + 1), &down)) {
    fields.Unfit("size", *size, "WIDTHxHEIGHT, for example 1280x704");
    return;
  }
  request.set_width(across);
  request.set_height(down);
}

// Takes the fields "num_frames" and "fps", or "seconds". `model` is null if the model is unknown;
// then the caller later gets an error for that.
void TakeLength(FormFields& fields, const wan::v1::Model* model,
                wan::v1::GenerationRequest& request) {
  const int32_t known = model == nullptr ? 0 : model->temporal_stride();
  const int32_t stride = known > 0 ? known : kFramesStride;
  const std::optional<int64_t> frames = fields.Integer(
      "num_frames", absl::StrCat("a whole number from 1 to ", (kMaxLatentFrames - 1) * stride + 1));
  const std::optional<int64_t> fps =
      fields.Integer("fps", absl::StrCat("a whole number from 1 to ", kMaxFps));
  const std::optional<double> seconds = fields.Number("seconds");
  if (frames.has_value()) request.set_num_frames(static_cast<int32_t>(*frames));
  if (fps.has_value()) request.set_fps(static_cast<int32_t>(*fps));
  if (!seconds.has_value()) return;
  if (frames.has_value()) {
    fields.Wrong("seconds", "excludes num_frames; give one of the two");
    return;
  }
  if (*seconds <= 0 || *seconds > kMaxSeconds) {
    fields.Wrong("seconds",
                 absl::StrCat("is ", *seconds, "; must be more than 0 and at most ", kMaxSeconds));
    return;
  }
  double rate = fps.has_value() ? static_cast<double>(*fps) : 0;
  if (!fps.has_value() && model != nullptr) rate = model->defaults().fps();
  if (rate <= 0) return;
  const double steps = std::round(*seconds * rate / stride);
  request.set_num_frames(static_cast<int32_t>(
      std::min<double>(steps * stride + 1, std::numeric_limits<int32_t>::max())));
}

// Takes the guidance scales of both experts. In the request message, the scale for low noise comes
// first. In this API, as in other servers, `guidance_scale` is for high noise and
// `guidance_scale_2` for low noise.
void TakeGuidance(FormFields& fields, wan::v1::GenerationRequest& request) {
  const std::optional<double> high = fields.Number("guidance_scale");
  const std::optional<double> low = fields.Number("guidance_scale_2");
  if (low.has_value() && !high.has_value()) {
    fields.Wrong("guidance_scale_2", "needs guidance_scale beside it, the one for high noise");
    return;
  }
  if (low.has_value()) request.add_guidance_scale(*low);
  if (high.has_value()) request.add_guidance_scale(*high);
}

// Takes the field `name`, whose value is one of the words of Enum, or `synonym` for another of
// them.
template <typename Enum>
std::optional<Enum> TakeWord(FormFields& fields, const char* name,
                             const std::pair<std::string_view, Enum>& synonym = {}) {
  const std::optional<json> given = fields.TakeNotBlank(name);
  if (!given.has_value()) return std::nullopt;
  const std::string word = given->is_string() ? given->get<std::string>() : std::string();
  if (!word.empty() && word == synonym.first) return synonym.second;
  const std::optional<Enum> value = ValueOf<Enum>(word);
  if (!value.has_value()) {
    fields.Unfit(name, *given, absl::StrCat("one of ", absl::StrJoin(WordsOf<Enum>(), ", ")));
  }
  return value;
}

// Takes one entry of the field "loras": {"name", "scale", "high_scale", "low_scale"}.
void TakeLora(FormFields& fields, const std::string& field, json& entry,
              wan::v1::GenerationRequest& request) {
  static const std::vector<std::string_view> kKnown = {"name", "scale", "high_scale", "low_scale"};
  if (!entry.is_object()) {
    fields.Unfit(field, entry, "an object such as {\"name\": \"style\", \"scale\": 0.8}");
    return;
  }
  for (const auto& [key, value] : entry.items()) {
    if (std::find(kKnown.begin(), kKnown.end(), key) != kKnown.end()) continue;
    const std::string_view meant = FieldMeantBy(key, kKnown);
    fields.Wrong(
        absl::StrCat(field, ".", key.substr(0, kMaxShownName)),
        meant.empty()
            ? "is not a field of a LoRA; it has name, scale, high_scale and low_scale"
            : absl::StrCat("is not a field of a LoRA; did you mean ", std::string(meant), "?"));
  }
  wan::v1::LoraScale* const lora = request.add_loras();
  const std::string name_field = field + ".name";
  json& name = entry["name"];
  if (name.is_null()) {
    fields.Wrong(name_field, "must be given: the name of a LoRA of the model");
  } else if (auto text = fields.TextOf(name_field, name)) {
    if (text->empty())
      fields.Wrong(name_field, "is empty; must be the name of a LoRA of the model");
    lora->set_name(*std::move(text));
  }
  using Scale = std::pair<const char*, void (wan::v1::LoraScale::*)(double)>;
  for (const auto& [key, set] : {Scale("scale", &wan::v1::LoraScale::set_scale),
                                 Scale("high_scale", &wan::v1::LoraScale::set_high_scale),
                                 Scale("low_scale", &wan::v1::LoraScale::set_low_scale)}) {
    const json& scale = entry[key];
    if (scale.is_null()) continue;
    const auto number = fields.NumberOf(absl::StrCat(field, ".", key), scale);
    if (number.has_value()) (lora->*set)(*number);
  }
}

// Takes the field "loras": a list, or in a multipart body also the list's JSON text.
void TakeLoras(FormFields& fields, wan::v1::GenerationRequest& request) {
  constexpr char kLoras[] = "loras";
  std::optional<json> loras = fields.Take(kLoras);
  if (!loras.has_value()) return;
  if (loras->is_string() && !loras->get_ref<const std::string&>().empty() &&
      loras->get_ref<const std::string&>().size() <= kMaxPartHeaderBytes) {
    loras = json::parse(loras->get<std::string>(), nullptr, /*allow_exceptions=*/false);
  }
  if (IsEmptyText(*loras) || (loras->is_array() && loras->empty())) {
    fields.Wrong(kLoras, "is empty; must name a LoRA, or be left out");
    return;
  }
  if (!loras->is_array()) {
    fields.Wrong(kLoras, "must be a list such as [{\"name\": \"style\", \"scale\": 0.8}]");
    return;
  }
  for (size_t i = 0; i < loras->size(); ++i) {
    TakeLora(fields, absl::StrCat(kLoras, "[", i, "]"), (*loras)[i], request);
  }
}

// Returns the bytes that a data URL, "data:image/png;base64,...", contains.
std::optional<std::string> ImageOf(const std::string& url, FormFields& fields) {
  constexpr absl::string_view kScheme = "data:";
  constexpr absl::string_view kEncoding = ";base64,";
  const size_t at = url.substr(0, 200).find(std::string(kEncoding));
  std::string image;
  if (absl::StartsWith(url, kScheme) && at != std::string::npos &&
      absl::Base64Unescape(absl::string_view(url).substr(at + kEncoding.size()), &image)) {
    return image;
  }
  fields.Wrong(kImage,
               "must hold the image itself, because the server fetches nothing: a file of a "
               "multipart body, or an image_url such as data:image/png;base64,...");
  return std::nullopt;
}

// Takes the image: a file, a data URL, or {"image_url": data URL}. Refuses an empty value, because
// the server would make a video without an image.
void TakeImage(FormFields& fields, std::map<std::string, std::string>& files,
               wan::v1::GenerationRequest& request) {
  std::optional<json> value = fields.Take(kImage);
  std::optional<std::string> image;
  if (auto file = files.extract(kImage)) {
    image = std::move(file.mapped());
  } else if (value.has_value()) {
    if (value->is_object() && value->size() == 1 && value->contains("image_url")) {
      // Move in two steps, because `value` owns the URL that replaces it.
      json url = std::move((*value)["image_url"]);
      value = std::move(url);
    }
    if (value->empty() || IsEmptyText(*value)) {
      image.emplace();
    } else {
      const std::string none;
      image = ImageOf(value->is_string() ? value->get_ref<const std::string&>() : none, fields);
    }
  }
  if (!image.has_value()) return;
  if (image->empty()) {
    fields.Wrong(kImage, "is empty; must hold an image, or be left out");
    return;
  }
  request.set_image(*std::move(image));
}

// Takes the latents of an earlier video, {"video": "video_ID"}, or in a multipart body that
// object's JSON text. Only the gRPC API accepts files of latents.
void TakeLatents(FormFields& fields, const char* name, wan::v1::LatentsSource* (*source)(Request&),
                 Request& request) {
  constexpr char kRight[] = "an earlier video, for example {\"video\": \"video_ID\"}";
  std::optional<json> value = fields.Take(name);
  if (!value.has_value()) return;
  if (const auto* const text = value->get_ptr<const std::string*>();
      text != nullptr && text->size() <= kMaxPartHeaderBytes) {
    json object = json::parse(*text, nullptr, /*allow_exceptions=*/false);
    if (object.is_object()) value = std::move(object);
  }
  if (!value->is_object() || value->size() != 1 || !value->contains("video")) {
    fields.Unfit(name, *value, kRight);
    return;
  }
  const json& video = (*value)["video"];
  const auto* const id = video.get_ptr<const std::string*>();
  const std::optional<std::string> job = id == nullptr ? std::nullopt : JobNameOf(*id);
  if (!job.has_value()) {
    fields.Unfit(absl::StrCat(name, ".video"), video, "the id of an earlier video, video_ID");
    return;
  }
  source(request)->set_job(*job);
}

// Takes the fields that start from an earlier video: "initial_latents" (the video's noise), and
// "latents" and "strength" (its latents and how much they change).
void TakeEarlierVideo(FormFields& fields, Request& request) {
  TakeLatents(
      fields, "initial_latents", [](Request& r) { return r.mutable_initial_latents(); }, request);
  TakeLatents(
      fields, "latents", [](Request& r) { return r.mutable_latents(); }, request);
  if (const auto strength = fields.Number("strength")) request.set_strength(*strength);
  if (!fields.Flag("keep_latents")) return;
  request.add_outputs(wan::v1::OUTPUT_KIND_MP4);
  request.add_outputs(wan::v1::OUTPUT_KIND_LATENTS);
}

// Takes the field "n", the number of videos in other APIs, which must be 1.
void TakeCount(FormFields& fields) {
  const std::optional<json> count = fields.TakeNotBlank("n");
  if (!count.has_value() || WholeNumber(*count) == 1) return;
  fields.Unfit("n", *count, "1, because a request makes one video; send one request for each");
}

// Sets request_id to the value of the header field Idempotency-Key.
void TakeKey(FormFields& fields, std::optional<std::string_view> key,
             wan::v1::GenerationRequest& request) {
  constexpr char kKey[] = "Idempotency-Key";
  if (!key.has_value()) return;
  if (key->empty()) fields.Wrong(kKey, "is empty; must have some text, or be left out");
  // The key must be UTF-8, because protobuf could not parse a stored request with other bytes.
  if (!IsUtf8(*key)) fields.Wrong(kKey, "is not UTF-8; must be a text in UTF-8");
  request.set_request_id(std::string(*key));
}

// Takes every field of the API. `files` are the form's files; `fields` has all other fields of the
// form.
wan::v1::GenerationRequest TakeAll(FormFields& fields, std::map<std::string, std::string>& files,
                                   std::optional<std::string_view> idempotency_key,
                                   const FindModel& find_model) {
  wan::v1::GenerationRequest request;
  const std::optional<std::string> named = fields.Text("model");
  if (named.has_value()) request.set_model(*named);
  if (auto prompt = fields.Text("prompt")) request.set_prompt(*std::move(prompt));
  if (auto negative = fields.FullText("negative_prompt")) {
    request.set_negative_prompt(*std::move(negative));
  }
  const absl::StatusOr<wan::v1::Model> found = find_model(request.model());
  const wan::v1::Model* const model = found.ok() ? &*found : nullptr;
  if (!named.has_value() && model != nullptr) {
    request.set_model(std::string(BareModelName(model->name())));
  }
  TakeSize(fields, model, request);
  TakeLength(fields, model, request);
  TakeGuidance(fields, request);
  TakeLoras(fields, request);
  TakeImage(fields, files, request);
  if (auto background = fields.FullText("background")) {
    request.set_background(*std::move(background));
  }
  TakeEarlierVideo(fields, request);
  TakeCount(fields);
  if (const auto steps = fields.Integer("num_inference_steps",
                                        absl::StrCat("a whole number from 1 to ", kMaxFlowSteps))) {
    request.set_steps(static_cast<int32_t>(*steps));
  }
  if (const auto interval = fields.Integer(
          "preview_interval", "a whole number of steps from 0, which means never", 0)) {
    request.set_preview_interval(static_cast<int32_t>(*interval));
  }
  if (const auto shift = fields.Number("flow_shift")) request.set_shift(*shift);
  // Other servers call exact "lossless".
  if (const auto quality =
          TakeWord<wan::v1::Quality>(fields, "quality", {"lossless", wan::v1::QUALITY_EXACT})) {
    request.set_quality(*quality);
  }
  if (const auto decoder = TakeWord<wan::v1::Decoder>(fields, "decoder")) {
    request.set_decoder(*decoder);
  }
  constexpr int64_t kMostSeed = std::numeric_limits<int64_t>::max();
  if (const auto seed =
          fields.Integer("seed",
                         absl::StrCat("a whole number from 0 to ", kMostSeed,
                                      ", or a negative one, with which the server draws a seed"),
                         std::numeric_limits<int64_t>::min(), kMostSeed)) {
    request.set_seed(*seed);
  }
  request.set_progressive(fields.Flag("progressive"));
  if (const auto resume = TakeWord<wan::v1::Resume>(fields, "resume")) {
    request.set_resume(*resume);
  }
  if (auto user = fields.FullText("user")) {
    (*request.mutable_labels())[kUserLabel] = *std::move(user);
  }
  if (auto url = fields.FullText("webhook_url")) request.set_webhook_url(*std::move(url));
  TakeKey(fields, idempotency_key, request);
  return request;
}

}  // namespace

absl::StatusOr<wan::v1::GenerationRequest> ToGenerationRequest(
    Form form, std::optional<std::string_view> idempotency_key, const FindModel& find_model) {
  FormFields fields(form);
  wan::v1::GenerationRequest request = TakeAll(fields, form.files, idempotency_key, find_model);
  if (absl::Status status = fields.End(form.files); !status.ok()) return status;
  return request;
}

std::vector<std::string_view> VideoFieldNames() {
  Form form;
  FormFields fields(form);
  TakeAll(fields, form.files, std::nullopt,
          [](std::string_view) { return absl::NotFoundError("no model is needed for the names"); });
  return fields.known();
}

}  // namespace wan::server
