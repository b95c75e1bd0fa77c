#include "client/wanctl/receipt_comparison.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>
#include <google/protobuf/text_format.h>

#include <algorithm>
#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "client/wanctl/text.h"
#include "client/wanctl/values.h"

namespace wan::client {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

std::string OneLine(const Message& message, const FieldDescriptor& field) {
  google::protobuf::TextFormat::Printer printer;
  printer.SetSingleLineMode(true);
  const google::protobuf::Reflection& reflection = *message.GetReflection();
  std::string text;
  if (field.is_repeated()) {
    for (int i = 0; i < reflection.FieldSize(message, &field); ++i) {
      std::string value;
      printer.PrintFieldValueToString(message, &field, i, &value);
      absl::StrAppend(&text, text.empty() ? "" : ", ", value);
    }
  } else if (!field.has_presence() || reflection.HasField(message, &field)) {
    printer.PrintFieldValueToString(message, &field, -1, &text);
  }
  return text.empty() ? "nothing" : Printable(text);
}

// Adds a line for each field that differs; `names` comes before the name of the field.
template <typename M>
void CompareFields(const char* names, const M& then, const M& now, const ComparedSides& sides,
                   std::vector<std::string>& lines) {
  for (int i = 0; i < M::descriptor()->field_count(); ++i) {
    const FieldDescriptor& field = *M::descriptor()->field(i);
    const std::string before = OneLine(then, field);
    const std::string after = OneLine(now, field);
    if (before == after) continue;
    lines.push_back(absl::StrCat(names, " ", absl::StrReplaceAll(field.name(), {{"_", " "}}), ": ",
                                 before, " ", sides.then, ", ", after, " ", sides.now));
  }
}

// Clears the fields that do not affect the bits of the files.
wan::v1::GenerationRequest WithoutCircumstances(wan::v1::GenerationRequest request) {
  request.clear_request_id();
  request.clear_labels();
  request.clear_priority();
  request.clear_deadline();
  request.clear_outputs();
  request.clear_preview_interval();
  request.clear_profile();
  request.clear_progressive();
  request.clear_resume();
  request.clear_webhook_url();
  return request;
}

void CompareFile(const std::string& path, const wan::v1::ModelFile& then,
                 const wan::v1::ModelFile& now, const ComparedSides& sides,
                 std::vector<std::string>& lines) {
  if (then.size_bytes() != now.size_bytes()) {
    lines.push_back(absl::StrCat("file ", path, ": ", then.size_bytes(), " bytes ", sides.then,
                                 ", ", now.size_bytes(), " ", sides.now));
  } else if (then.sha256().empty() || now.sha256().empty()) {
    if (!sides.unknown_digests) return;
    lines.push_back(absl::StrCat(
        "file ", path, ": its SHA-256 ", then.sha256().empty() ? sides.then : sides.now,
        " is not known", then.sha256().empty() && now.sha256().empty() ? " on either side" : ""));
  } else if (then.sha256() != now.sha256()) {
    lines.push_back(absl::StrCat("file ", path, ": SHA-256 ", Printable(then.sha256()), " ",
                                 sides.then, ", ", Printable(now.sha256()), " ", sides.now));
  }
}

void CompareFiles(const wan::v1::Receipt& then, const wan::v1::Receipt& now,
                  const ComparedSides& sides, std::vector<std::string>& lines) {
  std::map<std::string, const wan::v1::ModelFile*> files;
  for (const wan::v1::ModelFile& file : now.files()) files[file.path()] = &file;
  for (const wan::v1::ModelFile& file : then.files()) {
    const std::string path = Printable(file.path());
    const auto found = files.find(file.path());
    if (found == files.end()) {
      lines.push_back(absl::StrCat("file ", path, ": read ", sides.then, ", not ", sides.now));
      continue;
    }
    CompareFile(path, file, *found->second, sides, lines);
    files.erase(found);
  }
  for (const auto& [path, file] : files) {
    lines.push_back(
        absl::StrCat("file ", Printable(path), ": read ", sides.now, ", not ", sides.then));
  }
}

// Returns the job to which a receipt belongs, "jobs/ID".
std::string JobOf(const wan::v1::Receipt& receipt) {
  return Printable(receipt.name().substr(0, receipt.name().rfind('/')));
}

}  // namespace

std::vector<std::string> ArtifactDifferences(const wan::v1::Receipt& then,
                                             const wan::v1::Receipt& now) {
  std::vector<std::string> lines;
  for (const wan::v1::Artifact& before : then.artifacts()) {
    const auto after =
        std::find_if(now.artifacts().begin(), now.artifacts().end(),
                     [&](const auto& artifact) { return artifact.kind() == before.kind(); });
    const std::string kind(ArtifactKindName(before.kind()));
    if (after == now.artifacts().end()) {
      lines.push_back(absl::StrCat(kind, ": made then, not now"));
    } else if (after->sha256() != before.sha256()) {
      lines.push_back(absl::StrCat(kind, ": SHA-256 ", Printable(before.sha256()), " then, ",
                                   Printable(after->sha256()), " now"));
    }
  }
  return lines;
}

std::vector<std::string> MakerDifferences(const wan::v1::Receipt& then, const wan::v1::Receipt& now,
                                          const ComparedSides& sides) {
  std::vector<std::string> lines;
  CompareFields("request:", WithoutCircumstances(then.request()),
                WithoutCircumstances(now.request()), sides, lines);
  if (then.image_sha256() != now.image_sha256()) lines.emplace_back("the image is another");
  CompareFields("server:", then.provenance(), now.provenance(), sides, lines);
  CompareFiles(then, now, sides, lines);
  return lines;
}

std::string ComparisonText(const wan::v1::Receipt& then, const wan::v1::Receipt& now) {
  const std::vector<std::string> artifacts = ArtifactDifferences(then, now);
  if (artifacts.empty()) {
    return absl::StrCat("identical: ", JobOf(now), " has the same files as ", JobOf(then),
                        ", bit for bit\n");
  }
  std::string text =
      absl::StrCat("different: ", JobOf(now), " has other files than ", JobOf(then), "\n");
  for (const std::string& line : artifacts) absl::StrAppend(&text, "  ", line, "\n");
  const std::vector<std::string> makers = MakerDifferences(then, now);
  absl::StrAppend(&text, makers.empty() ? "Nothing differs of what the receipts record.\n"
                                        : "What differs in how they were made:\n");
  for (const std::string& line : makers) absl::StrAppend(&text, "  ", line, "\n");
  return text;
}

}  // namespace wan::client
