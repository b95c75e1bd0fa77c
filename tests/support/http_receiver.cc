#include "tests/support/http_receiver.h"

#include <httplib.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>

#include <memory>
#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"

namespace wan::support {

namespace {

bool UseCertificate(SSL_CTX& context, const Certificate& pem) {
  const std::unique_ptr<BIO, decltype(&BIO_free)> certificate_text(
      BIO_new_mem_buf(pem.certificate.data(), static_cast<int>(pem.certificate.size())), BIO_free);
  const std::unique_ptr<BIO, decltype(&BIO_free)> key_text(
      BIO_new_mem_buf(pem.key.data(), static_cast<int>(pem.key.size())), BIO_free);
  const std::unique_ptr<X509, decltype(&X509_free)> certificate(
      PEM_read_bio_X509(certificate_text.get(), nullptr, nullptr, nullptr), X509_free);
  const std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)> key(
      PEM_read_bio_PrivateKey(key_text.get(), nullptr, nullptr, nullptr), EVP_PKEY_free);
  return SSL_CTX_use_certificate(&context, certificate.get()) == 1 &&
         SSL_CTX_use_PrivateKey(&context, key.get()) == 1;
}

}  // namespace

struct HttpReceiver::State {
  explicit State(std::unique_ptr<httplib::Server> made) : server(std::move(made)) {}

  const std::unique_ptr<httplib::Server> server;
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

HttpReceiver::HttpReceiver()
    : state_(std::make_unique<State>(std::make_unique<httplib::Server>())) {
  Start();
}

HttpReceiver::HttpReceiver(const Certificate& certificate)
    : state_(std::make_unique<State>(std::make_unique<httplib::SSLServer>(
          [certificate](SSL_CTX& context) { return UseCertificate(context, certificate); }))),
      scheme_("https") {
  Start();
}

void HttpReceiver::Start() {
  State& state = *state_;
  state.server->Post(".*", [&state](const httplib::Request& request, httplib::Response& response) {
    state.Receive(request, response);
  });
  state.port = state.server->bind_to_any_port("127.0.0.1");
  state.thread = std::thread([&state] { state.server->listen_after_bind(); });
  // Once it runs it can be stopped, which does nothing before.
  while (!state.server->is_running()) std::this_thread::yield();
}

HttpReceiver::~HttpReceiver() {
  state_->server->stop();
  state_->thread.join();
}

int HttpReceiver::port() const { return state_->port; }

std::string HttpReceiver::Url(const std::string& path) const {
  return absl::StrCat(scheme_, "://127.0.0.1:", state_->port, path);
}

void HttpReceiver::AnswerWith(int status, const std::string& body, const std::string& location) {
  absl::MutexLock lock(&state_->mutex);
  state_->status = status;
  state_->body = body;
  state_->location = location;
}

std::vector<HttpReceiver::Post> HttpReceiver::Await(size_t count) {
  absl::MutexLock lock(&state_->mutex);
  const auto there = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(state_->mutex) {
    return state_->posts.size() >= count;
  };
  state_->mutex.Await(absl::Condition(&there));
  return state_->posts;
}

}  // namespace wan::support
