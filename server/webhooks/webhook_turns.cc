#include "server/webhooks/webhook_turns.h"

#include <algorithm>
#include <tuple>

namespace wan::server {

void WebhookTurns::Add(const WaitingReport& report) {
  hosts_.try_emplace(report.host);
  owners_.try_emplace(report.owner);
  lanes_[{report.host, report.owner}].emplace(std::pair(report.due, report.number),
                                              report.attempts);
}

bool WebhookTurns::HasRoom(const Holder& host, const std::string& owner_name,
                           const Holder& owner) const {
  const int free = places_ - held_;
  if (host.held >= free || (!owner_name.empty() && owner.held >= free)) return false;
  return !host.silent || (host.held == 0 && held_by_silent_ < std::max(1, places_ / 2));
}

std::optional<WaitingReport> WebhookTurns::Take(absl::Time now) {
  auto next = lanes_.end();
  // Compare the turns of the owners first, so that an owner with many hosts has no more turns than
  // an owner with a single host.
  std::tuple<int64_t, int64_t, absl::Time> next_turn;
  for (auto lane = lanes_.begin(); lane != lanes_.end(); ++lane) {
    const absl::Time due = lane->second.begin()->first.first;
    const Holder& host = hosts_.at(lane->first.first);
    const Holder& owner = owners_.at(lane->first.second);
    if (due > now || !HasRoom(host, lane->first.second, owner)) continue;
    const std::tuple turn(owner.last_turn, host.last_turn, due);
    if (next == lanes_.end() || turn < next_turn) {
      next = lane;
      next_turn = turn;
    }
  }
  if (next == lanes_.end()) return std::nullopt;
  const auto first = next->second.begin();
  WaitingReport taken{first->first.second, next->first.first, next->first.second, first->second,
                      first->first.first};
  next->second.erase(first);
  if (next->second.empty()) lanes_.erase(next);
  Holder& host = hosts_.at(taken.host);
  Holder& owner = owners_.at(taken.owner);
  host.last_turn = owner.last_turn = ++turn_;
  ++host.held;
  ++owner.held;
  ++held_;
  if (host.silent) ++held_by_silent_;
  return taken;
}

void WebhookTurns::End(const WaitingReport& report, std::optional<bool> answered) {
  Holder& host = hosts_.at(report.host);
  if (host.silent) held_by_silent_ -= host.held;
  if (answered.has_value()) host.silent = !*answered;
  --host.held;
  if (host.silent) held_by_silent_ += host.held;
  --owners_.at(report.owner).held;
  --held_;
}

std::optional<absl::Time> WebhookTurns::NextDue() const {
  std::optional<absl::Time> next;
  for (const auto& [key, lane] : lanes_) {
    if (!HasRoom(hosts_.at(key.first), key.second, owners_.at(key.second))) continue;
    const absl::Time due = lane.begin()->first.first;
    next = std::min(next.value_or(due), due);
  }
  return next;
}

}  // namespace wan::server
