#include "server/calls/address_budgets.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace wan::server {
namespace {

constexpr size_t kFewestToForget = 1024;
constexpr absl::Duration kLogAgain = absl::Minutes(1);

}  // namespace

// All members are guarded by AddressBudgets::mutex_.
struct AddressBudgets::Address {
  int unanswered = 0;
  TokenBucket resets;
  absl::Time logged = absl::InfinitePast();
};

AddressBudgets::AddressBudgets(const AddressLimits& limits, Clock& clock)
    : limits_(limits), clock_(clock.Steady()), forget_at_(kFewestToForget) {}

std::unique_ptr<AddressBudgets::Part> AddressBudgets::Join(const std::string& address) {
  absl::MutexLock lock(&mutex_);
  return std::make_unique<Part>(*this, Find(address));
}

std::shared_ptr<AddressBudgets::Address> AddressBudgets::Find(const std::string& address) {
  const absl::Time now = clock_.Now();
  if (addresses_.size() >= forget_at_ && !addresses_.contains(address)) ForgetIdle(now);
  std::shared_ptr<Address>& found = addresses_[address];
  if (found == nullptr) {
    found = std::make_shared<Address>(Address{0, TokenBucket(limits_.resets, now)});
  }
  return found;
}

void AddressBudgets::ForgetIdle(absl::Time now) {
  std::erase_if(addresses_, [now](const auto& entry) {
    const bool connected = entry.second.use_count() > 1;
    return !connected && entry.second->resets.IsFull(now) &&
           now - entry.second->logged >= kLogAgain;
  });
  forget_at_ = std::max(kFewestToForget, 2 * addresses_.size());
}

absl::Duration AddressBudgets::DebtOf(const std::string& address) {
  absl::MutexLock lock(&mutex_);
  const auto found = addresses_.find(address);
  if (found == addresses_.end()) return absl::ZeroDuration();
  return found->second->resets.UntilDebtIsPaid(clock_.Now());
}

size_t AddressBudgets::size() const {
  absl::MutexLock lock(&mutex_);
  return addresses_.size();
}

AddressBudgets::Part::Part(AddressBudgets& budgets, std::shared_ptr<Address> address)
    : budgets_(budgets), address_(std::move(address)) {}

AddressBudgets::Part::~Part() {
  absl::MutexLock lock(&budgets_.mutex_);
  address_->unanswered -= unanswered_;
  budgets_.unanswered_ -= unanswered_;
  address_->resets.Take(unanswered_, budgets_.clock_.Now());
}

std::string AddressBudgets::Part::Tell(int unanswered, int resets) {
  const int more = unanswered - unanswered_;
  if (more == 0 && resets == 0) return {};
  absl::MutexLock lock(&budgets_.mutex_);
  unanswered_ = unanswered;
  address_->unanswered += more;
  budgets_.unanswered_ += more;
  const AddressLimits& limits = budgets_.limits_;
  if (more > 0 && address_->unanswered > limits.unanswered - budgets_.unanswered_) {
    return absl::StrCat("the connections of this address have ", address_->unanswered,
                        " open calls, and the server has room for ", limits.unanswered,
                        " of all addresses, of which one may have half of those that are left");
  }
  if (resets > 0 && !address_->resets.Take(resets, budgets_.clock_.Now())) {
    return absl::StrCat(
        "the connections of this address have reset too many calls before they "
        "were answered: they may reset ",
        limits.resets.most, " at once and ", limits.resets.per_second, " a second");
  }
  return {};
}

bool AddressBudgets::Part::MayLog() {
  const absl::Time now = budgets_.clock_.Now();
  absl::MutexLock lock(&budgets_.mutex_);
  if (now - address_->logged < kLogAgain) return false;
  address_->logged = now;
  return true;
}

}  // namespace wan::server
