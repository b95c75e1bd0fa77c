#include "server/http/video_request.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "engine/api/errors.h"

namespace wan::server {
namespace {

using nlohmann::json;

constexpr char kImage[] = "input_reference";
// How OpenAI's clients write {"input_reference": {"image_url": ...}} in a multipart body.
constexpr char kImageUrl[] = "input_reference[image_url]";
constexpr char kUserLabel[] = "user";
constexpr int32_t kFramesStride = 4;  // of every model that there is; used before one is known
constexpr double kMaxSeconds = 3'600;

// What stands where, for messages.
std::string Shown(const json& value) {
  constexpr size_t kMost = 60;
  std::string text = value.dump(-1, ' ', true, json::error_handler_t::replace);
  if (text.size() > kMost) text = text.substr(0, kMost) + "...";
  return text;
}

// Takes the fields of a form one by one and notes what is wrong with them.
class Fields {
 public:
  explicit Fields(std::map<std::string, json> fields) : fields_(std::move(fields)) {}

  void Wrong(std::string_view field, std::string_view description) {
    violations_.push_back({std::string(field), std::string(description)});
  }

  std::optional<json> Take(const std::string& name) {
    const auto found = fields_.find(name);
    if (found == fields_.end()) return std::nullopt;
    json value = std::move(found->second);
    fields_.erase(found);
    return value;
  }

  std::optional<std::string> Text(const std::string& name) {
    std::optional<json> value = Take(name);
    if (!value.has_value()) return std::nullopt;
    if (value->is_string()) return std::move(value->get_ref<std::string&>());
    Wrong(name, absl::StrCat("must be a text, got ", Shown(*value)));
    return std::nullopt;
  }

  // A number, or a text with one, as every value of a multipart body is.
  std::optional<int64_t> Integer(const std::string& name,
                                 int64_t least = std::numeric_limits<int32_t>::min(),
                                 int64_t most = std::numeric_limits<int32_t>::max()) {
    const std::optional<json> value = Take(name);
    if (!value.has_value()) return std::nullopt;
    int64_t number = 0;
    const bool read =
        (value->is_number_integer() &&
         !(value->is_number_unsigned() &&
           value->get<uint64_t>() > uint64_t{std::numeric_limits<int64_t>::max()})) ||
        (value->is_string() && absl::SimpleAtoi(value->get_ref<const std::string&>(), &number));
    if (read && value->is_number()) number = value->get<int64_t>();
    if (read && number >= least && number <= most) return number;
    Wrong(name, absl::StrCat("must be a whole number from ", least, " to ", most, ", got ",
                             Shown(*value)));
    return std::nullopt;
  }

  // True or false, or a text with one of the two.
  bool Flag(const std::string& name) {
    const std::optional<json> value = Take(name);
    if (!value.has_value() || *value == false || *value == "false") return false;
    if (*value == true || *value == "true") return true;
    Wrong(name, absl::StrCat("must be true or false, got ", Shown(*value)));
    return false;
  }

  std::optional<double> Number(const std::string& name) {
    const std::optional<json> value = Take(name);
    return value.has_value() ? NumberOf(name, *value) : std::nullopt;
  }

  std::optional<double> NumberOf(std::string_view name, const json& value) {
    double number = 0;
    if (value.is_number()) {
      number = value.get<double>();
    } else if (!value.is_string() ||
               !absl::SimpleAtod(value.get_ref<const std::string&>(), &number)) {
      number = std::numeric_limits<double>::quiet_NaN();
    }
    if (std::isfinite(number)) return number;
    Wrong(name, absl::StrCat("must be a number, got ", Shown(value)));
    return std::nullopt;
  }

  // Refuses what nobody has taken. A request that asks for what the server does not do would
  // otherwise look as if it had been done.
  absl::Status End() {
    for (const auto& [name, value] : fields_) {
      Wrong(name.substr(0, kMaxName),
            "is not a field of POST /v1/videos on this server; leave it out (docs/openai.md lists "
            "the fields)");
    }
    return violations_.empty() ? absl::OkStatus() : InvalidFields(violations_);
  }

 private:
  static constexpr size_t kMaxName = 100;

