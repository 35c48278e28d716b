#!/bin/bash
# Runs what of the Python package needs PyTorch and a GPU, on a machine where the preset `gpu` is built in build/gpu.
cd "$(dirname "$0")" || exit 2
export WARMGRAPH_LIBRARY=${WARMGRAPH_LIBRARY:-$PWD/build/gpu/libwarmgraph.so}
export PYTHONPATH=$PWD/python PYTHONDONTWRITEBYTECODE=1 TOKENIZERS_PARALLELISM=false HF_HUB_OFFLINE=1
{
    python3 -c 'import torch, sys; print(sys.version.split()[0], torch.__version__, torch.cuda.get_device_name())'
    timeout 280 python3 python/tests/gpu/cases.py "$@"
    echo "status $?"
} 2>&1 | tail -c 12000
