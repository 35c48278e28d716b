#!/bin/sh
# Makes kernels.ptx and kernels.fatbin from kernels.cu. Needs nvcc (the committed files: 13.0).
set -eu
cd "$(dirname "$0")"
# compute_75 is the oldest architecture that CUDA 13 supports. -fmad=false gives the same results as the
# host's code.
common="-O3 -fmad=false -std=c++17"
nvcc -ptx -arch=compute_75 $common kernels.cu -o kernels.new
# Compiled code for the most common devices; for others the driver compiles the text.
nvcc -fatbin $common -Xfatbin -compress-all \
    -gencode arch=compute_80,code=sm_80 -gencode arch=compute_86,code=sm_86 -gencode arch=compute_89,code=sm_89 \
    -gencode arch=compute_90,code=sm_90 -gencode arch=compute_100,code=sm_100 -gencode arch=compute_120,code=sm_120 \
    kernels.cu -o kernels.fatbin
# nvcc writes its own PTX version, which older drivers refuse. 7.7 is enough, and every driver that we support accepts it.
{
    echo "// make_kernels.sh made this of sources with SHA-256 $(cat kernel_work.hpp kernels.cu | sha256sum | cut -d ' ' -f 1)"
    echo "// and kernels.fatbin, whose SHA-256 is $(sha256sum <kernels.fatbin | cut -d ' ' -f 1)"
    sed 's/^\.version .*/.version 7.7/' kernels.new
} >kernels.ptx
rm kernels.new
