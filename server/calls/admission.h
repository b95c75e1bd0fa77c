// How much of what callers cause may be under way at a time (docs/operate/limits.md).
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "server/calls/budget.h"

namespace wan::server {

// Places of each kind. Parties share them as Budget says.
struct PlaceLimits {
  // Open streams of every kind: watchers, downloads, Generate.
  int64_t streams = 16'384;
  // Open downloads.
  int64_t downloads = 256;
  // Requests of any size that are worked on, or whose answer is not sent yet.
  int64_t requests = 8'192;
  // Bytes of the requests that arrive or are worked on, without small ones.
  int64_t request_bytes = int64_t{256} << 20;
  // Bytes of the answers that are not sent yet, without small ones.
  int64_t answer_bytes = int64_t{128} << 20;
};

struct AdmissionLimits {
  PlaceLimits callers;
  // Of the calls that anybody may make, who may take nothing of the callers'.
  PlaceLimits everybody{.streams = 1'024,
                        .downloads = 0,
                        .requests = 1'024,
                        .request_bytes = int64_t{64} << 20,
                        .answer_bytes = int64_t{8} << 20};
  // Requests and answers of up to so many bytes need a place, and no bytes: those that cancel and
  // watch get through beside large ones.
  int64_t small_request_bytes = int64_t{64} << 10;
  int64_t small_answer_bytes = int64_t{16} << 10;
  // Open downloads over one connection.
  int downloads_per_connection = 64;
};

// What a request does. One that changes something must not be refused once it has.
enum class Effect { kReads, kChanges };

struct AdmissionStats {
  // Of callers; public calls are not counted.
  int64_t request_bytes = 0;
  int64_t answer_bytes = 0;
  int64_t requests = 0;
  int64_t streams = 0;
  int64_t downloads = 0;
  // Since the start.
  int64_t refused_requests = 0;
  int64_t refused_answers = 0;
  int64_t refused_streams = 0;
  int64_t refused_downloads = 0;
  int64_t refused_public = 0;  // of any of these, by public calls
};

// Thread-safe. What is too much is refused at once, never queued: memory stays within the limits
// whatever callers do, and a caller that is refused (RESOURCE_EXHAUSTED, SERVER_BUSY) learns when
// to try again, and whether it holds too much itself. Takes the same time however many parties
// there are, and forgets those that hold nothing.
class Admission {
  enum Kind { kStreams, kDownloads, kRequests, kRequestBytes, kAnswerBytes, kKinds };
  using Places = std::array<int64_t, kKinds>;

  struct Holder {
    Places held{};
    int leases = 0;
  };
  using Holders = std::unordered_map<std::string, Holder>;
  struct Side {
    explicit Side(const PlaceLimits& limits);
    std::array<Budget, kKinds> budgets;
    Holders holders;  // by name; leases keep pointers to the entries
  };

 public:
  // Places that are taken until the lease goes. It must not outlive the admission.
  class Lease {
   public:
    Lease() = default;
    Lease(Lease&& other) noexcept { *this = std::move(other); }
    Lease& operator=(Lease&& other) noexcept;
    ~Lease() {
      if (admission_ != nullptr) admission_->Release(*this);
    }

   private:
    friend class Admission;

    Admission* admission_ = nullptr;  // null: holds nothing
    Side* side_ = nullptr;
    Holders::value_type* holder_ = nullptr;
    Front front_ = Front::kGrpc;
    Places places_{};
    int64_t bytes_ = 0;  // of the request or answer, also of a small one
    Effect effect_ = Effect::kReads;
    std::string connection_;  // of a download
  };

  // `freed` is told about bytes that are not needed any more, those of refused requests too; any
  // thread, no lock held.
  explicit Admission(const AdmissionLimits& limits, std::function<void(int64_t bytes)> freed = {});
  Admission(const Admission&) = delete;
  Admission& operator=(const Admission&) = delete;

  // A request of which `bytes` have arrived, and which is not whole. `so_far` is what was taken for
  // it before, and is given back on an error.
  absl::StatusOr<Lease> Arriving(const Party& party, int64_t bytes, Lease so_far);

  // A request that is whole, to be worked on. `arrived` is as above.
  // With kChanges it is also refused while the party has not read so many answers that one of
  // 256 KiB would be too much: what was done must be answered.
  absl::StatusOr<Lease> Request(const Party& party, int64_t bytes, Effect effect, Lease arrived);
  absl::StatusOr<Lease> Request(const Party& party, int64_t bytes, Effect effect);

  // The answer of a request, to be sent. It keeps the request's place, and its bytes take the place
  // of the request's. Not refused for a request that changed something.
  absl::StatusOr<Lease> Answer(Lease request, int64_t bytes);

  // A message of a stream, to be sent. A small one takes nothing. Not refused with kChanges: the
  // stream's end would undo what it has done.
  absl::StatusOr<Lease> Message(const Party& party, int64_t bytes, Effect effect);

  // One more stream.
  absl::StatusOr<Lease> Stream(const Party& party);

  // A download over the connection of `peer` (grpc::ServerContext::peer, or HttpHead::peer).
  absl::StatusOr<Lease> Download(const Party& party, const std::string& peer);

  const AdmissionLimits& limits() const { return limits_; }
  AdmissionStats Stats() const;
  // Parties that hold something now.
  size_t PartiesNow() const;

 private:
  // What is to be taken.
  struct Wish {
    Places places{};
    int64_t bytes = 0;
    Effect effect = Effect::kReads;
    bool asked = true;            // false: taken in any case
    std::string connection = {};  // of a download
  };

  // Takes the places in exchange for those of `old`, which is of the same party or empty.
  absl::StatusOr<Lease> Take(const Party& party, Wish wish, Lease old);
  // Why the places cannot be taken; OK otherwise. Nobody is asked to give up what it `had`.
  absl::Status Ask(const Party& party, const Wish& wish, const Places& had, const Holder& holder)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status TakeOfConnection(const std::string& connection)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Adds a lease's places to what is taken (`sign` 1), or takes them away (-1).
  void Count(const Lease& lease, int sign) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Release(Lease& lease);
  // Counts a refusal, and says why there is not `more` of `kind` for the party.
  absl::Status Refused(const Party& party, Kind kind, Budget::Verdict verdict, int64_t held,
                       int64_t more) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Freed(int64_t bytes) const;

  const AdmissionLimits limits_;
  const std::function<void(int64_t)> freed_;
  mutable absl::Mutex mutex_;
  Side callers_ ABSL_GUARDED_BY(mutex_);
  Side everybody_ ABSL_GUARDED_BY(mutex_);
  AdmissionStats refused_ ABSL_GUARDED_BY(mutex_);  // its counts of refusals
  std::unordered_map<std::string, int> downloads_by_connection_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace wan::server
