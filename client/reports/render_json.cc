// In this folder, only this file and ceilings_file.cc include nlohmann/json, which takes seconds to
// compile.
#include <google/protobuf/util/json_util.h>

#include <nlohmann/json.hpp>
#include <string>
#include <variant>

#include "absl/strings/escaping.h"
#include "client/reports/render.h"

namespace wan::client::reports {
namespace {

using Json = nlohmann::ordered_json;

Json ValueOf(const Cell& cell) {
  if (const auto* number = std::get_if<Number>(&cell)) return number->value;
  if (const auto* text = std::get_if<std::string>(&cell)) return *text;
  return nullptr;
}

Json Of(const Paragraph& paragraph) { return {{"type", "text"}, {"text", paragraph.text}}; }

Json Of(const Facts& facts) {
  Json values = Json::object(), units = Json::object();
  for (const Fact& fact : facts.facts) {
    if (std::holds_alternative<std::monostate>(fact.value)) continue;
    values[fact.key] = ValueOf(fact.value);
    if (!fact.unit.empty()) units[fact.key] = fact.unit;
  }
  return {{"type", "facts"}, {"values", std::move(values)}, {"units", std::move(units)}};
}

Json Of(const List& list) { return {{"type", "list"}, {"items", list.items}}; }

Json Of(const Table& table) {
  Json rows = Json::array();
  for (const auto& row : table.rows) {
    Json object = Json::object();
    for (size_t c = 0; c < row.size(); ++c) {
      if (std::holds_alternative<std::monostate>(row[c])) continue;
      object[table.columns[c].key] = ValueOf(row[c]);
    }
    rows.push_back(std::move(object));
  }
  Json json = {{"type", "table"}, {"rows", std::move(rows)}};
  if (!table.note.empty()) json["note"] = table.note;
  return json;
}

Json Of(const Chart&) { return nullptr; }

// The JSON of the runs already has the frames.
Json Of(const Pictures&) { return nullptr; }

Json Of(const Section& section) {
  Json blocks = Json::array(), sections = Json::array();
  for (const Block& block : section.blocks) {
    Json json = std::visit([](const auto& kind) { return Of(kind); }, block);
    if (!json.is_null()) blocks.push_back(std::move(json));
  }
  for (const Section& child : section.sections) sections.push_back(Of(child));
  Json json = {{"key", section.key}, {"title", section.title}, {"blocks", std::move(blocks)}};
  if (!sections.empty()) json["sections"] = std::move(sections);
  return json;
}

}  // namespace

std::string RenderJson(const Document& document, const std::vector<Run>& runs) {
  Json root = Of(document);
  Json list = Json::array();
  for (const Run& run : runs) {
    std::string text;
    // The conversion cannot fail: only error details of unknown types have no JSON form, and a
    // report has no error details.
    if (!google::protobuf::util::MessageToJsonString(run.report, &text).ok()) text = "{}";
    Json json = {{"name", run.name}, {"variant", run.variant}, {"number", run.number}};
    if (run.difference) {
      json["difference"] = {{"identical", run.difference->identical}};
      if (run.difference->relative) json["difference"]["relative"] = *run.difference->relative;
      if (run.difference->same_video) {
        json["difference"]["same_video"] = *run.difference->same_video;
      }
      if (run.difference->psnr) json["difference"]["psnr_db"] = *run.difference->psnr;
    }
    for (const std::string& jpeg : run.frames) {
      json["frames"].push_back(absl::Base64Escape(jpeg));
    }
    json["report"] = Json::parse(text, nullptr, /*allow_exceptions=*/false);
    list.push_back(std::move(json));
  }
  root["runs"] = std::move(list);
  // Replace bytes that are not valid UTF-8; only a broken server sends such bytes.
  return root.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

absl::StatusOr<std::vector<Run>> ParseRuns(std::string_view json, const std::string& name) {
  const auto refused = [&name](const std::string& why) {
    return absl::InvalidArgumentError(
        name + " has no runs: " + why +
        "; 'wanctl bench' and 'wanctl report --format json' write such a file");
  };
  const Json root = Json::parse(json, nullptr, /*allow_exceptions=*/false);
  if (!root.is_object() || !root.contains("runs") || !root["runs"].is_array()) {
    return refused("it is not a JSON object with a list 'runs'");
  }
  std::vector<Run> runs;
  google::protobuf::util::JsonParseOptions options;
  // A newer wanctl may have written the file.
  options.ignore_unknown_fields = true;
  for (const Json& entry : root["runs"]) {
    Run run;
    try {
      entry.at("name").get_to(run.name);
      entry.at("variant").get_to(run.variant);
      entry.at("number").get_to(run.number);
      if (entry.contains("difference")) {
        const Json& difference = entry["difference"];
        run.difference.emplace();
        difference.at("identical").get_to(run.difference->identical);
        if (difference.contains("relative")) run.difference->relative = difference["relative"];
        if (difference.contains("same_video")) {
          run.difference->same_video = difference["same_video"].get<bool>();
        }
        if (difference.contains("psnr_db")) run.difference->psnr = difference["psnr_db"];
      }
      for (const Json& frame : entry.value("frames", Json::array())) {
        if (!absl::Base64Unescape(frame.get<std::string>(), &run.frames.emplace_back())) {
          return refused("a frame of '" + run.name + "' is not base64");
        }
      }
      const auto status = google::protobuf::util::JsonStringToMessage(entry.at("report").dump(),
                                                                      &run.report, options);
      if (!status.ok()) return refused("the report of '" + run.name + "' cannot be read");
    } catch (const Json::exception&) {
      return refused("run " + std::to_string(runs.size() + 1) +
                     " lacks a field, or it is of another type");
    }
    runs.push_back(std::move(run));
  }
  return runs;
}

}  // namespace wan::client::reports
