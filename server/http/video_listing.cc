#include "server/http/video_listing.h"

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "engine/api/errors.h"
#include "server/conversion/convert.h"
#include "server/http/video_object.h"

namespace wan::server {
namespace {

using nlohmann::json;

std::string TextOf(const json& value) {
  return value.dump(-1, ' ', false, json::error_handler_t::replace);
}

}  // namespace

absl::StatusOr<bool> VideoListing::Step() {
  if (listing_ == nullptr) {
    if (absl::Status status = Begin(); !status.ok()) return status;
  }
  absl::StatusOr<bool> complete = listing_->Step();
  if (!complete.ok() || !*complete) return complete;
  const wan::v1::ListJobsResponse jobs = listing_->Take();
  if (Add(jobs) || jobs.next_page_token().empty()) return true;
  request_.set_page_token(jobs.next_page_token());
  absl::StatusOr<std::unique_ptr<JobListing>> next = jobs_.BeginList(request_, owner_);
  if (!next.ok()) return next.status();
  listing_ = *std::move(next);
  return false;
}

absl::Status VideoListing::Begin() {
  const absl::StatusOr<VideoPage> page = ParseVideoPage(query_);
  if (!page.ok()) return page.status();
  page_ = *page;
  request_.set_page_size(page_.limit + 1);
  request_.set_order_by(page_.descending ? "create_time desc" : "create_time asc");
  behind_ = !page_.after.has_value();
  if (page_.after.has_value()) {
    const absl::StatusOr<wan::v1::Job> after = jobs_.Get(*page_.after);
    if (!after.ok() || (owner_.has_value() && after->owner() != *owner_)) {
      return InvalidFields({{"after", "is the id of no video; begin again with the first page"}});
    }
    after_time_ = ToTime(after->create_time());
    request_.set_filter(
        absl::StrCat("create_time ", page_.descending ? "<= \"" : ">= \"",
                     absl::FormatTime(absl::RFC3339_full, after_time_, absl::UTCTimeZone()), "\""));
  }
  absl::StatusOr<std::unique_ptr<JobListing>> listing = jobs_.BeginList(request_, owner_);
  if (!listing.ok()) return listing.status();
  listing_ = *std::move(listing);
  return absl::OkStatus();
}

bool VideoListing::Add(const wan::v1::ListJobsResponse& jobs) {
  for (const wan::v1::Job& job : jobs.jobs()) {
    if (!behind_ && ToTime(job.create_time()) == after_time_) {
      behind_ = job.name() == *page_.after;
      continue;
    }
    behind_ = true;
    more_ = videos_ == static_cast<size_t>(page_.limit) || data_.size() >= kMaxVideoPageBytes;
    if (more_) return true;
    const json video = VideoOf(job);
    last_id_ = video["id"];
    if (videos_ == 0) first_id_ = last_id_;
    absl::StrAppend(&data_, videos_ == 0 ? "" : ",", TextOf(video));
    ++videos_;
  }
  return false;
}

std::string VideoListing::Take() {
  const auto id = [this](const std::string& text) {
    return TextOf(videos_ == 0 ? json(nullptr) : json(text));
  };
  return absl::StrCat("{\"object\":\"list\",\"data\":[", data_, "],\"first_id\":", id(first_id_),
                      ",\"last_id\":", id(last_id_), ",\"has_more\":", more_ ? "true" : "false",
                      "}");
}

}  // namespace wan::server
