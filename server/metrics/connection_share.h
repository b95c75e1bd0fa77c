// Open connections of one kind, of which nobody can take the others' places.
#pragma once

#include <cstddef>
#include <list>
#include <memory>
#include <string>

namespace wan::server {

// What the list needs to know of a connection.
class Closable {
 public:
  virtual ~Closable() = default;
  // Makes the pending operation fail, which releases the last reference.
  virtual void Close() = 0;
};

// Of one thread.
class ConnectionShare {
 public:
  // `most` is at least 1.
  explicit ConnectionShare(size_t most) : most_(most) {}

  // A connection of a peer (NetworkOf) comes. If there is no room, the oldest connection of the
  // peer that has the most is closed, this one counted: whoever opens many closes their own.
  void Add(const std::string& peer, const std::shared_ptr<Closable>& connection);

  // A connection is of this kind no more.
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
