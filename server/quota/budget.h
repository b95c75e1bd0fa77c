// Shares a limited number of places between parties, so that none can take all.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace wan::server {

// The protocol over which a call comes.
enum class Front { kGrpc, kHttp };
inline constexpr size_t kFronts = 2;

// The party that is charged for a call: a principal, or the connection of an unidentified caller.
struct Party {
  std::string_view name;
  Front front = Front::kGrpc;
  // Whether the method needs no credentials (health, reflection); such calls have separate budgets.
  bool everybody = false;
};

// Shares out places; a place may be a stream, a request or a byte. Not thread-safe. The rules:
// - A party may take more while its total stays at most the number of free places. So a single
//   party gets at most half of the places, two parties get a third each, and so on.
// - The last eighth is only for parties that hold nothing, at most a 64th for each, so that a new
//   party finds room.
// - One eighth is kept for gRPC and one for HTTP; calls over the other protocol cannot take it. A
//   budget whose places do not belong to a protocol has no such reserve.
class Budget {
 public:
  explicit Budget(int64_t limit) : limit_(limit), reserve_(limit / 8) {}

  enum class Verdict {
    kRoom,
    kPartyFull,  // the party already holds its share
    kFull,       // no room even for a party that holds nothing
  };

  // Whether a party that holds `held` may take `more`.
  Verdict Ask(int64_t held, Front front, int64_t more) const {
    return Ask(held, more, std::min(free(), limit_ - reserve_ - Of(front)));
  }
  // Like Ask above, for a budget whose places do not belong to a protocol.
  Verdict Ask(int64_t held, int64_t more) const { return Ask(held, more, free()); }

  // Takes places; a negative number gives places back.
  void Take(Front front, int64_t places) { taken_[static_cast<size_t>(front)] += places; }
  void Take(int64_t places) { Take(Front::kGrpc, places); }

  int64_t limit() const { return limit_; }
  int64_t taken() const { return taken_[0] + taken_[1]; }
  int64_t free() const { return limit_ - taken(); }

 private:
  Verdict Ask(int64_t held, int64_t more, int64_t room) const {
    if (more == 0) return Verdict::kRoom;
    const bool modest = held == 0 && more <= std::max<int64_t>(1, limit_ / 64);
    const bool fits = room - more >= (modest ? 0 : reserve_);
    if (fits && (held == 0 || held + more <= free())) return Verdict::kRoom;
    return held == 0 ? Verdict::kFull : Verdict::kPartyFull;
  }
  int64_t Of(Front front) const { return taken_[static_cast<size_t>(front)]; }

  int64_t limit_;
  int64_t reserve_;
  std::array<int64_t, kFronts> taken_{};
};

}  // namespace wan::server
