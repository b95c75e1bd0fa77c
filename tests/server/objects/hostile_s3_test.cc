// What the S3 client makes of answers that no service should give.
#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <deque>
#include <filesystem>
#include <fstream>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "engine/api/clock.h"
#include "server/objects/s3_object_store.h"

namespace wan::server {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// Answers each connection with the next text, whatever it asks, and closes it.
class RawServer {
 public:
  explicit RawServer(std::deque<std::string> answers) : answers_(std::move(answers)) {
    listener_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    EXPECT_EQ(bind(listener_, reinterpret_cast<sockaddr*>(&address), size), 0);
    EXPECT_EQ(listen(listener_, 8), 0);
    getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size);
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this] { Serve(); });
  }
  ~RawServer() {
    shutdown(listener_, SHUT_RDWR);
    thread_.join();
    close(listener_);
  }
  std::string endpoint() const { return absl::StrCat("http://127.0.0.1:", port_); }
  // The requests so far.
  std::vector<std::string> requests() const {
    absl::MutexLock lock(&mutex_);
    return requests_;
  }

 private:
  void Serve() {
    for (;;) {
      const int connection = accept(listener_, nullptr, nullptr);
      if (connection < 0) return;
      std::string request;
      for (char c = 0; !request.ends_with("\r\n\r\n") && read(connection, &c, 1) == 1;) {
        request += c;
      }
      std::string answer;
      {
        absl::MutexLock lock(&mutex_);
        requests_.push_back(request);
        if (!answers_.empty()) {
          answer = answers_.front();
          answers_.pop_front();
        }
      }
      for (size_t sent = 0; sent < answer.size();) {
        const ssize_t some =
            send(connection, answer.data() + sent, answer.size() - sent, MSG_NOSIGNAL);
        if (some <= 0) break;
        sent += static_cast<size_t>(some);
      }
      shutdown(connection, SHUT_WR);
      for (char c = 0; read(connection, &c, 1) == 1;) {
      }
      close(connection);
    }
  }

  int listener_ = -1;
  int port_ = 0;
  std::thread thread_;
  mutable absl::Mutex mutex_;
  std::deque<std::string> answers_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::string> requests_ ABSL_GUARDED_BY(mutex_);
};

std::string Answer(const std::string& status, const std::string& body,
                   const std::string& fields = "") {
  return absl::StrCat("HTTP/1.1 ", status, "\r\n", fields, "Content-Length: ", body.size(),
                      "\r\n\r\n", body);
}

std::string S3Error(const std::string& code, const std::string& more = "") {
  return absl::StrCat("<?xml version=\"1.0\"?><Error><Code>", code, "</Code><Message>m</Message>",
                      more, "</Error>");
}

// The answers to the requests of an upload in parts.
const std::string kBegun = Answer("200 OK", "<r><UploadId>u&amp;1</UploadId></r>");
const std::string kPart = Answer("200 OK", "", "ETag: \"p\"\r\n");
const std::string kCompleted = Answer("200 OK", "<CompleteMultipartUploadResult/>");

// A clock for one thread: it stands still, and a wait moves it to the wait's end at once.
class JumpingClock final : public Clock {
 public:
  absl::Time Now() const override { return now_; }
  int64_t MonotonicNanos() const override { return absl::ToUnixNanos(now_); }
  bool AwaitUntil(absl::Mutex& /*mutex*/, const absl::Condition& condition,
                  absl::Time deadline) override {
    if (condition.Eval()) return true;
    now_ = deadline;
    return false;
  }
  Clock& Steady() override { return *this; }

 private:
  absl::Time now_ = absl::FromUnixSeconds(1'767'225'600);
};

class HostileS3Test : public testing::Test {
 protected:
  // Starts a store of a server with these answers.
  S3ObjectStore& Store(
      std::deque<std::string> answers, OnObjectRequest on_request = [](const ObjectRequest&) {}) {
    store_.reset();  // its connections keep the server before it from ending
    server_.emplace(std::move(answers));
    S3Options options;
    options.bucket = "videos";
    options.endpoint = server_->endpoint();
    options.region = "eu-west-1";
    options.path_style = true;
    options.environment = [](const char* name) {
      return std::string(name) == "AWS_SECRET_ACCESS_KEY" ? "very-secret" : "AKID";
    };
    options.on_request = std::move(on_request);
    store_.emplace(std::move(options), "wan/", clock_, 16);
    return *store_;
  }

  absl::Status Get(const ObjectRange& range = {}) {
    return store_->Get(
        "k", range,
        [this](std::string_view piece) {
          bytes_.append(piece);
          return absl::OkStatus();
        },
        kCall);
  }

  // Puts a file of so many bytes; a part has 16.
  absl::Status PutFile(size_t size, const ObjectCall& call) {
    const std::string path = testing::TempDir() + "hostile_" + std::to_string(getpid());
    std::ofstream(path) << std::string(size, 'x');
    absl::Status status = store_->PutFile("k", path, call);
    std::filesystem::remove(path);
    return status;
  }

