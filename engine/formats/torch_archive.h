// State dicts as torch.save writes them (".pth"): a zip archive of a pickle and one record per
// storage.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "engine/formats/tensor_file.h"

namespace wan {

// Maps the archive and reads its pickle, which must be a dict (or OrderedDict) from names to
// tensors. DATA_LOSS, naming file and record, global or tensor, for anything that does not fit: see
// zip_directory.h and pickle.h; besides, storages of another size than the pickle says or of no
// tensor, tensors beyond their storage, and names that occur twice. UNIMPLEMENTED for big-endian
// archives and for tensors that are not contiguous.
absl::StatusOr<TensorFile> ReadTorchArchive(const std::string& path);

}  // namespace wan
