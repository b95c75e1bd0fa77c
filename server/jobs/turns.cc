#include "server/jobs/turns.h"

namespace wan::server {

void Turns::Take(const std::string& key, PostTask post, std::function<void(Turn)> begin) {
  {
    absl::MutexLock lock(&mutex_);
    const auto [found, free] = taken_.try_emplace(key);
    if (!free) {
      found->second.push_back({std::move(post), std::move(begin)});
      return;
    }
  }
  begin(std::make_shared<const Holder>(*this, key));
}

void Turns::TakeAll(std::vector<std::string> keys, PostTask post,
                    std::function<void(std::vector<Turn>)> begin) {
  struct Taking {
    Turns& turns;
    const std::vector<std::string> keys;
    const PostTask post;
    const std::function<void(std::vector<Turn>)> begin;
    std::vector<Turn> taken = {};

    static void Next(const std::shared_ptr<Taking>& taking) {
      if (taking->taken.size() == taking->keys.size()) {
        taking->begin(std::move(taking->taken));
        return;
      }
      taking->turns.Take(taking->keys[taking->taken.size()], taking->post, [taking](Turn turn) {
        taking->taken.push_back(std::move(turn));
        Next(taking);
      });
    }
  };
  Taking::Next(
      std::make_shared<Taking>(Taking{*this, std::move(keys), std::move(post), std::move(begin)}));
}

void Turns::PassOn(const std::string& key) {
  Waiter next;
  {
    absl::MutexLock lock(&mutex_);
    const auto found = taken_.find(key);
    if (found->second.empty()) {
      taken_.erase(found);
      return;
    }
    next = std::move(found->second.front());
    found->second.pop_front();
  }
  // The turn is in a shared_ptr because tasks are copied. If a task is destroyed without being run,
  // the next call still gets the turn.
  const auto turn = std::make_shared<Turn>(std::make_shared<const Holder>(*this, key));
  next.post([begin = std::move(next.begin), turn] { begin(std::move(*turn)); });
}

}  // namespace wan::server
