// What callers send.
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "engine/media/exif.h"
#include "engine/media/image_decode.h"
#include "engine/text/cleaning.h"
#include "server/calls/http2_guard.h"
#include "server/conversion/convert.h"
#include "server/conversion/job_filter.h"
#include "server/conversion/page_token.h"
#include "server/conversion/validation.h"
#include "server/http/byte_range.h"
#include "server/http/form.h"
#include "server/http/video_request.h"
#include "server/rpc/request_size.h"
#include "tests/fuzz/fuzz_target.h"
#include "wan/v1/video_generation.pb.h"

namespace wan {
namespace {

constexpr auto kOk = absl::StatusCode::kOk;
constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

void RequireSentences(const std::vector<FieldViolation>& violations) {
  for (const FieldViolation& violation : violations) {
    Require(!violation.field.empty() && !violation.description.empty(),
            "a violation names its field and says what is wrong");
  }
}

void RequireOrientation(int orientation) {
  Require(orientation >= 1 && orientation <= 8, "an orientation is one of EXIF's eight");
}

}  // namespace

// The first byte tells where the others, frames of a caller and of gRPC at once, are cut.
void FuzzHttp2(FuzzInput input) {
  const std::string_view text = TextOf(input);
  if (text.empty()) return;
  const std::string_view bytes = text.substr(1);
  const size_t cut = std::min<size_t>(static_cast<uint8_t>(text[0]), bytes.size());
  server::Http2Limits limits;
  limits.open_streams = 8;
  limits.resets.most = 4;
  struct Outcome {
    bool kept = true;
    int unanswered = 0;
    size_t unfinished = 0;
  };
  const auto read = [&](size_t first) {
    server::Http2Guard guard(limits, SystemClock());
    Require(!guard.FromCaller("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").has_value(),
            "a preface is taken");
    Outcome outcome;
    for (const std::string_view part : {bytes.substr(0, first), bytes.substr(first)}) {
      if (outcome.kept) outcome.kept = !guard.FromCaller(part).has_value();
    }
    outcome.unanswered = guard.unanswered();
    for (const std::string_view part : {bytes.substr(0, first), bytes.substr(first)}) {
      if (outcome.kept) outcome.kept = !guard.FromServer(part).has_value();
    }
    outcome.unfinished = guard.unfinished_to_caller();
    return outcome;
  };
  const Outcome whole = read(0);
  const Outcome parts = read(cut);
  Require(whole.kept == parts.kept && whole.unanswered == parts.unanswered &&
              whole.unfinished == parts.unfinished,
          "where bytes are cut makes no difference");
  Require(whole.unanswered >= 0 && whole.unanswered <= limits.open_streams,
          "no more streams are open than may be");
  Require(whole.unfinished <= bytes.size(), "a frame has no more bytes than were read");
}

// The first line is the content type, a query, the key and the field Range of a request at once;
// the rest is its body.
void FuzzHttpForm(FuzzInput input) {
  const std::string_view text = TextOf(input);
  const size_t end = std::min(text.find('\n'), text.size());
  const std::string_view line = text.substr(0, end);
  const std::string_view body = text.substr(std::min(end + 1, text.size()));
  const absl::StatusOr<server::Form> form = server::ParseForm(line, std::string(body));
  RequireCode(form.status(), {kOk, kInvalid});
  if (form.ok()) {
    const bool image =
        form->fields.contains("input_reference") || form->files.contains("input_reference");
    const auto request =
        server::ToGenerationRequest(*form, line, [](std::string_view) { return wan::v1::Model(); });
    RequireCode(request.status(), {kOk, kInvalid});
    Require(!request.ok() || request->image().empty() != image,
            "an image that is given is refused or taken");
    size_t bytes = 0;
    for (const auto& [name, content] : form->files) bytes += name.size() + content.size();
    Require(bytes <= body.size(), "the files of a form are parts of its body");
    Require(form->fields.size() + form->files.size() <= size_t{server::kMaxFormValues},
            "a form has no more values than it may");
  }
  RequireCode(server::ParseQuery(line).status(), {kOk, kInvalid});
  const std::optional<server::ByteRange> range = server::ParseByteRange(line, body.size());
  Require(!range.has_value() ||
              (range->first <= body.size() && range->count <= body.size() - range->first),
          "a range lies in its file");
}

void FuzzImage(FuzzInput input) {
  // As for callers, but for fewer pixels, so that no input takes long.
  ImageLimits limits;
  limits.max_pixels = 1'000'000;
  const absl::StatusOr<DecodedImage> decoded = DecodeImage(TextOf(input), {}, limits);
  RequireCode(decoded.status(), {kOk, kInvalid});
  const absl::StatusOr<InputImage> checked = CheckImage(TextOf(input), {}, limits);
  Require(checked.status() == decoded.status(), "a check refuses what cannot be decoded");
  if (!decoded.ok()) return;
  Require(*checked == decoded->facts, "a check reads the same facts");
  const RgbImage& image = decoded->image;
  Require(CheckPixels(image.pixels, image.width, image.height).ok(),
          "an image has the pixels of its size");
  const InputImage& facts = decoded->facts;
  Require(facts.width == image.width && facts.height == image.height, "the facts have its size");
  RequireOrientation(facts.exif_orientation);
}

void FuzzExif(FuzzInput input) { RequireOrientation(ExifOrientation(TextOf(input))); }

void FuzzPrompt(FuzzInput input) {
  const std::string_view text = TextOf(input);
  const absl::StatusOr<std::string> cleaned = CleanPrompt(text);
  RequireCode(cleaned.status(), {kOk, kInvalid});
  if (!cleaned.ok()) return;
  // The cleaning of a text that is not UTF-8 is refused.
  Require(CleanPrompt(*cleaned).ok(), "a cleaned prompt is UTF-8");
}

void FuzzRequest(FuzzInput input) {
  google::protobuf::io::ArrayInputStream stream(input.data(), static_cast<int>(input.size()));
  constexpr int64_t kFewBytes = 4096;
  const auto past =
      server::FieldPastPlainBytes(*wan::v1::CreateJobRequest::descriptor(), stream, kFewBytes);
  wan::v1::CreateJobRequest message;
  if (!message.ParseFromArray(input.data(), static_cast<int>(input.size()))) return;
  if (past.has_value()) {
    Require(input.size() > static_cast<size_t>(kFewBytes), "a small request is never too large");
    return;
  }
  const wan::v1::GenerationRequest& request = message.request();
  const std::vector<FieldViolation> sizes = server::ValidateSizes(request);
  RequireSentences(sizes);
  if (!sizes.empty()) return;
  const std::vector<FieldViolation> violations =
      server::ValidateRequest(request, absl::FromUnixSeconds(1'800'000'000));
  RequireSentences(violations);
  if (!violations.empty()) return;
  const GenerationRequest engine = server::ToEngineRequest(request);
  const wan::v1::GenerationRequest back = server::ToProto(engine);
  Require(back.model() == request.model() && back.prompt() == request.prompt() &&
              back.loras_size() == request.loras_size(),
          "a valid request survives its conversion");
}

void FuzzJobFilter(FuzzInput input) {
  RequireCode(server::ParseJobFilter(TextOf(input)).status(), {kOk, kInvalid});
  RequireCode(server::ParseJobOrder(TextOf(input)).status(), {kOk, kInvalid});
}

void FuzzPageToken(FuzzInput input) {
  constexpr std::string_view kList = "ListJobs";
  const absl::StatusOr<std::string> place =
      server::ParsePageToken(std::string(TextOf(input)), kList);
  RequireCode(place.status(), {kOk, kInvalid});
  if (place.ok()) {
    const auto again = server::ParsePageToken(server::MakePageToken(*place, kList), kList);
    Require(again.ok() && *again == *place, "a token that is made anew gives the same place");
  }
}

}  // namespace wan
