#include "demo/evaluate/run_folder.h"

#include <fstream>
#include <random>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace wan::demo {
namespace {

using Json = nlohmann::ordered_json;
namespace fs = std::filesystem;

// Returns a discarded value if the file is missing or is not JSON.
Json ReadJson(const fs::path& path) {
  std::ifstream file(path);
  return Json::parse(file, nullptr, /*allow_exceptions=*/false);
}

std::string NewId() {
  std::random_device random;
  return absl::StrFormat("%08x%08x", random(), random());
}

Json ToJson(const VideoResult& result) {
  Json objects = Json::array();
  for (const SeenObject& object : result.sight.objects) {
    objects.push_back({{"colour", object.colour},
                       {"shape", object.shape},
                       {"motion", object.motion},
                       {"side", object.side},
                       {"shape_fit", object.shape_fit},
                       {"presence", object.presence},
                       {"outline", object.outline}});
  }
  Json json = {{"job", result.job},
               {"request", result.request},
               {"create_time", result.create_time},
               {"start_time", result.start_time},
               {"end_time", result.end_time},
               {"background", result.sight.background},
               {"objects", std::move(objects)}};
  if (result.first_frame_psnr) json["first_frame_psnr"] = *result.first_frame_psnr;
  return json;
}

VideoResult FromJson(const Json& json) {
  VideoResult result{.job = json.at("job").get<std::string>(),
                     .request = json.at("request"),
                     .sight = {.background = json.at("background").get<std::string>()},
                     .create_time = json.at("create_time").get<double>(),
                     .start_time = json.at("start_time").get<double>(),
                     .end_time = json.at("end_time").get<double>()};
  for (const Json& object : json.at("objects")) {
    result.sight.objects.push_back({.colour = object.at("colour").get<std::string>(),
                                    .shape = object.at("shape").get<std::string>(),
                                    .motion = object.at("motion").get<std::string>(),
                                    .side = object.at("side").get<std::string>(),
                                    .shape_fit = object.at("shape_fit").get<double>(),
                                    .presence = object.at("presence").get<double>(),
                                    .outline = object.at("outline").get<std::vector<double>>()});
  }
  if (json.contains("first_frame_psnr")) {
    result.first_frame_psnr = json.at("first_frame_psnr").get<double>();
  }
  return result;
}

}  // namespace

absl::Status WriteWhole(const fs::path& path, const std::string& text) {
  fs::path part = path;
  part += ".part";
  std::ofstream file(part, std::ios::binary);
  file << text;
  file.close();
  std::error_code error;
  if (file) fs::rename(part, path, error);
  if (!file || error) {
    return absl::InternalError(absl::StrCat("cannot write ", path.string(),
                                            error ? ": " + error.message() : std::string()));
  }
  return absl::OkStatus();
}

absl::StatusOr<RunFolder> RunFolder::Open(const fs::path& path, const Json& settings) {
  std::error_code error;
  for (const char* folder : {"videos", "seen"}) {
    fs::create_directories(path / folder, error);
    if (error) {
      return absl::InternalError(
          absl::StrCat("cannot make ", (path / folder).string(), ": ", error.message()));
    }
  }
  const fs::path file = path / "run.json";
  if (!fs::exists(file)) {
    const std::string id = NewId();
    const Json run = {{"run", id}, {"settings", settings}};
    if (absl::Status status = WriteWhole(file, run.dump(1) + "\n"); !status.ok()) return status;
    return RunFolder(path, id);
  }
  const Json run = ReadJson(file);
  if (!run.is_object() || !run.contains("run") || !run["run"].is_string()) {
    return absl::InvalidArgumentError(absl::StrCat(file.string(), " is not a run's"));
  }
  if (run.value("settings", Json()) != settings) {
    return absl::InvalidArgumentError(
        absl::StrCat(path.string(), " has a run with other settings (see ", file.string(),
                     "); give this one a folder of its own"));
  }
  return RunFolder(path, run["run"].get<std::string>());
}

std::string RunFolder::RequestId(const std::string& key) const {
  return absl::StrCat("demo-evaluate-", id_, "-", key);
}

fs::path RunFolder::VideoIn(const fs::path& folder, const std::string& key) {
  return folder / "videos" / (key + ".mkv");
}

std::optional<VideoResult> RunFolder::Load(const std::string& key) const {
  const Json json = ReadJson(path_ / "seen" / (key + ".json"));
  if (!json.is_object()) return std::nullopt;
  try {
    return FromJson(json);
  } catch (const Json::exception&) {
    // The file is of another version, or not ours; so the video is looked at again.
    return std::nullopt;
  }
}

absl::Status RunFolder::Save(const std::string& key, const VideoResult& result) const {
  return WriteWhole(path_ / "seen" / (key + ".json"), ToJson(result).dump(1) + "\n");
}

}  // namespace wan::demo
