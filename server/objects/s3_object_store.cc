#include "server/objects/s3_object_store.h"

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "engine/api/storage_error.h"
#include "server/objects/s3_answers.h"

namespace wan::server {
namespace {

// The service takes at most this many parts of one object.
constexpr uint64_t kMostParts = 10'000;
// How long a failed upload tries to remove its parts, and one that was stopped.
constexpr absl::Duration kAbortPatience = absl::Seconds(5);
constexpr absl::Duration kStoppedPatience = absl::Seconds(1);

constexpr char kPutRight[] = "s3:PutObject";
constexpr char kGetRight[] = "s3:GetObject and s3:ListBucket";

// How long the service may take to put the parts of a large object together.
constexpr absl::Duration kCompleteTime = absl::Minutes(5);

absl::Status FileProblem(const std::filesystem::path& file, int error) {
  const int known = error == 0 ? EIO : error;
  return WithStorageReason(absl::ErrnoToStatus(known, absl::StrCat("reading ", file.string())),
                           known);
}

// Returns the error of a request that stores something. A service that does not find what the
// request is about may take the next upload.
absl::Status ErrorOfPut(const absl::Status& status, std::string_view why) {
  if (!absl::IsNotFound(status)) return status;
  return absl::UnavailableError(
      absl::StrCat(absl::string_view(status.message()), "; ", std::string(why)));
}

}  // namespace

// The upload of one file in parts.
class S3ObjectStore::Upload {
 public:
  Upload(S3Client& client, std::string key, const ObjectCall& call)
      : client_(client), key_(std::move(key)), call_(call) {}

  // `path` is the file's.
  absl::Status Send(std::ifstream& file, const std::filesystem::path& path, uint64_t size,
                    uint64_t part_bytes) {
    const absl::StatusOr<S3Client::Answer> begun = client_.Send(
        Request("POST", {{"uploads", ""}}, {}), client_.DeadlineOf(call_, 0), call_.stop);
    if (!begun.ok()) return ErrorOfPut(begun.status(), "check the endpoint");
    id_ = ElementText(begun->body, "UploadId");
    if (id_.empty()) return absl::InternalError("objects: an upload has no UploadId");
    absl::Status status = SendParts(file, path, size, part_bytes);
    if (status.ok()) status = Complete();
    if (!status.ok()) Abort();
    return status;
  }

 private:
  using Query = std::vector<std::pair<std::string, std::string>>;

  S3Client::Request Request(std::string method, Query query, std::string_view body) const {
    return {ObjectOperation::kMultipart,
            kPutRight,
            std::move(method),
            key_,
            std::move(query),
            {},
            body};
  }

  absl::Status SendParts(std::ifstream& file, const std::filesystem::path& path, uint64_t size,
                         uint64_t part_bytes) {
    std::string part;
    for (uint64_t sent = 0; sent < size; sent += part.size()) {
      part.resize(std::min(part_bytes, size - sent));
      errno = 0;
      if (!file.read(part.data(), static_cast<std::streamsize>(part.size()))) {
        return FileProblem(path, errno);
      }
      ++parts_;
      // Each part has a time of its own, so that an upload which goes on does not end in between.
      const absl::StatusOr<S3Client::Answer> answer =
          client_.Send({.operation = ObjectOperation::kPut,
                        .right = kPutRight,
                        .method = "PUT",
                        .key = key_,
                        .query = {{"partNumber", absl::StrCat(parts_)}, {"uploadId", id_}},
                        .body = part,
                        .needs = S3Client::Needs::kTag},
                       client_.DeadlineOf(call_, part.size()), call_.stop);
      if (!answer.ok()) return ErrorOfPut(answer.status(), kGone);
      absl::StrAppend(&list_, "<Part><PartNumber>", parts_, "</PartNumber><ETag>",
                      std::string(answer->http.Field("etag")), "</ETag></Part>");
    }
    return absl::OkStatus();
  }

  absl::Status Complete() {
    const std::string body =
        absl::StrCat("<CompleteMultipartUpload>", list_, "</CompleteMultipartUpload>");
    S3Client::Request request = Request("POST", {{"uploadId", id_}}, body);
    request.needs = S3Client::Needs::kCompleted;
    request.least_time = kCompleteTime;
    // If the answer to a request was lost, the service no longer knows the upload when the request
    // is repeated, and nothing says whether the object is there.
    return ErrorOfPut(client_.Send(request, client_.DeadlineOf(call_, 0), call_.stop).status(),
                      kGone);
  }

  void Abort() {
    const absl::Duration patience = call_.stop.stop_requested() ? kStoppedPatience : kAbortPatience;
    // Parts that stay cost money until the bucket's lifecycle rule removes them.
    client_
        .Send({ObjectOperation::kMultipart,
               "s3:AbortMultipartUpload",
               "DELETE",
               key_,
               {{"uploadId", id_}}},
              client_.DeadlineOf({patience, {}}, 0), {})
        .IgnoreError();
  }

