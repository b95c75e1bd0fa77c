#include "client/wanctl/request_fields.h"

#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "client/wanctl/values.h"

namespace wan::client {
namespace {

using Request = wan::v1::GenerationRequest;

template <typename T, typename Store>
FieldSetter Set(absl::StatusOr<T> (*parse)(std::string_view), Store store) {
  return [parse, store](const std::string& text, Request& request) {
    absl::StatusOr<T> value = parse(text);
    if (!value.ok()) return value.status();
    store(*std::move(value), request);
    return absl::OkStatus();
  };
}

}  // namespace

const std::map<std::string, FieldSetter>& RequestFields() {
  static const auto* const setters = new std::map<std::string, FieldSetter>{
      {"model",
       Set<std::string>(ParseNotEmpty, [](std::string value, Request& r) { r.set_model(value); })},
      {"prompt",
       Set<std::string>(ParseNotEmpty, [](std::string value, Request& r) { r.set_prompt(value); })},
      {"negative_prompt",
       Set<std::string>(ParseText,
                        [](std::string value, Request& r) { r.set_negative_prompt(value); })},
      {"size", Set<wan::v1::Shape>(ParseSize,
                                   [](const wan::v1::Shape& value, Request& r) {
                                     r.set_width(value.width());
                                     r.set_height(value.height());
                                   })},
      {"frames",
       Set<int32_t>(ParseInt32, [](int32_t value, Request& r) { r.set_num_frames(value); })},
      {"fps", Set<int32_t>(ParseInt32, [](int32_t value, Request& r) { r.set_fps(value); })},
      {"steps", Set<int32_t>(ParseInt32, [](int32_t value, Request& r) { r.set_steps(value); })},
      {"guidance", Set<std::vector<double>>(ParseGuidance,
                                            [](const std::vector<double>& values, Request& r) {
                                              r.mutable_guidance_scale()->Assign(values.begin(),
                                                                                 values.end());
                                            })},
      {"shift", Set<double>(ParseNumber, [](double value, Request& r) { r.set_shift(value); })},
      {"solver", Set<wan::v1::Solver>(
                     ParseSolver, [](wan::v1::Solver value, Request& r) { r.set_solver(value); })},
      {"quality", Set<wan::v1::Quality>(ParseQuality, [](wan::v1::Quality value,
                                                         Request& r) { r.set_quality(value); })},
      {"vae_precision", Set<wan::v1::VaePrecision>(ParseVaePrecision,
                                                   [](wan::v1::VaePrecision value, Request& r) {
                                                     r.set_vae_precision(value);
                                                   })},
      {"decoder", Set<wan::v1::Decoder>(ParseDecoder, [](wan::v1::Decoder value,
                                                         Request& r) { r.set_decoder(value); })},
      {"background",
       Set<std::string>(ParseColor,
                        [](std::string value, Request& r) { r.set_background(std::move(value)); })},
      {"profile", Set<bool>(ParseBool, [](bool value, Request& r) { r.set_profile(value); })},
      {"seed", Set<int64_t>(ParseFixedSeed, [](int64_t value, Request& r) { r.set_seed(value); })}};
  return *setters;
}

}  // namespace wan::client
