#include "demo/evaluate/scenes.h"

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "client/sha256.h"
#include "demo/evaluate/vocabulary.h"

namespace wan::demo {
namespace {

using Json = nlohmann::json;

absl::Status ReadText(const Json& object, const char* key, std::string& text) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_string() ||
      found->get_ref<const std::string&>().empty()) {
    return absl::InvalidArgumentError(absl::StrCat("\"", key, "\" is to be a text"));
  }
  text = found->get<std::string>();
  return absl::OkStatus();
}

// Reads one of the names in `known`.
absl::Status ReadName(const Json& object, const char* key, const std::vector<std::string>& known,
                      std::string& name) {
  absl::Status status = ReadText(object, key, name);
  if (status.ok() && std::find(known.begin(), known.end(), name) == known.end()) {
    return absl::InvalidArgumentError(
        absl::StrCat("\"", key, "\": the demo's world has no '", name, "'"));
  }
  return status;
}

std::vector<std::string> NamesOf(const std::vector<NamedColour>& colours) {
  std::vector<std::string> names;
  for (const NamedColour& colour : colours) names.push_back(colour.name);
  return names;
}

// File names and request ids are made of such texts.
bool IsPlain(std::string_view id) {
  return id.size() <= 64 && id != "." && id != ".." &&
         id.find_first_not_of(
             "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.") == id.npos;
}

absl::Status ReadPlain(const Json& object, const char* key, std::string& text) {
  absl::Status status = ReadText(object, key, text);
  if (status.ok() && !IsPlain(text)) {
    return absl::InvalidArgumentError(
        absl::StrCat("\"", key, "\" is to have at most 64 letters, digits, '-', '_' and '.'"));
  }
  return status;
}

absl::Status ReadObject(const Json& json, ExpectedObject& object) {
  if (!json.is_object()) return absl::InvalidArgumentError("an object is to be a JSON object");
  const Vocabulary& vocabulary = TheVocabulary();
  absl::Status status = ReadName(json, "colour", NamesOf(vocabulary.colours), object.colour);
  status.Update(ReadName(json, "shape", vocabulary.shapes, object.shape));
  status.Update(ReadName(json, "motion", vocabulary.motions, object.motion));
  status.Update(ReadName(json, "side", {"left", "right"}, object.side));
  return status;
}

// Reads a whole number above 0, if the key is there.
absl::Status ReadNumber(const Json& object, const char* key, int& number) {
  const auto found = object.find(key);
  if (found == object.end()) return absl::OkStatus();
  if (!found->is_number_integer() || *found < 1 || *found > 65536) {
    return absl::InvalidArgumentError(
        absl::StrCat("\"", key, "\" is to be a whole number from 1 to 65536"));
  }
  number = found->get<int>();
  return absl::OkStatus();
}

absl::Status ReadGroups(const Json& json, std::vector<std::string>& groups) {
  const auto found = json.find("groups");
  if (found == json.end()) return absl::OkStatus();
  const auto is_text = [](const Json& group) { return group.is_string(); };
  if (!found->is_array() || !std::all_of(found->begin(), found->end(), is_text)) {
    return absl::InvalidArgumentError("\"groups\" is to be a list of texts");
  }
  groups = found->get<std::vector<std::string>>();
  return absl::OkStatus();
}

absl::StatusOr<Scene> ParseScene(const std::string& line) {
  const Json json = Json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return absl::InvalidArgumentError("a line is to be a JSON object");
  Scene scene;
  absl::Status status = ReadPlain(json, "id", scene.id);
  status.Update(ReadText(json, "caption", scene.caption));
  status.Update(
      ReadName(json, "background", NamesOf(TheVocabulary().backgrounds), scene.background));
  if (json.contains("image")) status.Update(ReadPlain(json, "image", scene.image));
  if (json.contains("negative_prompt")) {
    status.Update(ReadText(json, "negative_prompt", scene.negative_prompt));
  }
  status.Update(ReadNumber(json, "width", scene.width));
  status.Update(ReadNumber(json, "height", scene.height));
  status.Update(ReadNumber(json, "frames", scene.frames));
  status.Update(ReadGroups(json, scene.groups));
  const auto objects = json.find("objects");
  if (objects == json.end() || !objects->is_array() || objects->empty() || objects->size() > 2) {
    status.Update(absl::InvalidArgumentError("\"objects\" is to have one or two objects"));
  } else {
    for (const Json& object : *objects) {
      status.Update(ReadObject(object, scene.objects.emplace_back()));
    }
  }
  if (!status.ok()) return status;
  return scene;
}

}  // namespace

absl::StatusOr<SceneFile> ReadScenes(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return absl::NotFoundError(absl::StrCat("cannot open ", path));
  SceneFile result;
  client::Sha256 digest;
  std::set<std::string> ids;
  int number = 0;
  for (std::string line; std::getline(file, line);) {
    ++number;
    digest.Update(line + "\n");
    if (line.find_first_not_of(" \t\r") == line.npos) continue;
    absl::StatusOr<Scene> scene = ParseScene(line);
    if (scene.ok() && !ids.insert(scene->id).second) {
      scene = absl::InvalidArgumentError(absl::StrCat("id '", scene->id, "' is there twice"));
    }
    if (!scene.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat(path, " line ", number, ": ", scene.status().message()));
    }
    result.scenes.push_back(*std::move(scene));
  }
  if (result.scenes.empty())
    return absl::InvalidArgumentError(absl::StrCat(path, " has no scenes"));
  result.sha256 = digest.Finish();
  return result;
}

}  // namespace wan::demo
