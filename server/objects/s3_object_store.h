// Stores objects in a bucket of an S3-compatible service.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/api/clock.h"
#include "server/objects/object_place.h"
#include "server/objects/object_store.h"
#include "server/objects/s3_client.h"

namespace wan::server {

// Files larger than a part are uploaded in parts, one after the other; a failure removes the parts
// that the service has. Reads that are cut go on where they were. See ObjectStore.
class S3ObjectStore final : public ObjectStore {
 public:
  static constexpr uint64_t kPartBytes = uint64_t{16} << 20;

  // `prefix` is empty or ends with '/'. `clock` must outlive the store. The service takes no parts
  // of less than 5 MiB but the last; only tests with another service set fewer `part_bytes`.
  S3ObjectStore(S3Options options, std::string prefix, Clock& clock,
                uint64_t part_bytes = kPartBytes);

  std::string Name() const override;
  absl::Status Put(const std::string& key, std::string_view bytes, const ObjectCall& call) override;
  absl::Status PutFile(const std::string& key, const std::filesystem::path& file,
                       const ObjectCall& call) override;
  absl::Status Get(const std::string& key, const ObjectRange& range, const Sink& sink,
                   const ObjectCall& call) override;
  absl::StatusOr<ObjectFacts> Stat(const std::string& key, const ObjectCall& call) override;
  absl::Status List(const std::string& prefix, const std::function<bool(const ObjectFacts&)>& visit,
                    const ObjectCall& call) override;
  absl::Status Remove(const std::string& key, const ObjectCall& call) override;

 private:
  class Upload;
  class Download;

  const std::string prefix_;
  const uint64_t part_bytes_;
  S3Client client_;
};

// Returns the options for a place: what it leaves open comes from AWS_REGION, AWS_DEFAULT_REGION
// and AWS_ENDPOINT_URL. `ca_file` and `on_request` are members of the result.
absl::StatusOr<S3Options> S3OptionsOf(const S3Place& place, std::string ca_file,
                                      const Environment& environment, OnObjectRequest on_request);

}  // namespace wan::server