  std::map<std::string, json> fields_;
  std::vector<FieldViolation> violations_;
};

// "size", or "width" and "height".
void TakeSize(Fields& fields, wan::v1::GenerationRequest& request) {
  const std::optional<std::string> size = fields.Text("size");
  const std::optional<int64_t> width = fields.Integer("width");
  const std::optional<int64_t> height = fields.Integer("height");
  request.set_exact_size(fields.Flag("exact_size"));
  if (width.has_value()) request.set_width(static_cast<int32_t>(*width));
  if (height.has_value()) request.set_height(static_cast<int32_t>(*height));
  if (!size.has_value()) return;
  if (width.has_value() || height.has_value()) {
    fields.Wrong("size", "excludes width and height; give either size or these");
    return;
  }
  const size_t by = size->find('x');
  int32_t across = 0;
  int32_t down = 0;
  if (by == std::string::npos || !absl::SimpleAtoi(size->substr(0, by), &across) ||
      !absl::SimpleAtoi(size->substr(by + 1), &down)) {
    fields.Wrong("size", absl::StrCat("must be WIDTHxHEIGHT, for example 1280x704, got ",
                                      Shown(json(*size))));
    return;
  }
  request.set_width(across);
  request.set_height(down);
}

// "num_frames" and "fps", or "seconds".
void TakeLength(Fields& fields, const FindModel& find_model, wan::v1::GenerationRequest& request) {
  const std::optional<int64_t> frames = fields.Integer("num_frames");
  const std::optional<int64_t> fps = fields.Integer("fps");
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
                 absl::StrCat("must be more than 0 and at most ", kMaxSeconds, ", got ", *seconds));
    return;
  }
  // If there is no such model, or it is not loaded, that is the error that the caller gets.
  const absl::StatusOr<wan::v1::Model> model = find_model(request.model());
  double rate = fps.has_value() ? static_cast<double>(*fps) : 0;
  if (!fps.has_value() && model.ok()) rate = model->defaults().fps();
  if (rate <= 0) return;
  const int32_t known = model.ok() ? model->temporal_stride() : 0;
  const int32_t stride = known > 0 ? known : kFramesStride;
  const double steps = std::round(*seconds * rate / stride);
  request.set_num_frames(static_cast<int32_t>(
      std::min<double>(steps * stride + 1, std::numeric_limits<int32_t>::max())));
}

// The contract has the values of two experts in the order low noise, high noise; other servers call
// the one for high noise `guidance_scale`, and the one for low noise `guidance_scale_2`.
void TakeGuidance(Fields& fields, wan::v1::GenerationRequest& request) {
  const std::optional<double> high = fields.Number("guidance_scale");
  const std::optional<double> low = fields.Number("guidance_scale_2");
  if (low.has_value() && !high.has_value()) {
    fields.Wrong("guidance_scale_2", "needs guidance_scale beside it, the one for high noise");
    return;
  }
  if (low.has_value()) request.add_guidance_scale(*low);
  if (high.has_value()) request.add_guidance_scale(*high);
}

// A list of {"name", "scale"}, in a multipart body as a text.
void TakeLoras(Fields& fields, wan::v1::GenerationRequest& request) {
  std::optional<json> loras = fields.Take("loras");
  if (!loras.has_value()) return;
  if (loras->is_string() && loras->get_ref<const std::string&>().size() <= kMaxPartHeaderBytes) {
    loras = json::parse(loras->get<std::string>(), nullptr, /*allow_exceptions=*/false);
  }
  if (!loras->is_array()) {
    fields.Wrong("loras", "must be a list such as [{\"name\": \"style\", \"scale\": 0.8}]");
    return;
  }
  for (size_t i = 0; i < loras->size(); ++i) {
    const json& entry = (*loras)[i];
    const std::string field = absl::StrCat("loras[", i, "]");
    const bool right = entry.is_object() && entry.contains("name") && entry["name"].is_string() &&
                       entry.size() == (entry.contains("scale") ? 2 : 1);
    if (!right) {
      fields.Wrong(field, absl::StrCat("must have a name and may have a scale, as in {\"name\": "
                                       "\"style\", \"scale\": 0.8}, got ",
                                       Shown(entry)));
      continue;
    }
    wan::v1::LoraScale* const lora = request.add_loras();
    lora->set_name(entry["name"].get<std::string>());
    if (!entry.contains("scale")) continue;
    if (const auto scale = fields.NumberOf(absl::StrCat(field, ".scale"), entry["scale"])) {
      lora->set_scale(*scale);
    }
  }
}