  const ObjectCall kCall{absl::Seconds(30), {}};
  JumpingClock clock_;
  std::optional<RawServer> server_;
  std::optional<S3ObjectStore> store_;
  std::string bytes_;
};

TEST_F(HostileS3Test, ACutBodyGoesOnWhereItWasCut) {
  Store({"HTTP/1.1 200 OK\r\nETag: \"e\"\r\nContent-Length: 10\r\n\r\n0123",
         Answer("206 Partial Content", "456789", "ETag: \"e\"\r\n")});
  EXPECT_TRUE(Get().ok());
  EXPECT_EQ(bytes_, "0123456789");
  const auto requests = server_->requests();
  ASSERT_EQ(requests.size(), 2U);
  EXPECT_THAT(requests[1], HasSubstr("range: bytes=4-\r\n"));
  EXPECT_THAT(requests[1], HasSubstr("if-match: \"e\"\r\n"));
}

TEST_F(HostileS3Test, AnObjectThatWasReplacedMeanwhileIsNotMixed) {
  Store({"HTTP/1.1 200 OK\r\nETag: \"e\"\r\nContent-Length: 10\r\n\r\n0123",
         Answer("412 Precondition Failed", S3Error("PreconditionFailed"))});
  const absl::Status status = Get();
  EXPECT_TRUE(absl::IsDataLoss(status)) << status;
}

TEST_F(HostileS3Test, ARangeThatIsIgnoredIsRefused) {
  Store({Answer("200 OK", "0123456789")});
  EXPECT_TRUE(absl::IsInternal(Get({4, 2})));
  EXPECT_EQ(bytes_, "");
}

TEST_F(HostileS3Test, MoreThanWasAskedForIsRefused) {
  Store({Answer("206 Partial Content", "456789")});
  const absl::Status status = Get({4, 2});
  EXPECT_TRUE(absl::IsInternal(status)) << status;
}

TEST_F(HostileS3Test, FailuresThatMayPassAreTriedAgain) {
  Store({Answer("503 Slow Down", S3Error("SlowDown")), Answer("429 Too Many", ""), "",
         Answer("500 Internal", "<html>oops</html>"), Answer("200 OK", "", "ETag: \"e\"\r\n")});
  EXPECT_TRUE(store_->Put("k", "bytes", kCall).ok());
  EXPECT_EQ(server_->requests().size(), 5U);
}

TEST_F(HostileS3Test, AStoreThatStaysAwayEndsTheCallAtItsDeadline) {
  Store({});
  const absl::Time begin = clock_.Now();
  const absl::Status status = store_->Put("k", "bytes", kCall);
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_LE(clock_.Now() - begin, absl::Seconds(60));
  EXPECT_GE(server_->requests().size(), 3U);
  EXPECT_THAT(std::string(status.message()), HasSubstr(server_->endpoint()));
}

TEST_F(HostileS3Test, AStopEndsTheRetries) {
  std::stop_source stop;
  int tries = 0;
  Store({}, [&](const ObjectRequest&) {
    ++tries;
    stop.request_stop();
  });
  const absl::Status status = store_->Put("k", "bytes", {absl::Hours(1), stop.get_token()});
  EXPECT_TRUE(absl::IsCancelled(status)) << status;
  EXPECT_EQ(tries, 1);
  EXPECT_EQ(server_->requests().size(), 1U);
}

TEST_F(HostileS3Test, AnEndlessHeaderIsCut) {
  std::string fields;
  for (int i = 0; i < 4000; ++i) absl::StrAppend(&fields, "X-Field-", i, ": aaaaaaaaaaaaaaaa\r\n");
  std::deque<std::string> answers(200, Answer("200 OK", "", fields));
  Store(std::move(answers));
  const absl::Status status = store_->Put("k", "bytes", kCall);
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("header has more than 65536 bytes"));
}

TEST_F(HostileS3Test, APageInsteadOfS3) {
  Store({Answer("404 Not Found", "<html>nothing</html>"), Answer("418 Teapot", "<html>x</html>"),
         Answer("200 OK", "<html>x</html>")});
  EXPECT_TRUE(absl::IsNotFound(Get()));
  const absl::Status teapot = Get();
  EXPECT_THAT(std::string(teapot.message()), HasSubstr("answers 418 without an error of S3"));
  const absl::Status listed = store_->List(
      "", [](const ObjectFacts&) { return true; }, kCall);
  EXPECT_THAT(std::string(listed.message()), HasSubstr("is not a ListBucketResult"));
}

