#include "server/jobs/receipts.h"

#include <memory>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "engine/api/utf8.h"
#include "proto/enum_words.h"
#include "server/conversion/convert.h"

namespace wan::server {

std::vector<JobFile> JobFilesOf(std::span<const ModelFile> files, const FileDigests& digests) {
  std::vector<JobFile> kept;
  kept.reserve(files.size());
  for (const ModelFile& file : files) {
    kept.push_back({file.name, file.version.size_bytes, FileDigests::KeyOf(file)});
  }
  AddKnownDigests(digests, kept);
  return kept;
}

bool AddKnownDigests(const FileDigests& digests, std::vector<JobFile>& files) {
  bool complete = true;
  for (JobFile& file : files) {
    if (file.sha256.empty()) file.sha256 = digests.Find(file.digest_key).value_or("");
    complete = complete && !file.sha256.empty();
  }
  return complete;
}

void ReceiptFiles::Note(const std::string& job, std::span<const ModelFile> files) {
  std::vector<JobFile> kept = JobFilesOf(files, digests_);
  // The lock also orders the changes of the store.
  absl::MutexLock lock(&mutex_);
  // A digest may have become known since, and Complete may have been called before this.
  if (AddKnownDigests(digests_, kept)) {
    incomplete_.erase(job);
  } else {
    incomplete_[job] = kept;
    if (incomplete_.size() > kMostIncomplete) incomplete_.erase(incomplete_.begin());
  }
  ledger_.NoteFiles(job, std::move(kept));
}

void ReceiptFiles::Complete() {
  std::vector<std::string> complete;
  {
    absl::MutexLock lock(&mutex_);
    for (auto& [job, files] : incomplete_) {
      if (AddKnownDigests(digests_, files)) complete.push_back(job);
    }
  }
  // The change of Note may still be on its way to the store.
  for (const std::string& job : complete) {
    log_.Flush(job, [this, job](const absl::Status& /*written*/) { StoreComplete(job); });
  }
}

void ReceiptFiles::StoreComplete(const std::string& job) {
  absl::MutexLock lock(&mutex_);
  const auto found = incomplete_.find(job);
  // Another attempt may have other files.
  if (found == incomplete_.end() || !AddKnownDigests(digests_, found->second)) return;
  const auto changes = std::make_shared<std::vector<JobChange>>();
  changes->push_back({.job = job,
                      .row = std::nullopt,
                      .events = {},
                      .report = std::nullopt,
                      .files = std::move(found->second)});
  incomplete_.erase(found);
  // If the job is gone or the disk refuses, receipts still look the digests up.
  store_.Apply(*changes, [changes](const absl::Status& /*stored*/) {});
}

wan::v1::Receipt MakeReceipt(const wan::v1::Job& job, std::vector<JobFile> files,
                             const FileDigests& digests) {
  wan::v1::Receipt receipt;
  receipt.set_name(absl::StrCat(job.name(), "/receipt"));
  *receipt.mutable_request() = job.request();
  // The stored size is always the video's exact size, even in jobs from before the field exact_size
  // existed.
  receipt.mutable_request()->set_exact_size(true);
  // Jobs without a quality are from before the field `quality` existed.
  receipt.mutable_request()->set_quality(*ValueOf<wan::v1::Quality>(QualityOf(job.request())));
  // Jobs without a decoder are from before the field `decoder` existed, and used the full decoder.
  if (job.request().decoder() == wan::v1::DECODER_UNSPECIFIED) {
    receipt.mutable_request()->set_decoder(wan::v1::DECODER_FULL);
  }
  receipt.set_image_sha256(job.image_sha256());
  if (job.has_provenance()) *receipt.mutable_provenance() = job.provenance();
  AddKnownDigests(digests, files);
  for (const JobFile& file : files) {
    wan::v1::ModelFile& added = *receipt.add_files();
    added.set_path(ToUtf8(file.name));
    added.set_size_bytes(file.size_bytes);
    added.set_sha256(file.sha256);
  }
  *receipt.mutable_artifacts() = job.artifacts();
  return receipt;
}

}  // namespace wan::server
