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

struct HttpReceiver::Parts {
  explicit Parts(std::unique_ptr<httplib::Server> made) : server(std::move(made)) {}

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
    : parts_(std::make_unique<Parts>(std::make_unique<httplib::Server>())) {
  Start();
}

HttpReceiver::HttpReceiver(const Certificate& certificate)
    : parts_(std::make_unique<Parts>(std::make_unique<httplib::SSLServer>(
          [certificate](SSL_CTX& context) { return UseCertificate(context, certificate); }))),
      scheme_("https") {
  Start();
}

void HttpReceiver::Start() {
  Parts& parts = *parts_;
  parts.server->Post(".*", [&parts](const httplib::Request& request, httplib::Response& response) {
    parts.Receive(request, response);
  });
  parts.port = parts.server->bind_to_any_port("127.0.0.1");
  parts.thread = std::thread([&parts] { parts.server->listen_after_bind(); });
  // Once it runs it can be stopped, which does nothing before.
  while (!parts.server->is_running()) std::this_thread::yield();
}

HttpReceiver::~HttpReceiver() {
  parts_->server->stop();
  parts_->thread.join();
}

int HttpReceiver::port() const { return parts_->port; }

std::string HttpReceiver::Url(const std::string& path) const {
  return absl::StrCat(scheme_, "://127.0.0.1:", parts_->port, path);
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
