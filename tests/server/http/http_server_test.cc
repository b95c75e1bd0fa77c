// What a caller may do to the connections of HTTP, at and past its edges.
#include "server/http/http_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "tests/support/http_get.h"
#include "tests/support/tcp_client.h"

namespace wan::server {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class HttpServerTest : public ::testing::Test {
 protected:
  // Both hold the connection, which must not outlive the server.
  void TearDown() override {
    absl::MutexLock lock(&mutex_);
    waiting_ = nullptr;
    waiting_reply_ = nullptr;
  }

  // Refuses "/refused", and lets everything else in.
  void Start(const HttpLimits& limits = {}, int connections = 100) {
    auto taken = HttpServer::Listen("http_listen", {"127.0.0.1", 0}, {connections, connections},
                                    limits, nullptr);
    ASSERT_TRUE(taken.ok()) << taken.status();
    server_ = *std::move(taken);
    server_->Start({[this](const HttpHead& head) { return Enter(head); },
                    [](int status, std::string_view message) {
                      HttpAnswer answer;
                      answer.status = status;
                      answer.body = std::string(message);
                      return answer;
                    }},
                   [](bool) {});
  }

  HttpEntry Enter(const HttpHead& head) {
    HttpEntry entry;
    if (head.path == "/refused") {
      entry.refusal.emplace().status = 401;
      return entry;
    }
    if (head.path == "/few") {
      entry.arrived = [](uint64_t bytes, bool /*whole*/) -> std::optional<HttpAnswer> {
        if (bytes <= 3) return std::nullopt;
        HttpAnswer answer;
        answer.status = 413;
        return answer;
      };
    }
    entry.work = [this, head](const std::string& body, const HttpReply& reply,
                              HttpCallerGone gone) {
      if (head.path == "/wait") {
        absl::MutexLock lock(&mutex_);
        waiting_ = std::move(gone);
        waiting_reply_ = reply;
        return;
      }
      HttpAnswer answer;
      if (head.path == "/large") {
        answer.body.assign(kLargeBytes, 'x');
        answer.place = PlaceOf(kLargeBytes);
      } else if (head.path == "/pieces") {
        answer.stream_bytes = kLargeBytes;
        answer.next_piece = [place = std::make_shared<Admission::Lease>(PlaceOf(kLargeBytes))](
                                const HttpAnswer::TakePiece& take) {
          take(std::string(size_t{1} << 20, 'x'));
        };
      } else if (head.path == "/stream") {
        answer.stream_bytes = 6;
        answer.next_piece = [left = std::make_shared<int>(3),
                             head](const HttpAnswer::TakePiece& take) {
          --*left == 0 && head.query == "broken" ? take(absl::InternalError("no file"))
                                                 : take("ab");
        };
      } else if (head.path == "/unsized") {
        answer.unsized = true;
        answer.next_piece = [left = std::make_shared<int>(3), head,
                             place = std::make_shared<Admission::Lease>(PlaceOf(kLargeBytes)),
                             this](const HttpAnswer::TakePiece& take) {
          if (head.query == "silent") {
            pending_ = take;
          } else if (head.query == "endless") {
            take(std::string(size_t{1} << 20, 'x'));
          } else if (--*left == 0) {
            head.query == "broken" ? take(absl::InternalError("no event")) : take("");
          } else {
            take("some text");
          }
        };
      } else {
        answer.body = absl::StrCat(head.method, " ", head.path, " ", head.query, " ", body);
      }
      answered_ += 1;
      reply(std::move(answer));
    };
    return entry;
  }

  Admission::Lease PlaceOf(size_t answer_bytes) {
    return *admission_.Answer(*admission_.Request({"eve"}, 0, Effect::kReads),
                              static_cast<int64_t>(answer_bytes));
  }

  int port() const { return server_->address().port; }

  // What comes back for these bytes, to the end of the connection.
  std::string Ask(const std::string& bytes) const {
    support::TcpClient client(port());
    EXPECT_TRUE(client.Send(bytes));
    return client.ReadToEnd();
  }

  absl::Mutex mutex_;
  // Of the request that waits for its answer.
  HttpCallerGone waiting_ ABSL_GUARDED_BY(mutex_);
  HttpReply waiting_reply_ ABSL_GUARDED_BY(mutex_);
  // More than the system takes for a reader that does not read.
  static constexpr size_t kLargeBytes = size_t{32} << 20;

