// Shares a number of places between parties, so that none can take all.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace wan::server {

// Over which wire a call comes.
enum class Front { kGrpc, kHttp };
inline constexpr size_t kFronts = 2;

// The party that asks for places (Call::party).
struct Party {
  std::string_view name;
  Front front = Front::kGrpc;
  // Whether the call needs no credentials; such calls have budgets of their own.
  bool everybody = false;
};

// Not thread-safe. Places may be bytes. The rule:
//   - A party that holds something gets more while that and what it holds are not more than what is
//     free. So one party has half of the places at most, two have a third each, and so on.
//   - The last eighth goes to parties that hold nothing, and to each of them a 64th at most. So a
//     new party always finds room.
//   - An eighth is kept for each front that the other one cannot take.
class Budget {
 public:
  explicit Budget(int64_t limit) : limit_(limit), reserve_(limit / 8) {}

  enum class Verdict {
    kRoom,
    kPartyFull,  // the party holds its part
    kFull,       // there is no room for a party that holds nothing
  };

  // Whether a party that holds `held` may have `more`. Without any there is room.
  Verdict Ask(int64_t held, Front front, int64_t more) const {
    if (more == 0) return Verdict::kRoom;
    const int64_t room = std::min(free(), limit_ - reserve_ - Of(front));
    const bool modest = held == 0 && more <= std::max<int64_t>(1, limit_ / 64);
    const bool fits = room - more >= (modest ? 0 : reserve_);
    if (fits && (held == 0 || held + more <= free())) return Verdict::kRoom;
    return held == 0 ? Verdict::kFull : Verdict::kPartyFull;
  }

  // Places below 0 are given back.
  void Take(Front front, int64_t places) { taken_[static_cast<size_t>(front)] += places; }

  int64_t limit() const { return limit_; }
  int64_t taken() const { return taken_[0] + taken_[1]; }
  int64_t free() const { return limit_ - taken(); }

 private:
  int64_t Of(Front front) const { return taken_[static_cast<size_t>(front)]; }

  int64_t limit_;
  int64_t reserve_;
  std::array<int64_t, kFronts> taken_{};
};

}  // namespace wan::server