TEST_F(HostileS3Test, OneSentenceForEachThingThatAnOperatorHasToChange) {
  Store({Answer("403 Forbidden", S3Error("AccessDenied")),
         Answer("403 Forbidden", S3Error("RequestTimeTooSkewed"),
                "Date: Thu, 01 Jan 2026 01:00:00 GMT\r\n"),
         Answer("301 Moved", S3Error("PermanentRedirect"), "x-amz-bucket-region: us-west-2\r\n"),
         Answer("400 Bad", S3Error("AuthorizationHeaderMalformed", "<Region>us-west-2</Region>")),
         Answer("403 Forbidden", S3Error("SignatureDoesNotMatch")),
         Answer("404 Not Found", S3Error("NoSuchBucket"))});
  const std::vector<std::pair<absl::StatusCode, std::string>> expected = {
      {absl::StatusCode::kPermissionDenied,
       "may not use s3://videos/wan/k; grant them s3:PutObject"},
      {absl::StatusCode::kFailedPrecondition, "clock differs from that of http"},
      {absl::StatusCode::kFailedPrecondition,
       "is not in the region eu-west-1; set region=us-west-2"},
      {absl::StatusCode::kFailedPrecondition,
       "is not in the region eu-west-1; set region=us-west-2"},
      {absl::StatusCode::kUnauthenticated,
       "does not accept the credentials (SignatureDoesNotMatch)"},
      {absl::StatusCode::kFailedPrecondition, "the bucket videos does not exist"}};
  for (const auto& [code, text] : expected) {
    const absl::Status status = store_->Put("k", "x", kCall);
    EXPECT_EQ(status.code(), code) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(text));
    EXPECT_THAT(std::string(status.message()), Not(HasSubstr("very-secret")));
    EXPECT_THAT(std::string(status.message()), Not(HasSubstr("AKID")));
  }
}

TEST_F(HostileS3Test, AnUploadThatFailsRemovesItsParts) {
  Store({kBegun, kPart, Answer("403 Forbidden", S3Error("AccessDenied")),
         Answer("204 No Content", "")});
  EXPECT_TRUE(absl::IsPermissionDenied(PutFile(40, kCall)));
  const auto requests = server_->requests();
  ASSERT_EQ(requests.size(), 4U);
  EXPECT_TRUE(requests[0].starts_with("POST /videos/wan/k?uploads= "));
  EXPECT_TRUE(requests[1].starts_with("PUT /videos/wan/k?partNumber=1&uploadId=u%261 "));
  EXPECT_TRUE(requests[3].starts_with("DELETE /videos/wan/k?uploadId=u%261 "));
}

TEST_F(HostileS3Test, AnErrorWithTheStatus200IsAnError) {
  Store({kBegun, kPart, kPart, Answer("200 OK", S3Error("InternalError")), kCompleted});
  EXPECT_TRUE(PutFile(20, kCall).ok());
  EXPECT_EQ(server_->requests().size(), 5U);
  Store({kBegun, kPart, kPart, Answer("200 OK", S3Error("AccessDenied"))});
  const absl::Status forbidden = PutFile(20, kCall);
  EXPECT_TRUE(absl::IsPermissionDenied(forbidden)) << forbidden;
  Store({Answer("200 OK", S3Error("Odd"), "ETag: \"e\"\r\n")});
  const absl::Status odd = store_->Put("k", "x", kCall);
  EXPECT_THAT(std::string(odd.message()), HasSubstr("answers 200 Odd"));
}

TEST_F(HostileS3Test, ASuccessWithoutItsProofIsTriedAgain) {
  Store({Answer("200 OK", "<html>log in</html>"), kPart});
  EXPECT_TRUE(store_->Put("k", "x", kCall).ok());
  EXPECT_EQ(server_->requests().size(), 2U);
  Store({kBegun, Answer("200 OK", ""), kPart, kPart, Answer("200 OK", ""), kCompleted});
  EXPECT_TRUE(PutFile(20, kCall).ok());
  EXPECT_EQ(server_->requests().size(), 6U);
  Store(std::deque<std::string>(100, Answer("200 OK", "")));
  const absl::Status status = store_->Put("k", "x", kCall);
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("answers 200 without an ETag"));
}

TEST_F(HostileS3Test, AnUploadWhoseLastAnswerWasLostMayBeginAnew) {
  Store({kBegun, kPart, kPart, "", Answer("404 Not Found", S3Error("NoSuchUpload")),
         Answer("404 Not Found", S3Error("NoSuchUpload"))});
  const absl::Status status = PutFile(20, kCall);
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("the upload is gone; it begins anew"));
  Store({Answer("404 Not Found", "<html>nothing</html>")});
  EXPECT_TRUE(absl::IsUnavailable(store_->Put("k", "x", kCall)));
}

TEST_F(HostileS3Test, EachPartHasItsOwnTime) {
  std::deque<std::string> answers = {kBegun};
  for (int i = 0; i < 20; ++i) {  // each failure costs at least a tenth of a second
    answers.push_back(Answer("503 Slow Down", S3Error("SlowDown")));
    answers.push_back(kPart);
  }
  answers.push_back(kCompleted);
  Store(std::move(answers));
  const absl::Status status = PutFile(size_t{20} * 16, {absl::Seconds(1), {}});
  EXPECT_TRUE(status.ok()) << status;
}

TEST_F(HostileS3Test, ARangeThatTricklesEndsAtItsDeadline) {
  Store(std::deque<std::string>(
      100, "HTTP/1.1 206 Partial Content\r\nETag: \"e\"\r\nContent-Length: 99\r\n\r\nx"));
  const absl::Status status = Get({0, 90});
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_LT(bytes_.size(), 30U);
}

}  // namespace
}  // namespace wan::server
