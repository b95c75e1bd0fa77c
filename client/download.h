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

// The file that holds the bytes of `destination` until they are complete. It is in the same folder,
// and its name holds the start of the artifact's checksum, so that an interrupted download can only
// continue with bytes of the same artifact.
std::filesystem::path PartPath(const wan::v1::Artifact& artifact,
                               const std::filesystem::path& destination);

// Says whether Download could write to `destination`: OK if its folder can be written to and
// nothing, or a regular file, has its name. INVALID_ARGUMENT says what is in the way. Leaves no
// trace. Call it before the work whose result is to be downloaded.
absl::Status CheckDestination(const std::filesystem::path& destination);

// Writes the artifact to `destination`. The file appears, or replaces a regular file, only once it
// is complete and its checksum is right. Continues where an earlier download stopped, also when the
// connection breaks, as the client's retry policy says. DATA_LOSS: the bytes do not have the
// artifact's size and checksum, and have been removed. INVALID_ARGUMENT: as CheckDestination says.
absl::Status Download(const VideoClient& videos, const wan::v1::Artifact& artifact,
                      const std::filesystem::path& destination,
                      const DownloadProgress& progress = nullptr, const std::stop_token& stop = {});

}  // namespace wan::client
