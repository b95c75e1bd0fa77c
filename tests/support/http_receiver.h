// A server that receives posts, for tests of what is sent.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tests/support/certificates.h"

namespace wan::support {

// Thread-safe.
class HttpReceiver {
 public:
  struct Post {
    std::string path;
    std::map<std::string, std::string> fields;  // with names in lower case
    std::string body;
  };

  // Listens on a free port of 127.0.0.1.
  HttpReceiver();
  // The same over TLS.
  explicit HttpReceiver(const Certificate& certificate);
  HttpReceiver(const HttpReceiver&) = delete;
  HttpReceiver& operator=(const HttpReceiver&) = delete;
  ~HttpReceiver();

  int port() const;
  // "http://127.0.0.1:PORT", or https, and the path.
  std::string Url(const std::string& path) const;

  // Later posts are answered so. A `location` makes the answer a redirect.
  void AnswerWith(int status, const std::string& body = {}, const std::string& location = {});

  // The posts so far, once there are so many.
  std::vector<Post> Await(size_t count);

 private:
  struct State;

  void Start();

  const std::unique_ptr<State> state_;
  const std::string scheme_ = "http";
};

}  // namespace wan::support
