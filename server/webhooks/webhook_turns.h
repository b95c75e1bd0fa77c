// Decides which report is sent next.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "absl/time/time.h"

namespace wan::server {

// A report that waits for an attempt.
struct WaitingReport {
  int64_t number = 0;  // number in the outbox
  std::string host;    // host of its URL
  std::string owner;   // owner of its job; empty: unknown
  int attempts = 0;    // attempts so far
  absl::Time due;
};

// Shares the places in which reports are sent, so that a silent receiver or an owner of many
// reports delays no other owner:
// - Owners take turns, and so do the hosts of an owner. The reports of one owner for one host go in
//   the order in which they are due, and those that are due together in that of their numbers.
// - A host, and an owner who is known, gets a further place only while it holds fewer than are
//   free: alone it gets half of them, and a newcomer finds one.
// - A host that did not answer the last attempt has one place at a time, and all such hosts
//   together have at most half.
// Not thread-safe.
class WebhookTurns {
 public:
  // `places` is at least 1.
  explicit WebhookTurns(int places) : places_(places) {}

  void Add(const WaitingReport& report);

  // Takes the next report that is due at `now`; it holds a place until End. Returns nullopt if no
  // due report may have a place.
  std::optional<WaitingReport> Take(absl::Time now);

  // The attempt has ended. `answered` says whether the host sent any answer; nullopt if no request
  // was made.
  void End(const WaitingReport& report, std::optional<bool> answered);

  // The due time of the next report that may have a place; nullopt if only Add or End can change
  // that.
  std::optional<absl::Time> NextDue() const;

 private:
  struct Holder {
    int held = 0;           // places
    int64_t last_turn = 0;  // 0: none yet
    bool silent = false;    // the host did not answer the last attempt
  };
  using Lane = std::map<std::pair<absl::Time, int64_t>, int>;  // attempts by due time and number

  bool HasRoom(const Holder& host, const std::string& owner_name, const Holder& owner) const;

  const int places_;
  int held_ = 0;
  int held_by_silent_ = 0;
  int64_t turn_ = 0;
  std::map<std::string, Holder> hosts_;
  std::map<std::string, Holder> owners_;
  std::map<std::pair<std::string, std::string>, Lane> lanes_;  // by host and owner; none is empty
};

}  // namespace wan::server
