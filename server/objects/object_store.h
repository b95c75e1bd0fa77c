// Stores named bytes outside the data folder: in a bucket of an S3-compatible service, or in a
// folder that other machines may share.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <limits>
#include <stop_token>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace wan::server {

// How long a call may take. Every call blocks, for `patience` and one second more for each MiB that
// it moves, or until `stop` is requested. A call that stores bytes, or reads an object to its end,
// may take longer while the bytes flow; a file in parts has this time for each part.
struct ObjectCall {
  absl::Duration patience = absl::Seconds(30);
  std::stop_token stop = {};
};

struct ObjectFacts {
  std::string key;
  uint64_t size = 0;
};

struct ObjectRange {
  uint64_t offset = 0;
  // The rest of the object may be shorter.
  uint64_t bytes = std::numeric_limits<uint64_t>::max();
};

// Thread-safe; any thread that may block may call it. A key has the form "NAME/NAME/NAME", where
// each NAME has letters, digits, '.', '_' and '-' and is neither "." nor ".."; a prefix is the
// beginning of a key. An object appears as a whole or not at all.
//
// Errors of every function: UNAVAILABLE if the store cannot be reached or fails, after repeated
// tries; CANCELLED after a stop; PERMISSION_DENIED, UNAUTHENTICATED or FAILED_PRECONDITION, with
// the remedy in the message, if an operator has to change something; INVALID_ARGUMENT for a key of
// another form. No message has a secret.
class ObjectStore {
 public:
  virtual ~ObjectStore() = default;

  // Returns the store's place for messages and logs, for example "s3://bucket/prefix".
  virtual std::string Name() const = 0;

  // Stores or replaces an object. Returns when the store has it durably.
  virtual absl::Status Put(const std::string& key, std::string_view bytes,
                           const ObjectCall& call) = 0;
  // Does the same with the bytes of a file, which nobody may change meanwhile. An error of the file
  // has the code that its errno stands for; only such an error is NOT_FOUND.
  virtual absl::Status PutFile(const std::string& key, const std::filesystem::path& file,
                               const ObjectCall& call) = 0;

  // Passes the bytes of the range to `sink`, in pieces and in order; an error of `sink` ends the
  // call, which returns it. After an error, `sink` may have received a beginning of the range.
  // Errors: NOT_FOUND; OUT_OF_RANGE if the offset is past the object's end; DATA_LOSS if the object
  // was replaced meanwhile.
  using Sink = std::function<absl::Status(std::string_view piece)>;
  virtual absl::Status Get(const std::string& key, const ObjectRange& range, const Sink& sink,
                           const ObjectCall& call) = 0;

  // Errors: NOT_FOUND.
  virtual absl::StatusOr<ObjectFacts> Stat(const std::string& key, const ObjectCall& call) = 0;

  // Calls `visit` for each object whose key begins with `prefix`, in the order of the keys, until
  // it returns false. Objects that are stored or removed meanwhile may or may not be visited.
  virtual absl::Status List(const std::string& prefix,
                            const std::function<bool(const ObjectFacts&)>& visit,
                            const ObjectCall& call) = 0;

  // Returns OK if there is no such object.
  virtual absl::Status Remove(const std::string& key, const ObjectCall& call) = 0;
  // Removes every object whose key begins with `prefix`.
  virtual absl::Status RemovePrefix(const std::string& prefix, const ObjectCall& call);

  // Returns all bytes of an object, which must have `most` bytes at most (else OUT_OF_RANGE).
  absl::StatusOr<std::string> Read(const std::string& key, uint64_t most, const ObjectCall& call);

  // Ends the calls that have this token, now and later: those for which a caller of the server
  // waits.
  void StopReads() { reads_.request_stop(); }
  std::stop_token reads() const { return reads_.get_token(); }

 private:
  std::stop_source reads_;
};

// Returns INVALID_ARGUMENT unless `key` has the form of a key.
absl::Status CheckObjectKey(std::string_view key);

}  // namespace wan::server