  static constexpr char kGone[] = "the upload is gone; it begins anew";

  S3Client& client_;
  const std::string key_;
  const ObjectCall call_;
  std::string id_;
  std::string list_;
  int parts_ = 0;
};

// The download of a range, which may take several requests.
class S3ObjectStore::Download {
 public:
  Download(S3Client& client, std::string key, const ObjectRange& range, const Sink& sink)
      : client_(client), key_(std::move(key)), range_(range), sink_(sink) {}

  absl::Status Run(const ObjectCall& call) {
    BackOff back_off(absl::Milliseconds(200), absl::Seconds(5));
    uint64_t had = 0;
    // Somebody waits for a range. The rest of an object has as much time as its bytes take:
    // OutboundOptions::stall_time ends a request that stands.
    absl::Time deadline = client_.DeadlineOf(call, ends() ? range_.bytes : 0);
    for (;;) {
      absl::Status status = Try(ends() ? deadline : deadline + kMostTransfer, call.stop);
      if (status.ok() || !absl::IsUnavailable(status) || !sunk_.ok()) return status;
      if (!ends() && taken_ > had) {  // bytes that moved give the rest its time
        deadline = client_.DeadlineOf(call, 0);
        back_off = BackOff(absl::Milliseconds(200), absl::Seconds(5));
        had = taken_;
      }
      if (absl::Status again = client_.Again(status, back_off, deadline, call.stop); !again.ok()) {
        return again;
      }
    }
  }

 private:
  bool ends() const { return range_.bytes != ObjectRange().bytes; }
  bool whole() const { return range_.offset + taken_ == 0 && !ends(); }

  absl::Status Try(absl::Time deadline, const std::stop_token& stop) {
    if (taken_ == range_.bytes) return absl::OkStatus();
    S3Client::Request request{ObjectOperation::kGet, kGetRight, "GET", key_};
    const uint64_t begin = range_.offset + taken_;
    if (!whole()) {
      const std::string last =
          ends() ? absl::StrCat(range_.offset + range_.bytes - 1) : std::string();
      request.fields.emplace_back("range", absl::StrCat("bytes=", begin, "-", last));
    }
    if (!tag_.empty()) request.fields.emplace_back("if-match", tag_);
    const bool wants_part = !whole();
    const auto take = [&](const OutboundAnswer& answer, std::string_view piece) {
      if (tag_.empty()) tag_ = answer.Field("etag");
      if (wants_part && answer.status != 206) {
        sunk_ = absl::InternalError(absl::StrCat("objects: ", client_.options().endpoint,
                                                 " ignores the range of a download"));
      } else if (piece.size() > range_.bytes - taken_) {
        sunk_ = absl::InternalError(absl::StrCat("objects: ", client_.options().endpoint,
                                                 " sends more bytes than were asked for"));
      } else {
        sunk_ = sink_(piece);
        taken_ += piece.size();
      }
      return sunk_.ok();
    };
    const absl::StatusOr<S3Client::Answer> answer = client_.SendOnce(request, take, deadline, stop);
    if (!sunk_.ok()) return sunk_;
    // A whole answer after a part: the object ends here.
    if (absl::IsOutOfRange(answer.status()) && taken_ > 0) return absl::OkStatus();
    return answer.status();
  }

  static constexpr absl::Duration kMostTransfer = absl::Hours(6);

