// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_ENVIRONMENT_PYTHON_SCRIPT_HPP
#define PLUMBLINE_ENVIRONMENT_PYTHON_SCRIPT_HPP

#include "plumbline/version.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace environment {

/// The Python probe. It writes one line as soon as it knows something, cheap answers (versions from package metadata)
/// before dear ones (importing a framework), so that being killed costs the rest only. Each question is asked on its
/// own: a package that fails to import says why, and the others still answer. Python 3.8 and newer.
[[nodiscard]] inline const char* python_probe_script() noexcept {
    return R"python(
import json, platform, sys

def put(name, value, link=3):
    if isinstance(value, (list, tuple)):
        value = " ".join(str(v) for v in value)
    if value is not None and not isinstance(value, (bool, int, float, str)):
        value = str(value)
    sys.stdout.write(json.dumps({"name": name, "value": value, "link": link}) + "\n")
    sys.stdout.flush()

def ask(name, question, link=3):
    try:
        value = question()
    except BaseException as problem:
        if isinstance(problem, (KeyboardInterrupt, SystemExit)):
            raise
        sys.stdout.write(json.dumps({"name": name, "error": type(problem).__name__, "link": link}) + "\n")
        sys.stdout.flush()
        return None
    put(name, value, link)
    return value

put("python.version", platform.python_version())

try:
    from importlib import metadata
except ImportError:
    metadata = None

PACKAGES = {
    3: ["torch", "torchvision", "torchaudio", "triton", "flash-attn", "xformers", "apex", "transformer-engine",
        "jax", "jaxlib", "jax-cuda12-plugin", "jax-cuda13-plugin", "tensorflow", "keras", "numpy", "cupy-cuda12x",
        "cupy-cuda13x", "nvidia-cudnn-cu12", "nvidia-cudnn-cu13", "nvidia-cublas-cu12", "nvidia-cublas",
        "nvidia-nccl-cu12", "nvidia-nccl-cu13", "nvidia-cuda-runtime-cu12", "nvidia-cuda-runtime"],
    4: ["nvidia-dali-cuda120", "nvidia-dali-cuda130", "Pillow", "Pillow-SIMD", "opencv-python",
        "opencv-python-headless", "webdataset", "mosaicml-streaming"],
    5: ["accelerate", "deepspeed", "lightning", "megatron-core", "transformers"],
    6: ["onnxruntime", "onnxruntime-gpu", "tensorrt", "tensorrt-llm", "vllm", "sglang"],
}
installed = set()
if metadata is not None:
    for link, names in PACKAGES.items():
        for name in names:
            try:
                version = metadata.version(name)
            except Exception:
                continue
            installed.add(name)
            put("python." + name.lower().replace("-", "_"), version, link)

if "numpy" in installed:
    def blas():
        import numpy
        try:
            config = numpy.show_config(mode="dicts")
        except TypeError:  # before 1.26
            return " ".join(getattr(numpy.__config__, "blas_opt_info", {}).get("libraries", [])) or "unknown"
        found = config["Build Dependencies"]["blas"]
        return "%s %s" % (found.get("name"), found.get("version"))
    ask("python.numpy_blas", blas, 4)

if "Pillow" in installed or "Pillow-SIMD" in installed:
    def jpeg():
        from PIL import features
        turbo = features.check_feature("libjpeg_turbo")
        version = features.version_feature("libjpeg_turbo") if turbo else features.version_codec("jpg")
        return "%s %s" % ("libjpeg-turbo" if turbo else "libjpeg", version)
    ask("python.pillow_jpeg", jpeg, 4)

if "opencv-python" in installed or "opencv-python-headless" in installed:
    def threads():
        import cv2
        return cv2.getNumThreads()
    ask("python.opencv_threads", threads, 4)

if "onnxruntime" in installed or "onnxruntime-gpu" in installed:
    def providers():
        import onnxruntime
        return onnxruntime.get_available_providers()
    ask("python.onnxruntime_providers", providers, 6)

if "torch" in installed:
    def load():
        import torch
        return torch.__version__
    if ask("python.torch", load) is not None:
        import torch
        ask("python.torch_cuda", lambda: torch.version.cuda or "none")
        ask("python.torch_git", lambda: torch.version.git_version)
        ask("python.torch_cudnn", lambda: torch.backends.cudnn.version())
        ask("python.torch_architectures", lambda: torch._C._cuda_getArchFlags() or "none")
        ask("python.torch_matmul_precision", lambda: torch.get_float32_matmul_precision())
        ask("python.torch_allow_tf32_matmul", lambda: torch.backends.cuda.matmul.allow_tf32)
        ask("python.torch_allow_tf32_cudnn", lambda: torch.backends.cudnn.allow_tf32)
        ask("python.torch_allow_fp16_reduction",
            lambda: torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction)
        ask("python.torch_allow_bf16_reduction",
            lambda: torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction)
        ask("python.torch_cudnn_enabled", lambda: torch.backends.cudnn.enabled)
        ask("python.torch_cudnn_benchmark", lambda: torch.backends.cudnn.benchmark)
        ask("python.torch_cudnn_benchmark_limit", lambda: torch.backends.cudnn.benchmark_limit)
        ask("python.torch_cudnn_deterministic", lambda: torch.backends.cudnn.deterministic)
        ask("python.torch_sdp_flash", lambda: torch.backends.cuda.flash_sdp_enabled())
        ask("python.torch_sdp_efficient", lambda: torch.backends.cuda.mem_efficient_sdp_enabled())
        ask("python.torch_sdp_math", lambda: torch.backends.cuda.math_sdp_enabled())
        ask("python.torch_sdp_cudnn", lambda: torch.backends.cuda.cudnn_sdp_enabled())
        ask("python.torch_threads", lambda: torch.get_num_threads(), 4)
        ask("python.torch_interop_threads", lambda: torch.get_num_interop_threads(), 4)

if "tensorflow" in installed:
    def build():
        import tensorflow
        info = tensorflow.sysconfig.get_build_info()
        return "cuda %s cudnn %s" % (info.get("cuda_version"), info.get("cudnn_version"))
    ask("python.tensorflow_build", build)
)python";
}

} // namespace environment

PLUMBLINE_NAMESPACE_END

#endif
