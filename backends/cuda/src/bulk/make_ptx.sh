#!/bin/sh
# Makes kernels.ptx of kernels.cu. Needs nvcc (made with 13.0).
set -eu
cd "$(dirname "$0")"
# compute_75: the oldest that CUDA 13 compiles for. -fmad=false: the host's results.
nvcc -ptx -arch=compute_75 -O3 -fmad=false -std=c++17 kernels.cu -o kernels.new
# nvcc writes its own version, which older drivers refuse. 7.7 has all that is used; every driver that we support knows it.
{
    echo "// make_ptx.sh made this of sources with SHA-256 $(cat kernel_work.hpp kernels.cu | sha256sum | cut -d ' ' -f 1)"
    sed 's/^\.version .*/.version 7.7/' kernels.new
} >kernels.ptx
rm kernels.new