  S3Client& client_;
  const std::string key_;
  const ObjectRange range_;
  const Sink& sink_;
  uint64_t taken_ = 0;
  std::string tag_;    // the object's ETag, once it is known
  absl::Status sunk_;  // the latest result of the sink
};

S3ObjectStore::S3ObjectStore(S3Options options, std::string prefix, Clock& clock,
                             uint64_t part_bytes)
    : prefix_(std::move(prefix)), part_bytes_(part_bytes), client_(std::move(options), clock) {}

std::string S3ObjectStore::Name() const {
  std::string name = absl::StrCat("s3://", client_.options().bucket, "/", prefix_);
  name.pop_back();
  return name;
}

absl::Status S3ObjectStore::Put(const std::string& key, std::string_view bytes,
                                const ObjectCall& call) {
  if (absl::Status status = CheckObjectKey(key); !status.ok()) return status;
  const S3Client::Request request{.operation = ObjectOperation::kPut,
                                  .right = kPutRight,
                                  .method = "PUT",
                                  .key = prefix_ + key,
                                  .body = bytes,
                                  .needs = S3Client::Needs::kTag};
  return ErrorOfPut(
      client_.Send(request, client_.DeadlineOf(call, bytes.size()), call.stop).status(),
      "check the endpoint");
}

absl::Status S3ObjectStore::PutFile(const std::string& key, const std::filesystem::path& path,
                                    const ObjectCall& call) {
  if (absl::Status status = CheckObjectKey(key); !status.ok()) return status;
  std::error_code error;
  const uint64_t size = std::filesystem::file_size(path, error);
  if (error) return FileProblem(path, error.value());
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  if (!file) return FileProblem(path, errno);
  const uint64_t part_bytes = std::max(part_bytes_, size / kMostParts + 1);
  if (size > part_bytes) {
    return Upload(client_, prefix_ + key, call).Send(file, path, size, part_bytes);
  }
  std::string bytes(size, '\0');
  errno = 0;
  if (!file.read(bytes.data(), static_cast<std::streamsize>(size))) return FileProblem(path, errno);
  return Put(key, bytes, call);
}

absl::Status S3ObjectStore::Get(const std::string& key, const ObjectRange& range, const Sink& sink,
                                const ObjectCall& call) {
  if (absl::Status status = CheckObjectKey(key); !status.ok()) return status;
  return Download(client_, prefix_ + key, range, sink).Run(call);
}

absl::StatusOr<ObjectFacts> S3ObjectStore::Stat(const std::string& key, const ObjectCall& call) {
  if (absl::Status status = CheckObjectKey(key); !status.ok()) return status;
  const absl::StatusOr<S3Client::Answer> answer =
      client_.Send({ObjectOperation::kStat, kGetRight, "HEAD", prefix_ + key},
                   client_.DeadlineOf(call, 0), call.stop);
  if (!answer.ok()) return answer.status();
  ObjectFacts facts{key, 0};
  if (!absl::SimpleAtoi(std::string(answer->http.Field("content-length")), &facts.size)) {
    return absl::InternalError(absl::StrCat("objects: ", client_.options().endpoint,
                                            " does not say how long ", key, " is"));
  }
  return facts;
}

absl::Status S3ObjectStore::List(const std::string& prefix,
                                 const std::function<bool(const ObjectFacts&)>& visit,
                                 const ObjectCall& call) {
  std::string next;
  do {
    S3Client::Request request{ObjectOperation::kList,
                              "s3:ListBucket",
                              "GET",
                              "",
                              {{"list-type", "2"}, {"prefix", prefix_ + prefix}}};
    if (!next.empty()) request.query.emplace_back("continuation-token", next);
    const absl::StatusOr<S3Client::Answer> answer =
        client_.Send(request, client_.DeadlineOf(call, 0), call.stop);
    if (!answer.ok()) return answer.status();
    absl::StatusOr<S3Listing> listing = ParseListing(answer->body);
    if (!listing.ok()) return listing.status();
    for (ObjectFacts& object : listing->objects) {
      if (!object.key.starts_with(prefix_ + prefix)) {
        return absl::InternalError("objects: a listing has a key without the asked prefix");
      }
      object.key.erase(0, prefix_.size());
      if (!visit(object)) return absl::OkStatus();
    }
    next = listing->next;
  } while (!next.empty());
  return absl::OkStatus();
}

absl::Status S3ObjectStore::Remove(const std::string& key, const ObjectCall& call) {
  if (absl::Status status = CheckObjectKey(key); !status.ok()) return status;
  absl::Status status =
      client_
          .Send({ObjectOperation::kRemove, "s3:DeleteObject", "DELETE", prefix_ + key},
                client_.DeadlineOf(call, 0), call.stop)
          .status();
  return absl::IsNotFound(status) ? absl::OkStatus() : status;
}

absl::StatusOr<S3Options> S3OptionsOf(const S3Place& place, std::string ca_file,
                                      const Environment& environment, OnObjectRequest on_request) {
  S3Options options;
  options.bucket = place.bucket;
  options.region = place.region;
  for (const char* const name : {"AWS_REGION", "AWS_DEFAULT_REGION"}) {
    if (options.region.empty()) options.region = environment(name);
  }
  if (options.region.empty()) options.region = "us-east-1";
  options.endpoint = place.endpoint;
  if (const std::string url = environment("AWS_ENDPOINT_URL");
      options.endpoint.empty() && !url.empty()) {
    absl::StatusOr<std::string> endpoint = ParseEndpoint(url);
    if (!endpoint.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat("AWS_ENDPOINT_URL ", endpoint.status().message()));
    }
    options.endpoint = *std::move(endpoint);
  }
  const bool aws = options.endpoint.empty();
  if (aws) options.endpoint = absl::StrCat("https://s3.", options.region, ".amazonaws.com");
  options.path_style =
      place.style == S3Place::Style::kDefault ? !aws : place.style == S3Place::Style::kPath;
  options.ca_file = std::move(ca_file);
  options.environment = environment;
  options.on_request = std::move(on_request);
  return options;
}

}  // namespace wan::server
