// Control of the fake CUDA driver: C functions that the library exports beside cuGetProcAddress_v2, nvrtc* and cupti*.
#pragma once

/// A launch attribute that kernel nodes have and cuda.h does not know, as with a newer driver.
#define FAKE_CUDA_LATER_ATTRIBUTE 40 // NOLINT(cppcoreguidelines-macro-usage): a C header

extern "C" {
/// Makes `times` calls of `entry` ("": any entry point) fail with `status`, from the `first`-th on (counted from now, 1
/// is the next); 0 times: for ever. Replaces an earlier fault. Calls of NVRTC and CUPTI count too.
///
/// A call that releases something (cuMemFree, cuGraphDestroy, cuStreamDestroy ...) does its work and then reports the
/// status, as the driver reports earlier failures; a failing cuStreamEndCapture ends the capture without a graph.
void fake_cuda_fail(const char* entry, long first, long times, int status);
/// The same as fake_cuda_fail("", call, 1, status).
void fake_cuda_fail_at(long call, int status);
/// Whether the fault made a call fail since it was set.
int fake_cuda_was_hit(void);

/// The number of calls of all entry points since the reset.
long fake_cuda_calls(void);
/// The name of the call `index`, from 0. Null when there is no such call.
const char* fake_cuda_call(long index);

/// The number of live objects: allocations, reservations, mappings, physical memory, modules, streams, events, graphs,
/// execs, retained contexts, contexts left current in this thread.
long fake_cuda_live_objects(void);
/// The same numbers by kind, for a test's message. Valid until this thread calls it again.
const char* fake_cuda_live_text(void);

/// External semaphores that count upwards: CUexternalSemaphore of another API's work, which the host does here.
void* fake_cuda_make_semaphore(unsigned long long value);
void fake_cuda_destroy_semaphore(void* semaphore);
unsigned long long fake_cuda_semaphore_value(void* semaphore);
void fake_cuda_set_semaphore(void* semaphore, unsigned long long value);

/// The flags of the last instantiated graph. They have no effect here.
unsigned long long fake_cuda_instantiate_flags(void);

/// Sets the value that cuDeviceGetAttribute returns from now on.
void fake_cuda_set_attribute(int attribute, int value);

/// Sets the value that cuDriverGetVersion returns from now on.
void fake_cuda_set_driver_version(int version);

/// Sets whether modules of the backend's own kernels load and run here from now on: 0 (the default) none, 1 those of
/// their text (bulk/kernels.ptx), 2 those of any fat binary too.
void fake_cuda_take_bulk_kernels(int taken);

/// Forgets the fault, the calls, a context's sticky error, chosen attributes and the version. Live objects stay alive.
void fake_cuda_reset(void);
}
