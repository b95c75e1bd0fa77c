// Limits the requests, answers and streams that are under way at a time (docs/operate/limits.md).
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
  // Places of calls without credentials, which may take none of the identified callers'.
  PlaceLimits everybody{.streams = 1'024,
                        .downloads = 0,
                        .requests = 1'024,
                        .request_bytes = int64_t{64} << 20,
                        .answer_bytes = int64_t{8} << 20};
  // Requests and answers up to this size need a place but no bytes, so that cancels and watches get
  // through beside large ones.
  int64_t small_request_bytes = int64_t{64} << 10;
  int64_t small_answer_bytes = int64_t{16} << 10;
  // Open downloads over one connection.
  int downloads_per_connection = 64;
};

// Whether a request changes something; then its answer must not be refused.
enum class Effect { kReads, kChanges };

struct AdmissionStats {
  // Parties of callers; public calls are not counted.
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

// Thread-safe. Excess is refused at once and never queued, so memory stays within the limits. The
// refusal (RESOURCE_EXHAUSTED, SERVER_BUSY) says when to try again, and whether the caller itself
// holds too much. Takes the same time however many parties there are, and forgets those that hold
// nothing.
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

  // `freed` is called with bytes that are no longer needed, those of refused requests included; on
  // any thread with no lock held.
  explicit Admission(const AdmissionLimits& limits, std::function<void(int64_t bytes)> freed = {});
  Admission(const Admission&) = delete;
  Admission& operator=(const Admission&) = delete;

  // A request of which `bytes` have arrived, and which is not whole. `so_far` is what was taken for
  // it before, and is given back on an error.
  absl::StatusOr<Lease> Arriving(const Party& party, int64_t bytes, Lease so_far);

  // A request that is whole, to be worked on. `arrived` is as above. With kChanges it is also
  // refused if the party's unread answers leave no room for one of 256 KiB, because a change must
  // be answered.
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
  // The places to take.
  struct Wish {
    Places places{};
    int64_t bytes = 0;
    Effect effect = Effect::kReads;
    bool asked = true;            // false: taken in any case
    std::string connection = {};  // of a download
  };

  // Takes the places in exchange for those of `old`, which is of the same party or empty.
  absl::StatusOr<Lease> Take(const Party& party, Wish wish, Lease old);
  // Returns why the places cannot be taken, or OK. A party never has to give up what it `had`.
  absl::Status Ask(const Party& party, const Wish& wish, const Places& had, const Holder& holder)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status TakeOfConnection(const std::string& connection)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Adds a lease's places to the taken ones (`sign` 1) or subtracts them (-1).
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
