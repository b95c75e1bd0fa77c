// Downloads a whole artifact into a file.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <stop_token>

#include "absl/status/status.h"
#include "client/video_client.h"
#include "wan/v1/generation.pb.h"

namespace wan::client {

// Called after every chunk, on the thread that called Download, with the number of bytes downloaded
// so far and the artifact's size.
using DownloadProgress = std::function<void(uint64_t done, uint64_t total)>;

// Returns the path of the file that holds the bytes of `destination` until they are complete. The
// file is in the same folder, and its name contains the start of the artifact's checksum, so that
// an interrupted download goes on only with the same artifact.
std::filesystem::path PartPath(const wan::v1::Artifact& artifact,
                               const std::filesystem::path& destination);

// Checks that Download could write to `destination`: its folder must be writable, and `destination`
// must not exist or be a regular file. Fails with INVALID_ARGUMENT, which says what is wrong.
// Leaves the file system unchanged. Call CheckDestination before you create a job whose result is
// to be downloaded.
absl::Status CheckDestination(const std::filesystem::path& destination);

// Writes the artifact to `destination`. The file appears, or replaces a regular file, only when it
// is complete and its checksum is right. Goes on with an interrupted download, also when the
// connection breaks, as the client's retry policy says. Fails with DATA_LOSS if the bytes do not
// have the artifact's size and checksum; then it removes the bytes. Fails with INVALID_ARGUMENT as
// CheckDestination does.
absl::Status Download(const VideoClient& videos, const wan::v1::Artifact& artifact,
                      const std::filesystem::path& destination,
                      const DownloadProgress& progress = nullptr, const std::stop_token& stop = {});

}  // namespace wan::client
