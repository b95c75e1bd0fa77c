# The scripts in this folder source it in the repository's root: it finds the package and LibTorch, and says where results
# go.
#
#   PACKAGE     folder made by scripts/gpu/package (default: .gpu)
#   TORCH_ROOT  folder `torch` of the Python environment (default: asked of python3)
#   OUT         results (default: gpu_results)

PACKAGE=$(realpath "${PACKAGE:-.gpu}")
TORCH_ROOT=${TORCH_ROOT:-$(python3 -c 'import os, torch; print(os.path.dirname(torch.__file__))')}
OUT=${OUT:-gpu_results}
mkdir -p "$OUT"
export LD_LIBRARY_PATH=$PACKAGE/lib:$TORCH_ROOT/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
export PATH=$PACKAGE/bin:$PATH
# Unpack the golden checkpoints once.
export WAN_GOLDEN_DIR=$PWD/tests/golden
export WAN_CHECKPOINT_DIR=${TMPDIR:-/tmp}/wan_golden_checkpoints
mkdir -p "$WAN_CHECKPOINT_DIR"
for archive in "$WAN_GOLDEN_DIR"/checkpoints/*.tar.xz; do
  [ -d "$WAN_CHECKPOINT_DIR/$(basename "$archive" .tar.xz)" ] || tar -xJf "$archive" -C "$WAN_CHECKPOINT_DIR"
done
{
  nvidia-smi --query-gpu=name,driver_version,power.limit,memory.total --format=csv,noheader || echo 'no GPU here'
  python3 -c 'import torch; print("torch", torch.__version__, "cuDNN", torch.backends.cudnn.version())' || true
} | tee "$OUT/machine.txt"
# figure FILE NAME KEY: prints the figure KEY (or the field KEY of the row itself) of the last row, in a file of wan_bench's
# rows, whose name matches the pattern NAME; prints nothing if there is no such row.
figure() {
  python3 - "$@" << 'PYTHON'
import json, re, sys
rows = [json.loads(line) for line in open(sys.argv[1])]
found = [{**row, **row.get("figures", {})} for row in rows if re.search(sys.argv[2], row["name"])]
if found and sys.argv[3] in found[-1]:
    print(found[-1][sys.argv[3]])
PYTHON
}
# scrape ADDRESS: prints the metrics of a server. The machine's own curl must not find the libcurl of the package.
scrape() { env -u LD_LIBRARY_PATH curl -s "http://$1/metrics"; }
