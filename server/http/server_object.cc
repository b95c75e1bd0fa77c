#include "server/http/server_object.h"

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "proto/enum_words.h"
#include "server/conversion/names.h"
#include "server/http/video_id.h"
#include "server/http/video_object.h"

namespace wan::server {
namespace {

using nlohmann::json;

template <typename T>
json OrNull(const std::optional<T>& value) {
  return value.has_value() ? json(*value) : json(nullptr);
}

// Returns the dtype in which the transformers' weights are; null while none are resident.
json PrecisionOf(const wan::v1::Model& model) {
  for (const wan::v1::ModelComponent& component : model.components()) {
    if (component.name().starts_with("transformer")) return component.dtype();
  }
  return nullptr;
}

json ModelOf(const wan::v1::Model& model) {
  json loras = json::array();
  for (const wan::v1::Lora& lora : model.loras()) loras.push_back({{"name", lora.name()}});
  json groups = json::array();
  for (const wan::v1::ModelPlacement& placement : model.placements()) {
    if (placement.state() == wan::v1::MODEL_STATE_READY) groups.push_back(placement.group());
  }
  json defaults = nullptr;
  if (model.has_defaults()) {
    defaults = ShapeOf(model.defaults());
    defaults["num_inference_steps"] = model.defaults().steps();
    defaults.update(SamplingOf(model.defaults()));
  }
  json decoders = json::array({WordOf(wan::v1::DECODER_FULL)});
  if (model.tiny_decoder()) decoders.push_back(WordOf(wan::v1::DECODER_TINY));
  return {{"id", std::string(BareModelName(model.name()))},
          {"object", "model"},
          {"state", std::string(WordOf(model.state()))},
          {"family", model.family().empty() ? json(nullptr) : json(model.family())},
          {"precision", PrecisionOf(model)},
          {"loras", std::move(loras)},
          {"decoders", std::move(decoders)},
          {"accepts_image", model.accepts_image()},
          {"size_multiple", model.spatial_stride()},
          {"frames_multiple", model.temporal_stride()},
          {"defaults", std::move(defaults)},
          {"groups", std::move(groups)}};
}

json DeviceOf(const DeviceSample& sample) {
  return {{"device", sample.device},
          {"name", sample.name},
          {"memory_used_bytes", OrNull(sample.memory_used_bytes)},
          {"memory_total_bytes", OrNull(sample.memory_total_bytes)}};
}

json GroupOf(const wan::v1::DeviceGroup& group, const std::vector<DeviceSample>& samples) {
  json devices = json::array();
  for (const std::string& name : group.devices()) {
    for (const DeviceSample& sample : samples) {
      if (sample.device == name) devices.push_back(DeviceOf(sample));
    }
  }
  return {{"group", group.number()},
          {"devices", std::move(devices)},
          {"models", group.resident_models()},
          {"video", group.job().empty() ? json(nullptr) : json(VideoIdOf(group.job()))},
          {"in_service", !group.has_error()}};
}

}  // namespace

json ServerObject(const wan::v1::ServerInfo& info, const std::vector<wan::v1::Model>& models,
                  const std::vector<DeviceSample>& devices) {
  json shown = {{"object", "server"},
                {"version", info.version()},
                {"libraries", info.libraries()},
                {"started_at", info.start_time().seconds()},
                {"dtype", info.dtype()},
                {"serving", info.not_serving_reasons().empty()},
                {"not_serving", json::array()},
                {"draining", info.draining()},
                {"queue",
                 {{"waiting", info.queued_jobs()},
                  {"running", info.running_jobs()},
                  {"capacity", info.queue_capacity()}}},
                {"models", json::array()},
                {"groups", json::array()}};
  for (const wan::v1::NotServingReason& reason : info.not_serving_reasons()) {
    shown["not_serving"].push_back({{"reason", reason.reason()}, {"message", reason.message()}});
  }
  for (const wan::v1::Model& model : models) shown["models"].push_back(ModelOf(model));
  for (const wan::v1::DeviceGroup& group : info.groups()) {
    shown["groups"].push_back(GroupOf(group, devices));
  }
  return shown;
}

}  // namespace wan::server
