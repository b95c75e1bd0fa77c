#include "server/outbound/http_post.h"

#include <algorithm>
#include <string_view>
#include <utility>

namespace wan::server {

absl::StatusOr<PostAnswer> Post(const PostOptions& options, const std::string& url,
                                const PostFields& fields, const std::string& body,
                                std::stop_token stop) {
  HttpClient client;
  PostAnswer answer;
  const auto take = [&](const OutboundAnswer& /*answer*/, std::string_view piece) {
    const size_t taken = std::min(piece.size(), options.most_answer_bytes - answer.body.size());
    answer.body.append(piece.substr(0, taken));
    return taken == piece.size();
  };
  const absl::StatusOr<OutboundAnswer> sent =
      client.Send(options, {"POST", url, fields, body}, take, std::move(stop));
  if (!sent.ok()) return sent.status();
  answer.status = sent->status;
  answer.retry_after = sent->retry_after;
  return answer;
}

}  // namespace wan::server
