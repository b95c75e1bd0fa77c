// wan_attack: bounded abuse of a server on this machine, for tests and scripts/prove.
//
//   wan_attack idle HOST:PORT COUNT          opens COUNT connections that say nothing
//   wan_attack trickle HOST:PORT COUNT       COUNT HTTP/1.1 headers that never end
//   wan_attack post HOST:PORT MIB            announces and sends one HTTP/1.1 body
//   wan_attack downloads HOST:PORT ARTIFACT COUNT [CONNECTIONS]
//                                            COUNT DownloadArtifact streams that nobody reads
//   wan_attack requests HOST:PORT COUNT MIB  COUNT CreateJob calls at once, of MIB each, none valid
//   wan_attack garbage HOST:PORT COUNT       COUNT CreateJob calls, one after the other, whose
//   bytes
//                                            are no message
//
// What is opened stays open until stdin ends. One JSON line on stdout says what happened: "opened"
// counts what the server let in, the other keys are gRPC's status codes and their numbers. Exit
// code 0, or 2 for wrong use; only addresses of 127.0.0.0/8 are attacked, and counts are limited.
#include <arpa/inet.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/security/credentials.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "wan/v1/video_generation.grpc.pb.h"

namespace {

constexpr int kMostCount = 20'000;
constexpr int kMostMib = 1'024;
constexpr int kSettleMillis = 300;

using Counts = std::map<std::string, int>;

void Print(const Counts& counts) {
  std::string line = "{";
  for (const auto& [key, count] : counts) {
    line += (line.size() > 1 ? ",\"" : "\"") + key + "\":" + std::to_string(count);
  }
  std::cout << line << "}" << std::endl;
}

void AwaitEndOfInput() {
  char ignored[256];
  while (read(STDIN_FILENO, ignored, sizeof(ignored)) > 0) {
  }
}

// A connected socket, or -1.
int Connect(const std::string& target) {
  const size_t colon = target.rfind(':');
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(std::atoi(target.c_str() + colon + 1)));
  inet_pton(AF_INET, target.substr(0, colon).c_str(), &address.sin_addr);
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd >= 0 && connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0) {
    close(fd);
    return -1;
  }
  return fd;
}

// Whether the server has closed it; what it has sent is taken.
bool IsClosed(int fd) {
  char bytes[4096];
  for (;;) {
    const ssize_t count = recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT);
    if (count == 0) return true;
    if (count < 0) return errno != EAGAIN && errno != EWOULDBLOCK;
  }
}

int OpenSockets(const std::string& target, int count, const std::string& first_bytes) {
  std::vector<int> sockets;
  Counts counts = {{"failed", 0}, {"closed", 0}, {"opened", 0}};
  for (int i = 0; i < count; ++i) {
    const int fd = Connect(target);
    if (fd < 0) {
      ++counts["failed"];
      continue;
    }
    send(fd, first_bytes.data(), first_bytes.size(), MSG_NOSIGNAL);
    sockets.push_back(fd);
  }
  poll(nullptr, 0, kSettleMillis);
  for (const int fd : sockets) ++counts[IsClosed(fd) ? "closed" : "opened"];
  Print(counts);
  if (first_bytes.empty()) {
    AwaitEndOfInput();
    return 0;
  }
  // A byte a second on each, as a slow header has.
  pollfd input = {STDIN_FILENO, POLLIN, 0};
  while (poll(&input, 1, 1'000) == 0) {
    for (const int fd : sockets) send(fd, "x", 1, MSG_NOSIGNAL);
  }
  return 0;
}

int Post(const std::string& target, int mib) {
  const int fd = Connect(target);
  const std::string header =
      "POST /metrics HTTP/1.1\r\nHost: x\r\nContent-Length: " + std::to_string(int64_t{mib} << 20) +
      "\r\n\r\n";
  const std::string body(1 << 20, 'x');
  Counts counts = {{"sent_mib", 0}};
  if (fd >= 0 && send(fd, header.data(), header.size(), MSG_NOSIGNAL) > 0) {
    for (int i = 0; i < mib; ++i) {
      size_t sent = 0;
      while (sent < body.size()) {
        const ssize_t some = send(fd, body.data() + sent, body.size() - sent, MSG_NOSIGNAL);
        if (some <= 0) break;
        sent += static_cast<size_t>(some);
      }
      if (sent < body.size()) break;
      ++counts["sent_mib"];
    }
  }
  Print(counts);
  AwaitEndOfInput();
  return 0;
}

std::shared_ptr<grpc::Channel> OwnChannel(const std::string& target) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  return grpc::CreateCustomChannel(target, grpc::InsecureChannelCredentials(), arguments);
}

struct Download {
  grpc::ClientContext context;
  std::unique_ptr<grpc::ClientReader<wan::v1::DownloadArtifactResponse>> reader;
};

