#include "tests/server/jobs/test_support.h"

#include <unistd.h>

#include <cstdlib>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "engine/api/errors.h"

namespace wan::server {

namespace fs = std::filesystem;

namespace {

// In memory where the system has such a folder: every commit is synced, and a busy disk would make
// of these milliseconds minutes.
fs::path TempRoot() {
  const fs::path memory = "/dev/shm";
  return access(memory.c_str(), W_OK) == 0 ? memory : fs::temp_directory_path();
}

}  // namespace

TempFolder::TempFolder() {
  std::string pattern = (TempRoot() / "wan_jobs_XXXXXX").string();
  if (mkdtemp(pattern.data()) == nullptr) std::abort();
  path_ = pattern;
}

TempFolder::~TempFolder() { fs::remove_all(path_); }

BlockingReader::BlockingReader(JobService& service, const std::string& job,
                               int64_t after_sequence) {
  auto cursor = service.Watch(job, after_sequence, Notify());
  EXPECT_TRUE(cursor.ok()) << cursor.status();
  cursor_ = *std::move(cursor);
}

BlockingReader::BlockingReader(EventLog& log, const std::string& job, int64_t after_sequence)
    : cursor_(log.Watch(job, after_sequence, Notify())) {}

BlockingReader::~BlockingReader() = default;

std::function<void()> BlockingReader::Notify() {
  return [this] {
    absl::MutexLock lock(&mutex_);
    notified_ = true;
  };
}

std::optional<wan::v1::Event> BlockingReader::Next() {
  wan::v1::Event event;
  for (;;) {
    switch (cursor_->TryNext(&event)) {
      case EventCursor::Next::kEvent:
        return event;
      case EventCursor::Next::kEnd:
        return std::nullopt;
      case EventCursor::Next::kPending:
        break;
    }
    absl::MutexLock lock(&mutex_);
    mutex_.Await(absl::Condition(&notified_));
    notified_ = false;
  }
}

std::vector<wan::v1::Event> BlockingReader::Rest() {
  std::vector<wan::v1::Event> events;
  while (std::optional<wan::v1::Event> event = Next()) events.push_back(*std::move(event));
  return events;
}

wan::v1::Event BlockingReader::Until(const std::function<bool(const wan::v1::Event&)>& wanted) {
  while (std::optional<wan::v1::Event> event = Next()) {
    if (wanted(*event)) return *std::move(event);
  }
  ADD_FAILURE() << "the log ended without the event";
  return {};
}

std::string Brief(const wan::v1::Event& event) {
  switch (event.kind_case()) {
    case wan::v1::Event::kQueued:
      return absl::StrCat("queued ", event.queued().position());
    case wan::v1::Event::kStageStarted:
      return absl::StrCat("start ", event.stage_started().stage());
    case wan::v1::Event::kStageFinished:
      return absl::StrCat("end ", event.stage_finished().stage());
    case wan::v1::Event::kStepProgress:
      return absl::StrCat("step ", event.step_progress().step(), "/",
                          event.step_progress().total());
    case wan::v1::Event::kPreview:
      return absl::StrCat("preview ", event.preview().step());
    case wan::v1::Event::kCompleted:
      return "completed";
    case wan::v1::Event::kFailed:
      return absl::StrCat("failed ", event.failed().status().message());
    case wan::v1::Event::kCancelled:
      return absl::StrCat("cancelled ", event.cancelled().reason());
    case wan::v1::Event::kRequeued:
      return absl::StrCat("requeued ", event.requeued().reason());
    case wan::v1::Event::kResumed:
      return absl::StrCat("resumed ", event.resumed().step());
    case wan::v1::Event::kHeartbeat:  // of streams, and in no log
    case wan::v1::Event::KIND_NOT_SET:
      break;
  }
  return "nothing";
}

std::vector<std::string> Brief(const std::vector<wan::v1::Event>& events) {
  std::vector<std::string> texts;
  for (const wan::v1::Event& event : events) texts.push_back(Brief(event));
  return texts;
}

std::vector<std::string> FieldsOf(const absl::Status& status) {
  std::vector<std::string> fields;
  for (const FieldViolation& violation : FieldViolationsOf(status)) {
    fields.push_back(violation.field);
  }
  return fields;
}

void CopyFolder(const fs::path& from, const fs::path& to) {
  // A running service may remove a file between the moment when it is listed and its copy.
  for (int attempt = 0;; ++attempt) {
    std::error_code error;
    fs::copy(from, to, fs::copy_options::recursive, error);
    if (!error) return;
    ASSERT_LT(attempt, 100) << error.message();
    fs::remove_all(to);
  }
}

ServiceTest::ServiceTest() : engine_(std::make_unique<fakes::FakeEngine>(&clock_)) {}

ServiceTest::~ServiceTest() { Close(); }

void ServiceTest::Open(bool load) { OpenIn(folder_.path() / "data", load); }

void ServiceTest::OpenIn(const fs::path& folder, bool load) {
  options_.data_dir = folder;
  auto service = JobService::Open(options_, {engine_.get()}, clock_);
  ASSERT_TRUE(service.ok()) << service.status();
  service_ = *std::move(service);
  if (load) LoadModel("m");
}

void ServiceTest::Close() { service_.reset(); }

void ServiceTest::LoadModel(const std::string& name, const std::string& path) {
  absl::Notification done;
  absl::Status status;
  service_->model_operations().Load({name, path}, [&](const auto& model) {
    status = model.status();
    done.Notify();
  });
  done.WaitForNotification();
  ASSERT_TRUE(status.ok()) << status;
}

wan::v1::GenerationRequest ServiceTest::Request(const std::string& prompt) {
  wan::v1::GenerationRequest request;
  request.set_model("m");
  request.set_prompt(prompt);
  return request;
}

std::string ServiceTest::Create(const wan::v1::GenerationRequest& request) {
  const auto created = calls().Create(request, false);
  EXPECT_TRUE(created.ok()) << created.status();
  if (!created.ok()) return "";
  EXPECT_TRUE(created->created);
  return created->job.name();
}

wan::v1::Job ServiceTest::Get(const std::string& job) {
  const auto found = service_->Get(job);
  EXPECT_TRUE(found.ok()) << found.status();
  return found.ok() ? *found : wan::v1::Job();
}

std::vector<wan::v1::Event> ServiceTest::RunToEnd(const std::string& job) {
  return BlockingReader(*service_, job).Rest();
}

}  // namespace wan::server
