// Limits the requests, answers and streams that are open at a time (docs/operate/limits.md).
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <unordered_map>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "server/quota/budget.h"

namespace wan::server {

// Limits of each kind; the callers share them by the rule of class Budget.
struct PlaceLimits {
  // Maximum number of open streams of all kinds: watches, downloads and calls of Generate.
  int64_t streams = 16'384;
  // Maximum number of open downloads.
  int64_t downloads = 256;
  // Maximum number of requests that the server works on or has not answered completely.
  int64_t requests = 8'192;
  // Maximum number of bytes of requests that are arriving or being worked on; small requests do not
  // count.
  int64_t request_bytes = int64_t{256} << 20;
  // Maximum number of bytes of answers that are not sent yet; small answers do not count.
  int64_t answer_bytes = int64_t{128} << 20;
};

struct AdmissionLimits {
  PlaceLimits callers;
  // The limits of public calls, which need no credentials; public calls count only here, not in
  // `callers`.
  PlaceLimits everybody{.streams = 1'024,
                        .downloads = 0,
                        .requests = 1'024,
                        .request_bytes = int64_t{64} << 20,
                        .answer_bytes = int64_t{8} << 20};
  // Requests and answers up to this size do not count against request_bytes and answer_bytes, so
  // that cancels and watches get through beside large ones.
  int64_t small_request_bytes = int64_t{64} << 10;
  int64_t small_answer_bytes = int64_t{16} << 10;
  // Maximum number of open downloads over one connection, of either protocol.
  int downloads_per_connection = 64;
};

// Whether a request only reads or also changes something. The answer to a change is never refused.
enum class Effect { kReads, kChanges };

struct AdmissionStats {
  // The sum of all leases' contents, without those of public calls.
  int64_t request_bytes = 0;
  int64_t answer_bytes = 0;
  int64_t requests = 0;
  int64_t streams = 0;
  int64_t downloads = 0;
  // Counts of refusals since the server started.
  int64_t refused_requests = 0;
  int64_t refused_answers = 0;
  int64_t refused_streams = 0;
  int64_t refused_downloads = 0;
  int64_t refused_public = 0;  // refused public calls of all kinds
};

// Thread-safe. A call that exceeds a limit is refused at once and never queued, so memory stays
// within the limits. The error (RESOURCE_EXHAUSTED, SERVER_BUSY) says when to try again, and
// whether the caller itself holds too much. Every function takes constant time. The object forgets
// parties that hold nothing. A party is a principal, or the connection of an unidentified caller.
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
    Holders holders;  // the key is a party's name; leases keep pointers to the entries
  };

 public:
  // A request's, answer's or stream's part of the limits; the destructor gives it back. A lease
  // must not outlive the Admission object.
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

    Admission* admission_ = nullptr;  // null: the lease holds nothing
    Side* side_ = nullptr;
    Holders::value_type* holder_ = nullptr;
    Front front_ = Front::kGrpc;
    Places places_{};
    int64_t bytes_ = 0;  // size of the request or answer, even if it is small
    Effect effect_ = Effect::kReads;
    std::string connection_;  // set for downloads only
  };

  // Calls `freed` with the size of each request and answer that is no longer needed, refused ones
  // included. The call may come on any thread; no lock is held.
  explicit Admission(const AdmissionLimits& limits, std::function<void(int64_t bytes)> freed = {});
  Admission(const Admission&) = delete;
  Admission& operator=(const Admission&) = delete;

  // Admits a part of a request; `bytes` is the size of all parts so far. `so_far` is the lease of
  // the earlier parts; an error releases it.
  absl::StatusOr<Lease> Arriving(const Party& party, int64_t bytes, Lease so_far);

  // Admits a complete request, before the server works on it. `arrived` is the lease that Arriving
  // returned. A request that changes something is also refused if the party's unread answers leave
  // no room for another 256 KiB, because the server must be able to answer a change.
  absl::StatusOr<Lease> Request(const Party& party, int64_t bytes, Effect effect, Lease arrived);
  absl::StatusOr<Lease> Request(const Party& party, int64_t bytes, Effect effect);

  // Exchanges the lease of a request for that of its answer, before the answer is sent. Never
  // refuses the answer to a request that changed something.
  absl::StatusOr<Lease> Answer(Lease request, int64_t bytes);

  // Admits a message of a stream before it is sent. A small message takes nothing from the limits.
  // Never refuses a message of a stream with kChanges, because ending such a stream would undo the
  // change.
  absl::StatusOr<Lease> Message(const Party& party, int64_t bytes, Effect effect);

  // Admits a stream that is not a download.
  absl::StatusOr<Lease> Stream(const Party& party);

  // Admits a download over the connection of `peer` (grpc::ServerContext::peer, or HttpHead::peer).
  absl::StatusOr<Lease> Download(const Party& party, const std::string& peer);

  const AdmissionLimits& limits() const { return limits_; }
  AdmissionStats Stats() const;
  // Number of parties that hold something now.
  size_t PartiesNow() const;

 private:
  // The places and bytes that a lease should get.
  struct Wish {
    Places places{};
    int64_t bytes = 0;
    Effect effect = Effect::kReads;
    bool asked = true;            // false: the budgets cannot refuse it
    std::string connection = {};  // set for downloads only
  };

  // Takes the places and bytes that `wish` asks for, and releases `old`, which is empty or a lease
  // of the same party.
  absl::StatusOr<Lease> Take(const Party& party, Wish wish, Lease old);
  // Returns OK, or the reason why the wish cannot be granted. The party may always keep as much as
  // it `had` in the exchanged lease.
  absl::Status Ask(const Party& party, const Wish& wish, const Places& had, const Holder& holder)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status TakeOfConnection(const std::string& connection)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Adds the places and bytes of the lease to the budgets (`sign` 1) or subtracts them (-1).
  void Count(const Lease& lease, int sign) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Release(Lease& lease);
  // Counts a refusal and returns its error: the party holds `held` of `kind` and cannot have
  // `more`.
  absl::Status Refused(const Party& party, Kind kind, Budget::Verdict verdict, int64_t held,
                       int64_t more) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Freed(int64_t bytes) const;

  const AdmissionLimits limits_;
  const std::function<void(int64_t)> freed_;
  mutable absl::Mutex mutex_;
  Side callers_ ABSL_GUARDED_BY(mutex_);
  Side everybody_ ABSL_GUARDED_BY(mutex_);
  // Only the refused_ fields are used.
  AdmissionStats refused_ ABSL_GUARDED_BY(mutex_);
  std::unordered_map<std::string, int> downloads_by_connection_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace wan::server