int Downloads(const std::string& target, const std::string& artifact, int count, int connections) {
  std::vector<std::unique_ptr<wan::v1::VideoGeneration::Stub>> stubs;
  for (int i = 0; i < connections; ++i) {
    stubs.push_back(wan::v1::VideoGeneration::NewStub(OwnChannel(target)));
  }
  Counts counts;
  std::vector<std::unique_ptr<Download>> downloads;
  wan::v1::DownloadArtifactRequest request;
  request.set_name(artifact);
  for (int i = 0; i < count; ++i) {
    auto download = std::make_unique<Download>();
    download->reader =
        stubs[static_cast<size_t>(i % connections)]->DownloadArtifact(&download->context, request);
    downloads.push_back(std::move(download));
  }
  // Each first chunk shows that the server has begun; nobody reads a second one.
  for (size_t i = 0; i < downloads.size(); ++i) {
    wan::v1::DownloadArtifactResponse chunk;
    Download& download = *downloads[i];
    if (download.reader->Read(&chunk)) {
      ++counts["opened"];
    } else {
      ++counts[std::to_string(download.reader->Finish().error_code())];
      downloads[i] = nullptr;
    }
  }
  poll(nullptr, 0, kSettleMillis);
  Print(counts);
  AwaitEndOfInput();
  for (const auto& download : downloads) {
    if (download != nullptr) download->context.TryCancel();
  }
  return 0;
}

// Sends bytes as a CreateJobRequest; the status code.
std::string Call(const std::shared_ptr<grpc::Channel>& channel, const grpc::ByteBuffer& bytes) {
  grpc::GenericStub stub(channel);
  grpc::ClientContext context;
  grpc::CompletionQueue queue;
  grpc::ByteBuffer answer;
  grpc::Status status;
  const auto call =
      stub.PrepareUnaryCall(&context, "/wan.v1.VideoGeneration/CreateJob", bytes, &queue);
  call->StartCall();
  call->Finish(&answer, &status, nullptr);
  void* tag = nullptr;
  bool ok = false;
  queue.Next(&tag, &ok);
  return std::to_string(status.error_code());
}

int Requests(const std::string& target, int count, int mib) {
  wan::v1::CreateJobRequest request;
  request.mutable_request()->set_model("no such model");
  request.mutable_request()->set_image(std::string(static_cast<size_t>(mib) << 20, 'x'));
  const std::string text = request.SerializeAsString();
  const grpc::Slice slice(text);
  const grpc::ByteBuffer bytes(&slice, 1);
  std::vector<std::thread> callers;
  std::vector<std::string> codes(static_cast<size_t>(count));
  for (std::string& code : codes) {
    callers.emplace_back([&] { code = Call(OwnChannel(target), bytes); });
  }
  for (std::thread& caller : callers) caller.join();
  Counts counts;
  for (const std::string& code : codes) ++counts[code];
  Print(counts);
  AwaitEndOfInput();
  return 0;
}

int Garbage(const std::string& target, int count) {
  const auto channel = OwnChannel(target);
  Counts counts;
  for (int i = 0; i < count; ++i) {
    // A prompt (field 2 of field 1) that is not UTF-8, and a length past the end, in turn.
    const std::string text =
        i % 2 == 0 ? std::string("\x0a\x05\x12\x03\xff\xfe\xfd") : std::string("\x0a\x7f\x12");
    const grpc::Slice slice(text);
    ++counts[Call(channel, grpc::ByteBuffer(&slice, 1))];
  }
  Print(counts);
  AwaitEndOfInput();
  return 0;
}

int Usage() {
  std::cerr << "wan_attack: idle|trickle HOST:PORT COUNT, post HOST:PORT MIB, "
               "downloads HOST:PORT ARTIFACT COUNT [CONNECTIONS], requests HOST:PORT COUNT MIB, "
               "garbage HOST:PORT COUNT; HOST is in 127.0.0.0/8\n";
  return 2;
}

bool Within(int value, int most) { return value >= 1 && value <= most; }

int Main(const std::vector<std::string>& words) {
  if (words.size() < 3 || words[1].rfind("127.", 0) != 0) return Usage();
  const std::string& what = words[0];
  const std::string& target = words[1];
  rlimit limit = {};
  getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
  if (what == "downloads") {
    const int count = words.size() > 3 ? std::atoi(words[3].c_str()) : 0;
    const int connections = words.size() > 4 ? std::atoi(words[4].c_str()) : 1;
    if (!Within(count, kMostCount) || !Within(connections, count)) return Usage();
    return Downloads(target, words[2], count, connections);
  }
  const int count = std::atoi(words[2].c_str());
  if (what == "post") return Within(count, kMostMib) ? Post(target, count) : Usage();
  if (!Within(count, kMostCount)) return Usage();
  if (what == "idle") return OpenSockets(target, count, "");
  if (what == "trickle") {
    return OpenSockets(target, count, "GET /metrics HTTP/1.1\r\nHost: x\r\nX-Slow: ");
  }
  if (what == "garbage") return Garbage(target, count);
  if (what != "requests" || words.size() < 4) return Usage();
  const int mib = std::atoi(words[3].c_str());
  constexpr int kMostCallers = 100;
  return Within(mib, kMostMib) && Within(count, kMostCallers) ? Requests(target, count, mib)
                                                              : Usage();
}

}  // namespace

int main(int argc, char** argv) { return Main(std::vector<std::string>(argv + 1, argv + argc)); }
