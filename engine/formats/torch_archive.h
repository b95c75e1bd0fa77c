// Reads state dicts written by torch.save (".pth"): a zip archive with a pickle and one record per
// storage.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "engine/formats/tensor_file.h"

namespace wan {

// Maps the archive and reads its pickle, which must be a dict (or OrderedDict) from names to
// tensors. DATA_LOSS, naming file and record, global or tensor, for everything that zip_directory.h
// and pickle.h refuse; also if a storage has another size than the pickle says or belongs to no
// tensor, if a tensor reaches beyond its storage, or if a name occurs twice. UNIMPLEMENTED for
// big-endian archives and tensors that are not contiguous. Thread-safe.
absl::StatusOr<TensorFile> ReadTorchArchive(const std::string& path);

}  // namespace wan