// The bytes of "data:image/png;base64,...".
std::optional<std::string> ImageOf(const std::string& url, Fields& fields) {
  constexpr absl::string_view kScheme = "data:";
  constexpr absl::string_view kEncoding = ";base64,";
  const size_t at = url.substr(0, 200).find(std::string(kEncoding));
  std::string image;
  if (absl::StartsWith(url, kScheme) && at != std::string::npos &&
      absl::Base64Unescape(absl::string_view(url).substr(at + kEncoding.size()), &image)) {
    return image;
  }
  fields.Wrong(kImage,
               "must hold the image itself: a file of a multipart body, or an image_url that "
               "begins with data:image/png;base64, or data:image/jpeg;base64,. The server fetches "
               "nothing");
  return std::nullopt;
}

void TakeImage(Fields& fields, std::map<std::string, std::string>& files,
               wan::v1::GenerationRequest& request) {
  if (const auto file = files.find(kImage); file != files.end()) {
    request.set_image(std::move(file->second));
    files.erase(file);
    return;
  }
  std::optional<json> value = fields.Take(kImage);
  if (!value.has_value()) value = fields.Take(kImageUrl);
  if (!value.has_value()) return;
  if (value->is_object() && value->size() == 1 && value->contains("image_url")) {
    // Not in one expression: the value that is replaced holds the one that replaces it.
    json url = std::move((*value)["image_url"]);
    value = std::move(url);
  }
  const std::string* const url =
      value->is_string() ? &value->get_ref<const std::string&>() : nullptr;
  if (auto image = ImageOf(url == nullptr ? std::string() : *url, fields)) {
    request.set_image(*std::move(image));
  }
}

}  // namespace

absl::StatusOr<wan::v1::GenerationRequest> ToGenerationRequest(Form form,
                                                               std::string_view idempotency_key,
                                                               const FindModel& find_model) {
  Fields fields(std::move(form.fields));
  wan::v1::GenerationRequest request;
  if (auto model = fields.Text("model")) request.set_model(*std::move(model));
  if (auto prompt = fields.Text("prompt")) request.set_prompt(*std::move(prompt));
  if (auto negative = fields.Text("negative_prompt")) {
    request.set_negative_prompt(*std::move(negative));
  }
  TakeSize(fields, request);
  TakeLength(fields, find_model, request);
  TakeGuidance(fields, request);
  TakeLoras(fields, request);
  TakeImage(fields, form.files, request);
  if (auto background = fields.Text("background")) {
    request.set_background(*std::move(background));
  }
  for (const auto& [name, content] : form.files) {
    fields.Wrong(name, "is not a file of POST /v1/videos; it takes input_reference");
  }
  if (const auto steps = fields.Integer("num_inference_steps")) {
    request.set_steps(static_cast<int32_t>(*steps));
  }
  if (const auto shift = fields.Number("flow_shift")) request.set_shift(*shift);
  if (const auto seed = fields.Integer("seed", std::numeric_limits<int64_t>::min(),
                                       std::numeric_limits<int64_t>::max())) {
    request.set_seed(*seed);
  }
  if (auto user = fields.Text("user")) (*request.mutable_labels())[kUserLabel] = *std::move(user);
  if (auto url = fields.Text("webhook_url")) request.set_webhook_url(*std::move(url));
  request.set_request_id(std::string(idempotency_key));
  if (absl::Status status = fields.End(); !status.ok()) return status;
  return request;
}

std::string HttpFieldOf(std::string_view field) {
  static constexpr std::pair<std::string_view, std::string_view> kNames[] = {
      {"steps", "num_inference_steps"},
      {"shift", "flow_shift"},
      {"image", kImage},
      {"request_id", "Idempotency-Key"},
      {"guidance_scale[0]", "guidance_scale"},
      {"guidance_scale[1]", "guidance_scale"},
      {"labels[user]", "user"},
  };
  for (const auto& [ours, theirs] : kNames) {
    if (field == ours) return std::string(theirs);
  }
  return std::string(field);
}

}  // namespace wan::server
