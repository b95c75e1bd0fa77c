#include "server/jobs/receipts.h"

#include "absl/strings/str_cat.h"
#include "engine/api/utf8.h"
#include "proto/enum_words.h"
#include "server/conversion/convert.h"

namespace wan::server {

std::vector<JobFile> JobFilesOf(std::span<const ModelFile> files) {
  std::vector<JobFile> kept;
  kept.reserve(files.size());
  for (const ModelFile& file : files) {
    kept.push_back({file.name, file.version.size_bytes, FileDigests::KeyOf(file)});
  }
  return kept;
}

wan::v1::Receipt MakeReceipt(const wan::v1::Job& job, std::span<const JobFile> files,
                             const FileDigests& digests) {
  wan::v1::Receipt receipt;
  receipt.set_name(absl::StrCat(job.name(), "/receipt"));
  *receipt.mutable_request() = job.request();
  // The stored size is always the video's exact size, even in jobs from before the field exact_size
  // existed.
  receipt.mutable_request()->set_exact_size(true);
  // Jobs without a quality are older than that field.
  receipt.mutable_request()->set_quality(*ValueOf<wan::v1::Quality>(QualityOf(job.request())));
  // The same holds for the decoder.
  if (job.request().decoder() == wan::v1::DECODER_UNSPECIFIED) {
    receipt.mutable_request()->set_decoder(wan::v1::DECODER_FULL);
  }
  receipt.set_image_sha256(job.image_sha256());
  if (job.has_provenance()) *receipt.mutable_provenance() = job.provenance();
  for (const JobFile& file : files) {
    wan::v1::ModelFile& added = *receipt.add_files();
    added.set_path(ToUtf8(file.name));
    added.set_size_bytes(file.size_bytes);
    added.set_sha256(digests.Find(file.digest_key).value_or(""));
  }
  *receipt.mutable_artifacts() = job.artifacts();
  return receipt;
}

}  // namespace wan::server
