// How a test steers the fake CUDA driver: C functions that the library exports beside cuGetProcAddress_v2, nvrtc* and cupti*.
#pragma once

/// A launch attribute that kernel nodes have and cuda.h does not know, as with a driver that is newer.
#define FAKE_CUDA_LATER_ATTRIBUTE 40 // NOLINT(cppcoreguidelines-macro-usage): a C header

extern "C" {
/// From the `first`-th call (counted from now, 1 is the next) of `entry` on ("": of any entry point), `times` calls fail with
/// `status`; 0 times: for ever. Replaces an earlier fault. NVRTC's and CUPTI's entry points count too.
///
/// A call that releases something (cuMemFree, cuGraphDestroy, cuStreamDestroy ...) does its work and then reports the
/// status, as the driver does with the failure of earlier work; a failing cuStreamEndCapture ends the capture without a graph.
void fake_cuda_fail(const char* entry, long first, long times, int status);
/// fake_cuda_fail("", call, 1, status)
void fake_cuda_fail_at(long call, int status);
/// Whether the fault was met since it was set.
int fake_cuda_was_hit(void);

/// Calls since the reset, of all entry points.
long fake_cuda_calls(void);
/// Name of the call `index`, from 0. Null where there is none.
const char* fake_cuda_call(long index);

/// Allocations, reservations, mappings, physical memory, modules, streams, events, graphs, execs, retained contexts,
/// contexts left current in this thread.
long fake_cuda_live_objects(void);
/// The same by kind, for a test's message. Valid until this thread's next call of it.
const char* fake_cuda_live_text(void);

/// External semaphores that count upwards: CUexternalSemaphore of other APIs' work, which the host does here.
void* fake_cuda_make_semaphore(unsigned long long value);
void fake_cuda_destroy_semaphore(void* semaphore);
unsigned long long fake_cuda_semaphore_value(void* semaphore);
void fake_cuda_set_semaphore(void* semaphore, unsigned long long value);

/// Of the last graph that was instantiated. They change nothing here.
unsigned long long fake_cuda_instantiate_flags(void);

/// What cuDeviceGetAttribute gives from now on.
void fake_cuda_set_attribute(int attribute, int value);

/// What cuDriverGetVersion gives from now on.
void fake_cuda_set_driver_version(int version);

/// Whether modules of the backend's own kernels load from now on, which then run here: 0 (at first) none, 1 of their text (bulk/kernels.ptx), 2 of
/// any fat binary too.
void fake_cuda_take_bulk_kernels(int taken);

/// Forgets the fault, the calls, a context's sticky error, chosen attributes and the version. What is alive stays alive.
void fake_cuda_reset(void);
}
