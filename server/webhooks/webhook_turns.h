// Decides which webhook report is sent next.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "absl/time/time.h"

namespace wan::server {

// A webhook report that waits for an attempt to send it.
struct WaitingReport {
  int64_t number = 0;  // the report's number in the outbox
  std::string host;    // host of the report's URL
  std::string owner;   // owner of the report's job; empty: unknown
  int attempts = 0;    // number of attempts to send the report so far
  absl::Time due;
};

// Decides which waiting report gets a slot for sending, so that a receiver that does not answer, or
// an owner of many reports, delays no other owner. Not thread-safe. The rules:
// - Owners take turns, and so do the hosts of an owner. Reports of one owner for one host are sent
//   in the order of their due times, and at equal times in the order of their numbers.
// - A host, or a known owner, gets another slot only if it holds fewer slots than are free. So a
//   single host or owner gets at most half of the slots, and a new host or owner finds a free slot.
// - A host that did not answer the last attempt gets one slot at a time, and all silent hosts
//   together get at most half of the slots.
class WebhookTurns {
 public:
  // `places` is the number of slots, at least 1.
  explicit WebhookTurns(int places) : places_(places) {}

  void Add(const WaitingReport& report);

  // Removes and returns the next report that is due at `now`; the report holds a slot until End.
  // Returns nullopt if no due report may have a slot.
  std::optional<WaitingReport> Take(absl::Time now);

  // Frees the report's slot. Call End when the attempt has ended. `answered` says whether the host
  // sent any answer; nullopt if no request was made.
  void End(const WaitingReport& report, std::optional<bool> answered);

  // Returns the earliest due time of a report that may have a slot; nullopt if no report can get a
  // slot before the next call of Add or End.
  std::optional<absl::Time> NextDue() const;

 private:
  struct Holder {
    int held = 0;           // number of slots that the holder has
    int64_t last_turn = 0;  // number of the holder's last turn; 0: no turn yet
    bool silent = false;    // the host did not answer the last attempt
  };
  // The attempts of each waiting report; the key is the report's due time and number.
  using Lane = std::map<std::pair<absl::Time, int64_t>, int>;

  bool HasRoom(const Holder& host, const std::string& owner_name, const Holder& owner) const;

  const int places_;
  int held_ = 0;
  int held_by_silent_ = 0;
  int64_t turn_ = 0;
  std::map<std::string, Holder> hosts_;
  std::map<std::string, Holder> owners_;
  // The key is host and owner; no lane is empty.
  std::map<std::pair<std::string, std::string>, Lane> lanes_;
};

}  // namespace wan::server
