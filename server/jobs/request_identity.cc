#include "server/jobs/request_identity.h"

#include <cstddef>

#include "absl/strings/str_cat.h"
#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/io/zero_copy_stream_impl_lite.h"
#include "server/conversion/names.h"
#include "server/store/digest.h"

namespace wan::server {
namespace {

// Hashes the bytes that are written to it, so that a request with a large image need not be
// serialized in memory first.
class HashingStream final : public google::protobuf::io::CopyingOutputStream {
 public:
  bool Write(const void* data, int size) override {
    hash_.Update({static_cast<const char*>(data), static_cast<size_t>(size)});
    return true;
  }
  std::string FinishHex() { return hash_.FinishHex(); }

 private:
  Sha256 hash_;
};

}  // namespace

CanonicalRequest::CanonicalRequest(const wan::v1::GenerationRequest& request) : request_(request) {
  const std::string_view bare = BareModelName(request.model());
  if (bare.size() == request.model().size()) return;
  copy_ = request;
  copy_->set_model(std::string(bare));
}

std::string DigestOf(const wan::v1::GenerationRequest& request) {
  HashingStream hash;
  {
    google::protobuf::io::CopyingOutputStreamAdaptor stream(&hash);
    google::protobuf::io::CodedOutputStream coded(&stream);
    coded.SetSerializationDeterministic(true);  // the entries of maps are sorted
    request.SerializeToCodedStream(&coded);
  }
  return hash.FinishHex();
}

std::string TurnKeyOf(const std::string& owner, const std::string& request_id) {
  return absl::StrCat(owner, "\n", request_id);
}

}  // namespace wan::server