  HttpAnswer::TakePiece pending_;  // of an answer that has no piece to send
  Admission admission_{AdmissionLimits()};
  std::unique_ptr<HttpServer> server_;
  std::atomic<int> answered_ = 0;
};

TEST_F(HttpServerTest, RequestsOfOneConnectionAreAnsweredInTheirOrder) {
  Start();
  EXPECT_THAT(Ask("GET /a?b=c HTTP/1.1\r\n\r\n"
                  "POST /d HTTP/1.1\r\nContent-Length: 3\r\n\r\nxyz"
                  "GET /e HTTP/1.1\r\nConnection: close\r\n\r\n"),
              AllOf(StartsWith("HTTP/1.1 200"), HasSubstr("GET /a b=c "), HasSubstr("POST /d  xyz"),
                    EndsWith("GET /e  ")));
}

TEST_F(HttpServerTest, AStreamComesInPieces) {
  Start();
  EXPECT_THAT(Ask("GET /stream HTTP/1.1\r\nConnection: close\r\n\r\n"),
              AllOf(HasSubstr("Content-Length: 6\r\n"), EndsWith("\r\n\r\nababab")));
}

TEST_F(HttpServerTest, AStreamThatBreaksEndsShort) {
  Start();
  EXPECT_THAT(Ask("GET /stream?broken HTTP/1.1\r\n\r\n"), EndsWith("\r\n\r\nabab"));
}

TEST_F(HttpServerTest, AnAnswerOfUnknownSizeComesInChunksAndEndsTheConnection) {
  Start();
  EXPECT_THAT(Ask("GET /unsized HTTP/1.1\r\n\r\n"),
              AllOf(HasSubstr("Transfer-Encoding: chunked\r\n"), HasSubstr("Connection: close\r\n"),
                    Not(HasSubstr("Content-Length")),
                    EndsWith("\r\n\r\n9\r\nsome text\r\n9\r\nsome text\r\n0\r\n\r\n")));
  EXPECT_THAT(Ask("GET /unsized?broken HTTP/1.1\r\n\r\n"), EndsWith("9\r\nsome text\r\n"));
  // HTTP/1.0 knows no chunks; there the end of the connection is the end of the answer.
  EXPECT_THAT(Ask("GET /unsized HTTP/1.0\r\n\r\n"),
              AllOf(Not(HasSubstr("Transfer-Encoding")), EndsWith("\r\n\r\nsome textsome text")));
  EXPECT_THAT(Ask("HEAD /unsized HTTP/1.1\r\n\r\n"),
              AllOf(HasSubstr("Transfer-Encoding: chunked\r\n"), EndsWith("\r\n\r\n")));
  while (admission_.Stats().answer_bytes != 0) {
  }
}

TEST_F(HttpServerTest, AnAnswerOfUnknownSizeEndsWithItsCaller) {
  Start();
  {
    support::TcpClient client(port());
    ASSERT_TRUE(client.Send("GET /unsized?silent HTTP/1.1\r\n\r\n"));
    EXPECT_FALSE(client.AwaitByteOrEnd());
    EXPECT_EQ(admission_.Stats().answer_bytes, kLargeBytes);
  }
  // No piece is sent, and the answer is released all the same.
  while (admission_.Stats().answer_bytes != 0) {
  }
  pending_ = nullptr;
  // One that goes in the middle of a piece, and one that sends without an end.
  {
    support::TcpClient client(port());
    ASSERT_TRUE(client.Send("GET /unsized?endless HTTP/1.1\r\n\r\n"));
    EXPECT_FALSE(client.AwaitByteOrEnd());
  }
  support::TcpClient loud(port());
  ASSERT_TRUE(loud.Send("GET /unsized?silent HTTP/1.1\r\n\r\n"));
  while (loud.Send(std::string(1 << 10, 'x'))) {
  }
  while (admission_.Stats().answer_bytes != 0) {
  }
  pending_ = nullptr;
}

TEST_F(HttpServerTest, AnAnswerWhoseHeaderNobodyTakesIsReleased) {
  Start();
  support::TcpClient client(port());
  ASSERT_TRUE(client.Send("GET /wait HTTP/1.1\r\n\r\n"));
  HttpCallerGone gone;
  HttpReply reply;
  {
    absl::MutexLock lock(&mutex_);
    const auto came = [this] { return waiting_reply_ != nullptr; };
    mutex_.Await(absl::Condition(&came));
    gone = std::exchange(waiting_, nullptr);
    reply = std::exchange(waiting_reply_, nullptr);
  }
  client.Reset();
  while (!gone()) {
  }
  HttpAnswer answer;
  answer.unsized = true;
  // Like an event stream it asks whether its caller has gone, so it holds the connection.
  answer.next_piece = [gone = std::exchange(gone, nullptr),
                       place = std::make_shared<Admission::Lease>(PlaceOf(kLargeBytes))](
                          const HttpAnswer::TakePiece& /*take*/) {};
  std::exchange(reply, nullptr)(std::move(answer));
  while (admission_.Stats().answer_bytes != 0) {
  }
}

TEST_F(HttpServerTest, WhoeverIsRefusedIsNotReadFrom) {
  Start();
  // The announced body does not come, and the answer does all the same.
  EXPECT_THAT(Ask("POST /refused HTTP/1.1\r\nContent-Length: 300000000\r\n\r\n"),
              AllOf(StartsWith("HTTP/1.1 401"), HasSubstr("Connection: close")));
  // What did come in place of it is no further request.
  EXPECT_THAT(Ask("POST /refused HTTP/1.1\r\nContent-Length: 30\r\n\r\nGET /a HTTP/1.1\r\n\r\n"),
              StartsWith("HTTP/1.1 401"));
  EXPECT_EQ(answered_, 0);
  EXPECT_THAT(Ask("GET /refused HTTP/1.1\r\n\r\nGET /a HTTP/1.1\r\nConnection: close\r\n\r\n"),
              AllOf(StartsWith("HTTP/1.1 401"), EndsWith("GET /a  ")));
}

TEST_F(HttpServerTest, WhoeverWaitsToBeToldToGoOnIs) {
  Start();
  support::TcpClient client(port());
  ASSERT_TRUE(
      client.Send("POST /a HTTP/1.1\r\nContent-Length: 1\r\nExpect: 100-continue\r\n"
                  "Connection: close\r\n\r\n"));
  client.AwaitByteOrEnd();
  ASSERT_TRUE(client.Send("x"));
  EXPECT_THAT(client.ReadToEnd(), EndsWith("POST /a  x"));
}

TEST_F(HttpServerTest, ABodyInChunksIsCountedWhileItArrives) {
  Start();
  EXPECT_THAT(Ask("POST /a HTTP/1.1\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n"
                  "2\r\nxy\r\n1;extension=1\r\nz\r\n0\r\nTrailer: 1\r\n\r\n"),
              EndsWith("POST /a  xyz"));
  // "/few" takes three bytes. The rest of the body need not come, and what comes is dropped.
  support::TcpClient client(port());
  ASSERT_TRUE(client.Send("POST /few HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n"));
  ASSERT_TRUE(client.Send("1\r\nd\r\n"));
  EXPECT_FALSE(client.AwaitByteOrEnd());
  ASSERT_TRUE(client.Send("1\r\ne\r\n0\r\n\r\nGET /a HTTP/1.1\r\n\r\n"));
  EXPECT_THAT(client.ReadToEnd(), AllOf(StartsWith("HTTP/1.1 413"), HasSubstr("Connection: close"),
                                        Not(HasSubstr("HTTP/1.1 200"))));
  EXPECT_EQ(answered_, 1);
}

TEST_F(HttpServerTest, ABodyOfKnownSizeIsCountedWhileItArrives) {
  Start();
  support::TcpClient client(port());
  ASSERT_TRUE(client.Send("POST /few HTTP/1.1\r\nContent-Length: 6\r\n\r\nabc"));
  ASSERT_TRUE(client.Send("d"));
  EXPECT_THAT(client.ReadToEnd(),
              AllOf(StartsWith("HTTP/1.1 413"), HasSubstr("Connection: close")));
  EXPECT_EQ(answered_, 0);
  // Of one that has come in whole nothing is left to read, so the connection goes on.
  EXPECT_THAT(Ask("POST /few HTTP/1.1\r\nContent-Length: 4\r\n\r\nabcd"
                  "GET /a HTTP/1.1\r\nConnection: close\r\n\r\n"),
              AllOf(StartsWith("HTTP/1.1 413"), EndsWith("GET /a  ")));
}

TEST_F(HttpServerTest, AnAnswerHoldsItsPlaceUntilItIsSent) {
  Start();
  {
    support::TcpClient reader(port());
    ASSERT_TRUE(reader.Send("GET /large HTTP/1.1\r\nConnection: close\r\n\r\n"));
    EXPECT_FALSE(reader.AwaitByteOrEnd());
    EXPECT_EQ(admission_.Stats().answer_bytes, kLargeBytes);
    EXPECT_GT(reader.ReadToEnd().size(), kLargeBytes);
  }
  while (admission_.Stats().answer_bytes != 0) {
  }
  // One whose reader goes lets it go.
  {
    support::TcpClient gone(port());
    ASSERT_TRUE(gone.Send("GET /large HTTP/1.1\r\n\r\n"));
    EXPECT_FALSE(gone.AwaitByteOrEnd());
    EXPECT_EQ(admission_.Stats().answer_bytes, kLargeBytes);
  }
  while (admission_.Stats().answer_bytes != 0) {
  }
}

TEST_F(HttpServerTest, AnAnswerThatNobodyTakesInItsTimeEnds) {
  HttpLimits limits;
  limits.write_time = std::chrono::milliseconds(50);
  Start(limits);
  for (const std::string path : {"/large", "/pieces", "/unsized?endless"}) {
    support::TcpClient client(port());
    ASSERT_TRUE(client.Send("GET " + path + " HTTP/1.1\r\n\r\n"));
    EXPECT_FALSE(client.AwaitByteOrEnd());
    while (admission_.Stats().answer_bytes != 0) {
    }
    EXPECT_LT(client.ReadToEnd().size(), kLargeBytes);
  }
}

TEST_F(HttpServerTest, AHeaderMayHaveItsBytesAndNoMore) {
  Start();
  const std::string line = "GET /a HTTP/1.0\r\n";
  const std::string name = "X-Long: ";
  const std::string end = "\r\n\r\n";
  const size_t most = HttpLimits().header_bytes - name.size() - end.size();
  EXPECT_THAT(Ask(line + name + std::string(most, 'x') + end), StartsWith("HTTP/1.0 200"));
  EXPECT_THAT(Ask(line + name + std::string(most + 1, 'x') + end), StartsWith("HTTP/1.1 431"));
}

TEST_F(HttpServerTest, WhatIsNotHttpIsToldSo) {
  Start();
  EXPECT_THAT(Ask("rubbish\r\n\r\n"), StartsWith("HTTP/1.1 400"));
  // The beginning of HTTP/2, which is what a client of gRPC sends.
  EXPECT_THAT(Ask("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), StartsWith("HTTP/1.1 400"));
  EXPECT_THAT(Ask("GET /a HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n"),
              StartsWith("HTTP/1.1 400"));
}

TEST_F(HttpServerTest, AHeaderThatDoesNotEndInItsTimeIsClosed) {
  HttpLimits limits;
  limits.header_time = std::chrono::milliseconds(20);
  Start(limits);
  EXPECT_EQ(Ask("GET /a HTTP/1.1\r\nX-Slow: "), "");
  // The same after an answer: a connection that nobody uses goes.
  EXPECT_THAT(Ask("GET /a HTTP/1.1\r\n\r\n"), EndsWith("GET /a  "));
}

TEST_F(HttpServerTest, ABodyThatDoesNotEndInItsTimeIsClosed) {
  HttpLimits limits;
  limits.body_time = std::chrono::milliseconds(20);
  Start(limits);
  EXPECT_EQ(Ask("POST /a HTTP/1.1\r\nContent-Length: 2\r\n\r\nx"), "");
  EXPECT_EQ(answered_, 0);
}

TEST_F(HttpServerTest, OneConnectionMoreIsClosedAtOnce) {
  Start({}, 2);
  support::TcpClient first(port());
  support::TcpClient second(port());
  for (support::TcpClient* const client : {&first, &second}) {
    ASSERT_TRUE(client->Send("GET /a HTTP/1.1\r\n\r\n"));
    EXPECT_FALSE(client->AwaitByteOrEnd());
  }
  support::TcpClient third(port());
  EXPECT_TRUE(third.AwaitByteOrEnd());
}

TEST_F(HttpServerTest, ACallerThatClosesIsGoneBeforeItIsAnswered) {
  Start();
  HttpCallerGone gone;
  {
    support::TcpClient client(port());
    ASSERT_TRUE(client.Send("GET /wait HTTP/1.1\r\n\r\n"));
    absl::MutexLock lock(&mutex_);
    const auto came = [this] { return waiting_ != nullptr; };
    mutex_.Await(absl::Condition(&came));
    gone = std::exchange(waiting_, nullptr);
    EXPECT_FALSE(gone());
  }
  while (!gone()) std::this_thread::yield();  // until the end of the connection has arrived
}

TEST_F(HttpServerTest, AnAddressThatIsTakenIsAnErrorThatNamesTheSetting) {
  Start();
  const auto second = HttpServer::Listen("http_listen", server_->address(), {1, 1}, {}, nullptr);
  ASSERT_TRUE(absl::IsUnavailable(second.status())) << second.status();
  EXPECT_THAT(std::string(second.status().message()), StartsWith("http_listen: "));
}

TEST_F(HttpServerTest, EndsWithOpenConnections) {
  Start();
  support::TcpClient silent(port());
  ASSERT_TRUE(silent.Send("GET /a HTTP/1.1\r\n\r\n"));
  EXPECT_FALSE(silent.AwaitByteOrEnd());
  server_.reset();
  silent.ReadToEnd();
}

}  // namespace
}  // namespace wan::server
