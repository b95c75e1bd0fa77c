#include "server/metrics/connection_share.h"

#include <algorithm>
#include <map>

namespace wan::server {

void ConnectionShare::Add(const std::string& peer, const std::shared_ptr<Closable>& connection) {
  open_.remove_if([](const Open& open) { return open.connection.expired(); });
  open_.push_back({peer, connection});
  if (open_.size() <= most_) return;
  std::map<std::string, size_t> counts;
  size_t largest = 0;
  for (const Open& open : open_) largest = std::max(largest, ++counts[open.peer]);
  const auto oldest = std::find_if(open_.begin(), open_.end(),
                                   [&](const Open& open) { return counts[open.peer] == largest; });
  if (const std::shared_ptr<Closable> closed = oldest->connection.lock()) closed->Close();
  open_.erase(oldest);
}

void ConnectionShare::Remove(const Closable& connection) {
  open_.remove_if([&](const Open& open) { return open.connection.lock().get() == &connection; });
}

}  // namespace wan::server
