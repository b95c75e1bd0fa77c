#include "client/download.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <system_error>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "client/part_file.h"

namespace wan::client {

std::filesystem::path PartPath(const wan::v1::Artifact& artifact,
                               const std::filesystem::path& destination) {
  std::filesystem::path path = destination;
  path += absl::StrCat(".", artifact.sha256().substr(0, 12), ".part");
  return path;
}

absl::Status CheckDestination(const std::filesystem::path& destination) {
  const std::filesystem::path folder =
      destination.has_parent_path() ? destination.parent_path() : std::filesystem::path(".");
  std::error_code ignored;
  if (!std::filesystem::is_directory(folder, ignored)) {
    return absl::InvalidArgumentError(
        absl::StrCat(folder.string(), " is not an existing folder; create it, or name another"));
  }
  if (absl::Status status = CheckReplaceable(destination); !status.ok()) return status;
  // Create a file, because only this shows whether permissions, disk and the length of the name
  // allow the download.
  std::filesystem::path probe = destination;
  probe += absl::StrCat(".", absl::Hex(getpid(), absl::kZeroPad12), ".part");
  const int fd = open(probe.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (fd < 0) {
    return absl::InvalidArgumentError(absl::StrCat("cannot write ", destination.string(), ": ",
                                                   std::generic_category().message(errno)));
  }
  close(fd);
  unlink(probe.c_str());
  return absl::OkStatus();
}

absl::Status Download(const VideoClient& videos, const wan::v1::Artifact& artifact,
                      const std::filesystem::path& destination, const DownloadProgress& progress,
                      const std::stop_token& stop) {
  if (absl::Status status = CheckReplaceable(destination); !status.ok()) return status;
  absl::StatusOr<PartFile> part = PartFile::Open(PartPath(artifact, destination));
  if (!part.ok()) return part.status();
  if (part->size() > artifact.size_bytes()) {
    if (absl::Status status = part->Restart(); !status.ok()) return status;
  }

  Backoff backoff = videos.NewBackoff(stop);
  while (part->size() < artifact.size_bytes()) {
    absl::Status outcome = videos.ReadArtifact(
        artifact.name(), part->size(),
        [&](const wan::v1::DownloadArtifactResponse& chunk) {
          if (chunk.data().empty()) return absl::OkStatus();
          if (chunk.offset() != part->size()) {
            return absl::DataLossError(absl::StrCat("the server sent byte ", chunk.offset(), " of ",
                                                    artifact.name(), " where byte ", part->size(),
                                                    " should follow"));
          }
          if (absl::Status status = part->Append(chunk.data()); !status.ok()) return status;
          backoff.Reset();
          if (progress) progress(part->size(), artifact.size_bytes());
          return absl::OkStatus();
        },
        stop);
    if (outcome.ok()) break;
    if (backoff.ShouldRetry(outcome)) continue;
    if (stop.stop_requested()) return absl::CancelledError("the caller stopped");
    return outcome;
  }
  return part->Publish(artifact.size_bytes(), artifact.sha256(), destination);
}

}  // namespace wan::client
