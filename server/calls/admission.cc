#include "server/calls/admission.h"

#include "absl/strings/str_cat.h"
#include "server/conversion/errors.h"

namespace wan::server {
namespace {

constexpr absl::Duration kTryAgain = absl::Seconds(1);
// Bytes charged for a download: one chunk of the file as a message, and a second copy in the
// transport.
constexpr int64_t kDownloadBytes = int64_t{512} << 10;
// Bytes that must be free for the answer before a change is admitted; larger than any job's answer.
constexpr int64_t kOwedBytes = int64_t{256} << 10;

// Words for the messages about a budget: what the budget counts, and how a caller makes room.
struct Words {
  const char* places;
  const char* remedy;
};
constexpr Words kWords[] = {
    {"open streams", "end one first"},
    {"open downloads", "end one first"},
    {"requests under way", "wait for the answers of some"},
    {"bytes of requests under way", "wait for the answers of some"},
    {"bytes of answers under way", "read the answers first"},
};

}  // namespace

Admission::Side::Side(const PlaceLimits& limits)
    : budgets{Budget(limits.streams), Budget(limits.downloads), Budget(limits.requests),
              Budget(limits.request_bytes), Budget(limits.answer_bytes)} {}

Admission::Admission(const AdmissionLimits& limits, std::function<void(int64_t bytes)> freed)
    : limits_(limits),
      freed_(std::move(freed)),
      callers_(limits.callers),
      everybody_(limits.everybody) {}

Admission::Lease& Admission::Lease::operator=(Lease&& other) noexcept {
  if (this == &other) return *this;
  if (admission_ != nullptr) admission_->Release(*this);
  admission_ = std::exchange(other.admission_, nullptr);
  side_ = other.side_;
  holder_ = other.holder_;
  front_ = other.front_;
  places_ = other.places_;
  bytes_ = other.bytes_;
  effect_ = other.effect_;
  connection_ = std::move(other.connection_);
  return *this;
}

absl::StatusOr<Admission::Lease> Admission::Arriving(const Party& party, int64_t bytes,
                                                     Lease so_far) {
  Wish wish{.bytes = bytes};
  wish.places[kRequestBytes] = bytes;
  return Take(party, std::move(wish), std::move(so_far));
}

absl::StatusOr<Admission::Lease> Admission::Request(const Party& party, int64_t bytes,
                                                    Effect effect, Lease arrived) {
  Wish wish{.bytes = bytes, .effect = effect};
  wish.places[kRequests] = 1;
  if (bytes > limits_.small_request_bytes) wish.places[kRequestBytes] = bytes;
  return Take(party, std::move(wish), std::move(arrived));
}

absl::StatusOr<Admission::Lease> Admission::Request(const Party& party, int64_t bytes,
                                                    Effect effect) {
  return Request(party, bytes, effect, {});
}

absl::StatusOr<Admission::Lease> Admission::Answer(Lease request, int64_t bytes) {
  // The lease is empty: the request was not admitted.
  if (request.admission_ == nullptr) return request;
  const Party party{request.holder_->first, request.front_, request.side_ == &everybody_};
  Wish wish{.bytes = bytes, .asked = request.effect_ == Effect::kReads};
  wish.places[kRequests] = request.places_[kRequests];
  if (bytes > limits_.small_answer_bytes) wish.places[kAnswerBytes] = bytes;
  return Take(party, std::move(wish), std::move(request));
}

absl::StatusOr<Admission::Lease> Admission::Message(const Party& party, int64_t bytes,
                                                    Effect effect) {
  if (bytes <= limits_.small_answer_bytes) return Lease();
  Wish wish{.bytes = bytes, .asked = effect == Effect::kReads};
  wish.places[kAnswerBytes] = bytes;
  return Take(party, std::move(wish), {});
}

absl::StatusOr<Admission::Lease> Admission::Stream(const Party& party) {
  Wish wish;
  wish.places[kStreams] = 1;
  return Take(party, std::move(wish), {});
}

absl::StatusOr<Admission::Lease> Admission::Download(const Party& party, const std::string& peer) {
  Wish wish{.bytes = kDownloadBytes, .connection = peer};
  wish.places[kDownloads] = 1;
  return Take(party, std::move(wish), {});
}

absl::StatusOr<Admission::Lease> Admission::Take(const Party& party, Wish wish, Lease old) {
  absl::Status refusal;
  std::string name(party.name);
  {
    absl::MutexLock lock(&mutex_);
    Side& side = party.everybody ? everybody_ : callers_;
    const auto [entry, added] = side.holders.try_emplace(std::move(name));
    Holder& holder = entry->second;
    // Ask the budgets as if the exchanged lease were already released.
    const bool exchanges = old.admission_ != nullptr;
    if (exchanges) Count(old, -1);
    if (wish.asked) refusal = Ask(party, wish, exchanges ? old.places_ : Places{}, holder);
    if (refusal.ok() && !wish.connection.empty()) refusal = TakeOfConnection(wish.connection);
    if (refusal.ok()) {
      if (exchanges) {
        old.admission_ = nullptr;
        --holder.leases;
      }
      ++holder.leases;
      Lease taken;
      taken.admission_ = this;
      taken.side_ = &side;
      taken.holder_ = &*entry;
      taken.front_ = party.front;
      taken.places_ = wish.places;
      taken.bytes_ = wish.bytes;
      taken.effect_ = wish.effect;
      taken.connection_ = std::move(wish.connection);
      Count(taken, 1);
      return taken;
    }
    if (exchanges) Count(old, 1);
    if (holder.leases == 0) side.holders.erase(entry);
  }
  // The destructor of `old` reports the bytes of `old`.
  Freed(wish.bytes - old.bytes_);
  return refusal;
}

absl::Status Admission::Ask(const Party& party, const Wish& wish, const Places& had,
                            const Holder& holder) {
  const auto& budgets = (party.everybody ? everybody_ : callers_).budgets;
  for (size_t kind = 0; kind < kKinds; ++kind) {
    if (wish.places[kind] <= had[kind]) continue;
    const int64_t held = holder.held[kind];
    const Budget::Verdict verdict = budgets[kind].Ask(held, party.front, wish.places[kind]);
    if (verdict == Budget::Verdict::kRoom) continue;
    return Refused(party, static_cast<Kind>(kind), verdict, held, wish.places[kind]);
  }
  if (wish.effect == Effect::kReads) return absl::OkStatus();
  const int64_t unread = holder.held[kAnswerBytes];
  const Budget::Verdict verdict = budgets[kAnswerBytes].Ask(unread, party.front, kOwedBytes);
  // Allow the answer even if the budget is full, so that a party that has read all its answers can
  // always make changes.
  if (verdict != Budget::Verdict::kPartyFull) return absl::OkStatus();
  return Refused(party, kAnswerBytes, verdict, unread, kOwedBytes);
}

absl::Status Admission::TakeOfConnection(const std::string& connection) {
  int& open = downloads_by_connection_[connection];
  if (open < limits_.downloads_per_connection) {
    ++open;
    return absl::OkStatus();
  }
  ++refused_.refused_downloads;
  return ServerBusyError(absl::StrCat("this connection has ", open,
                                      " open downloads, which is its limit; end one first"),
                         kTryAgain);
}

absl::Status Admission::Refused(const Party& party, Kind kind, Budget::Verdict verdict,
                                int64_t held, int64_t more) {
  int64_t* const counts[] = {&refused_.refused_streams, &refused_.refused_downloads,
                             &refused_.refused_requests, &refused_.refused_requests,
                             &refused_.refused_answers};
  ++*(party.everybody ? &refused_.refused_public : counts[kind]);
  const Words& words = kWords[kind];
  const Budget& budget = (party.everybody ? everybody_ : callers_).budgets[kind];
  const std::string places =
      party.everybody
          ? absl::StrCat(budget.limit(), " ", words.places, " that public calls may have")
          : absl::StrCat("the server's ", budget.limit(), " ", words.places);
  if (verdict == Budget::Verdict::kPartyFull) {
    const std::string excess =
        more == 1 ? "which is its part now"
                  : absl::StrCat("and ", more, " more do not fit into its part now");
    return ServerBusyError(
        absl::StrCat(party.everybody ? "this connection" : "this caller", " has ", held, " of ",
                     places, ", ", excess, "; ", words.remedy),
        kTryAgain);
  }
  return ServerBusyError(more == 1 ? absl::StrCat("others have all of ", places)
                                   : absl::StrCat("others have so many of ", places, " that ", more,
                                                  " more do not fit now"),
                         kTryAgain);
}

AdmissionStats Admission::Stats() const {
  absl::MutexLock lock(&mutex_);
  AdmissionStats stats = refused_;
  const auto& budgets = callers_.budgets;
  stats.streams = budgets[kStreams].taken();
  stats.downloads = budgets[kDownloads].taken();
  stats.requests = budgets[kRequests].taken();
  stats.request_bytes = budgets[kRequestBytes].taken();
  stats.answer_bytes = budgets[kAnswerBytes].taken();
  return stats;
}

size_t Admission::PartiesNow() const {
  absl::MutexLock lock(&mutex_);
  return callers_.holders.size() + everybody_.holders.size();
}

void Admission::Count(const Lease& lease, int sign) {
  for (size_t kind = 0; kind < kKinds; ++kind) {
    const int64_t places = sign * lease.places_[kind];
    lease.side_->budgets[kind].Take(lease.front_, places);
    lease.holder_->second.held[kind] += places;
  }
}

void Admission::Release(Lease& lease) {
  {
    absl::MutexLock lock(&mutex_);
    Count(lease, -1);
    if (--lease.holder_->second.leases == 0) {
      lease.side_->holders.erase(lease.side_->holders.find(lease.holder_->first));
    }
    if (!lease.connection_.empty()) {
      const auto found = downloads_by_connection_.find(lease.connection_);
      if (--found->second == 0) downloads_by_connection_.erase(found);
    }
  }
  Freed(lease.bytes_);
}

void Admission::Freed(int64_t bytes) const {
  if (freed_ && bytes > 0) freed_(bytes);
}

}  // namespace wan::server
