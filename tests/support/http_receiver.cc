#include "tests/support/http_receiver.h"

#include <httplib.h>

#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"

namespace wan::support {

struct HttpReceiver::Parts {
  httplib::Server server;
  int port = 0;
  std::thread thread;
  absl::Mutex mutex;
  int status ABSL_GUARDED_BY(mutex) = 200;
  std::string body ABSL_GUARDED_BY(mutex);
  std::string location ABSL_GUARDED_BY(mutex);
  std::vector<Post> posts ABSL_GUARDED_BY(mutex);

  void Receive(const httplib::Request& request, httplib::Response& response) {
    Post post{request.path, {}, request.body};
    for (const auto& [name, value] : request.headers) {
      post.fields[absl::AsciiStrToLower(name)] = value;
    }
    absl::MutexLock lock(&mutex);
    posts.push_back(std::move(post));
    response.status = status;
    if (!location.empty()) response.set_header("Location", location);
    response.set_content(body, "text/plain");
  }
};

HttpReceiver::HttpReceiver() : parts_(std::make_unique<Parts>()) {
  parts_->server.Post(".*", [this](const httplib::Request& request, httplib::Response& response) {
    parts_->Receive(request, response);
  });
  parts_->port = parts_->server.bind_to_any_port("127.0.0.1");
  parts_->thread = std::thread([this] { parts_->server.listen_after_bind(); });
  // Once it has answered it can be stopped, which does nothing before.
  httplib::Client("127.0.0.1", parts_->port).Get("/");
}

HttpReceiver::~HttpReceiver() {
  parts_->server.stop();
  parts_->thread.join();
}

int HttpReceiver::port() const { return parts_->port; }

std::string HttpReceiver::Url(const std::string& path) const {
  return absl::StrCat("http://127.0.0.1:", parts_->port, path);
}

void HttpReceiver::AnswerWith(int status, const std::string& body, const std::string& location) {
  absl::MutexLock lock(&parts_->mutex);
  parts_->status = status;
  parts_->body = body;
  parts_->location = location;
}

std::vector<HttpReceiver::Post> HttpReceiver::Await(size_t count) {
  absl::MutexLock lock(&parts_->mutex);
  const auto there = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(parts_->mutex) {
    return parts_->posts.size() >= count;
  };
  parts_->mutex.Await(absl::Condition(&there));
  return parts_->posts;
}

}  // namespace wan::support
