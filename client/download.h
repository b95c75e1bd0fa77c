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

// Receives the bytes downloaded so far and the artifact's size, after every chunk, in the thread
// that called Download.
using DownloadProgress = std::function<void(uint64_t done, uint64_t total)>;

// Returns the file that holds the bytes of `destination` until they are complete. It is in the same
// folder, and its name contains the start of the artifact's checksum, so that an interrupted
// download only continues with the same artifact.
std::filesystem::path PartPath(const wan::v1::Artifact& artifact,
                               const std::filesystem::path& destination);

// Checks that Download could write to `destination`: its folder must be writable, and `destination`
// must not exist or be a regular file. INVALID_ARGUMENT says what is wrong. Changes nothing. Call
// it before creating a job whose result is to be downloaded.
absl::Status CheckDestination(const std::filesystem::path& destination);

// Writes the artifact to `destination`. The file appears, or replaces a regular file, only once it
// is complete and its checksum is right. Continues an interrupted download, also when the
// connection breaks, with the client's retry policy. DATA_LOSS if the bytes do not have the
// artifact's size and checksum; they are removed then. INVALID_ARGUMENT as in CheckDestination.
absl::Status Download(const VideoClient& videos, const wan::v1::Artifact& artifact,
                      const std::filesystem::path& destination,
                      const DownloadProgress& progress = nullptr, const std::stop_token& stop = {});

}  // namespace wan::client
