#include "client/wanctl/outputs.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/download.h"
#include "client/wanctl/text.h"

namespace wan::client {
namespace fs = std::filesystem;

absl::Status CheckOutputs(const std::vector<OutputFile>& outputs) {
  for (const OutputFile& output : outputs) {
    if (const absl::Status status = CheckDestination(output.path); !status.ok()) {
      return absl::InvalidArgumentError(absl::StrCat("--output: ", status.message()));
    }
  }
  return absl::OkStatus();
}

std::vector<OutputFile> NumberedOutputs(std::vector<OutputFile> outputs, int index) {
  for (OutputFile& output : outputs) {
    output.path.insert(output.path.rfind('.'), absl::StrCat("-", index + 1));
  }
  return outputs;
}

ExitCode FetchOutputs(Session& session, Display& display, const std::string& job,
                      const google::protobuf::RepeatedPtrField<wan::v1::Artifact>& artifacts,
                      const std::vector<OutputFile>& outputs, ExitCode if_missing) {
  const VideoClient videos = session.Videos();
  for (const OutputFile& output : outputs) {
    const auto artifact =
        std::find_if(artifacts.begin(), artifacts.end(),
                     [&](const wan::v1::Artifact& a) { return a.kind() == output.kind; });
    if (artifact == artifacts.end()) {
      session.Say(absl::StrCat(Printable(job), " has no .",
                               std::string(ArtifactKindName(output.kind)), " for ", output.path,
                               "; 'wanctl get ", Printable(job), "' shows why"));
      return if_missing;
    }
    const absl::Status status = Download(
        videos, *artifact, output.path,
        [&](uint64_t done, uint64_t total) {
          display.ShowInPlace(
              absl::StrCat(output.path, "  ", FormatBytes(done), " of ", FormatBytes(total)));
        },
        session.stop());
    display.Clear();
    if (!status.ok()) return session.Fail(status);
    if (!session.json()) session.console().out << output.path << '\n' << std::flush;
  }
  return kExitDone;
}

absl::Status PreviewWriter::Prepare() const {
  if (folder_.empty()) return absl::OkStatus();
  std::error_code error;
  fs::create_directories(folder_, error);
  if (!error) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("--preview-dir: cannot create ", folder_, ": ", error.message()));
}

absl::Status PreviewWriter::Write(const wan::v1::Event::Preview& preview) const {
  if (folder_.empty()) return absl::OkStatus();
  const std::string video = video_ == 0 ? "" : absl::StrCat(video_, "-");
  const auto write = [&](const std::string& frame, const std::string& jpeg) {
    const fs::path path =
        fs::path(folder_) / absl::StrFormat("%sstep-%04d%s.jpg", video, preview.step(), frame);
    std::ofstream file(path, std::ios::binary);
    file << jpeg;
    file.close();
    if (file) return absl::OkStatus();
    return absl::InternalError(absl::StrCat("cannot write ", path.string()));
  };
  absl::Status status = write("", preview.jpeg());
  // The last frame is the last one that the server sends.
  const int later = preview.later_jpegs_size();
  for (int i = 0; i < later && status.ok(); ++i) {
    status = write(i + 1 < later ? "-middle" : "-last", preview.later_jpegs(i));
  }
  return status;
}

}  // namespace wan::client
