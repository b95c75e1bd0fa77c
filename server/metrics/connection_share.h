// Limits how many connections of one kind are open, and shares the places between peers.
#pragma once

#include <cstddef>
#include <list>
#include <memory>
#include <string>

namespace wan::server {

// The interface by which ConnectionShare closes a connection.
class Closable {
 public:
  virtual ~Closable() = default;
  // Makes the pending operation of the connection fail, which drops the last reference to the
  // connection.
  virtual void Close() = 0;
};

// Use the object on one thread only.
class ConnectionShare {
 public:
  // `most` is the limit and at least 1.
  explicit ConnectionShare(size_t most) : most_(most) {}

  // Adds a connection of a peer; NetworkOf returns the peer's name. If the new connection exceeds
  // the limit, closes the oldest connection of the peer that now has the most connections, so that
  // a peer that opens many connections loses its own.
  void Add(const std::string& peer, const std::shared_ptr<Closable>& connection);

  // Removes a connection that has ended or changed to another kind.
  void Remove(const Closable& connection);

 private:
  struct Open {
    std::string peer;
    std::weak_ptr<Closable> connection;
  };

  const size_t most_;
  std::list<Open> open_;  // open connections, the oldest first
};

}  // namespace wan::server
