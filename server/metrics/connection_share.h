// Limits the open connections of one kind, and shares the places between peers.
#pragma once

#include <cstddef>
#include <list>
#include <memory>
#include <string>

namespace wan::server {

// A connection as ConnectionShare sees it.
class Closable {
 public:
  virtual ~Closable() = default;
  // Makes the pending operation fail, which drops the last reference.
  virtual void Close() = 0;
};

// Use it on one thread.
class ConnectionShare {
 public:
  // `most` is at least 1.
  explicit ConnectionShare(size_t most) : most_(most) {}

  // Adds a connection of a peer (NetworkOf). Without room, it closes the oldest connection of the
  // peer that has the most, counting the new one, so that a peer that opens many closes its own.
  void Add(const std::string& peer, const std::shared_ptr<Closable>& connection);

  // Removes a connection that has ended or changed its kind.
  void Remove(const Closable& connection);

 private:
  struct Open {
    std::string peer;
    std::weak_ptr<Closable> connection;
  };

  const size_t most_;
  std::list<Open> open_;  // the oldest first
};

}  // namespace wan::server
