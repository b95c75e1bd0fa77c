// A whole artifact as a file.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <stop_token>

#include "absl/status/status.h"
#include "client/video_client.h"
#include "wan/v1/generation.pb.h"

namespace wan::client {

// Called with bytes there and bytes in all, after every chunk.
using DownloadProgress = std::function<void(uint64_t done, uint64_t total)>;

// Where the bytes of `destination` lie until they are complete: in the same folder, with a name
// that holds the start of the artifact's checksum, so that an interrupted download goes on only
// with bytes of the same artifact.
std::filesystem::path PartPath(const wan::v1::Artifact& artifact,
                               const std::filesystem::path& destination);

// Writes the artifact to `destination`, which appears, or is replaced, only once it is complete and
// its checksum is right. It goes on where an earlier download stopped; when the connection breaks
// it waits as the client's retry policy says and goes on. DATA_LOSS: the bytes do not have the
// artifact's size and checksum; they are removed.
absl::Status Download(const VideoClient& videos, const wan::v1::Artifact& artifact,
                      const std::filesystem::path& destination,
                      const DownloadProgress& progress = nullptr, const std::stop_token& stop = {});

}  // namespace wan::client
