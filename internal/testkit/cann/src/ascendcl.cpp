// libascendcl of the look-alike: devices whose memory is host memory and whose
// streams have always finished. LOOKALIKE_DEVICES, LOOKALIKE_SOC, LOOKALIKE_CANN
// and LOOKALIKE_LOG say what it pretends to be.
#include <atomic>
#include <chrono>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#define ACL_FUNC_VISIBILITY __attribute__((visibility("default")))
#include "acl/acl.h"
#include "acl/acl_op_compiler.h"
#include "marker.h"

extern "C" int drvGetDevNum(unsigned *count);  // libascend_hal: the driver

namespace {

// Codes as the CANN documentation names them.
constexpr aclError kInvalidParam = 107000, kInvalidDevice = 107001, kNoContext = 107002,
                   kNoMemory = 207001, kNotSupported = 500002;
constexpr int kMostDevices = 16;
constexpr size_t kAlignment = 512;

thread_local int device = 0;
thread_local aclrtContext context = nullptr;
char contexts[kMostDevices];
std::atomic<long> next_id{1};

struct Handle {  // a stream or an event
  long id;
  double milliseconds;
};

double now() {
  using namespace std::chrono;
  return duration<double, std::milli>(steady_clock::now().time_since_epoch()).count();
}

const char *setting(const char *name, const char *otherwise) {
  const char *value = getenv(name);
  return value ? value : otherwise;
}

int devices() {
  unsigned count = 0;
  drvGetDevNum(&count);
  return static_cast<int>(count);
}

aclError take(void **to, size_t bytes) {
  return posix_memalign(to, kAlignment, bytes ? bytes : kAlignment) ? kNoMemory : 0;
}

aclError copy(void *to, size_t room, const void *from, size_t bytes) {
  if (bytes > room) return kInvalidParam;
  memmove(to, from, bytes);
  return 0;
}

template <typename T>
aclError make(T *to, double milliseconds) {
  *to = new Handle{next_id++, milliseconds};
  return 0;
}

}  // namespace

extern "C" {

aclError aclInit(const char *) { return 0; }
aclError aclFinalize() { return 0; }
const char *aclGetRecentErrMsg() { return setting("LOOKALIKE_ERROR", ""); }
const char *aclrtGetSocName() {
  const char *soc = setting("LOOKALIKE_SOC", "Ascend910B4");
  return *soc ? soc : nullptr;
}

aclError aclrtGetDeviceCount(uint32_t *count) {
  *count = static_cast<uint32_t>(devices());
  return 0;
}
aclError aclrtSetDevice(int32_t number) {
  if (number < 0 || number >= devices()) return kInvalidDevice;
  device = number;
  context = &contexts[number];
  return 0;
}
aclError aclrtResetDevice(int32_t) {
  context = nullptr;
  return 0;
}
aclError aclrtGetDevice(int32_t *number) {
  *number = device;
  return context ? 0 : kNoContext;
}
aclError aclrtGetCurrentContext(aclrtContext *to) {
  *to = context;
  return context ? 0 : kNoContext;
}
aclError aclrtSetCurrentContext(aclrtContext to) {
  context = to;
  for (int i = 0; i < kMostDevices; i++)
    if (to == &contexts[i]) device = i;
  return 0;
}
aclError aclrtSynchronizeDevice() { return 0; }
aclError aclrtSynchronizeDeviceWithTimeout(int32_t) { return 0; }
aclError aclrtDeviceGetBareTgid(int32_t *pid) {
  *pid = 1;
  return 0;
}
aclError aclrtDeviceCanAccessPeer(int32_t *can, int32_t, int32_t) {
  *can = 0;
  return 0;
}
aclError aclGetDeviceCapability(uint32_t, aclDeviceInfo what, int64_t *value) {
  *value = what == ACL_DEVICE_INFO_AI_CORE_NUM ? 20 : 40;
  return 0;
}
aclError aclrtSetDeviceSatMode(aclrtFloatOverflowMode) { return 0; }
aclError aclrtGetDeviceSatMode(aclrtFloatOverflowMode *mode) {
  *mode = ACL_RT_OVERFLOW_MODE_INFNAN;
  return 0;
}

aclError aclrtGetMemInfo(aclrtMemAttr, size_t *free_bytes, size_t *total) {
  *total = size_t{8} << 30;
  *free_bytes = size_t{7} << 30;
  return 0;
}
aclError aclrtMalloc(void **to, size_t bytes, aclrtMemMallocPolicy) { return take(to, bytes); }
aclError aclrtMallocAlign32(void **to, size_t bytes, aclrtMemMallocPolicy) { return take(to, bytes); }
aclError aclrtMallocHost(void **to, size_t bytes) { return take(to, bytes); }
aclError aclrtFree(void *memory) {
  free(memory);
  return 0;
}
aclError aclrtFreeHost(void *memory) {
  free(memory);
  return 0;
}
aclError aclrtMemcpy(void *to, size_t room, const void *from, size_t bytes, aclrtMemcpyKind) {
  return copy(to, room, from, bytes);
}
aclError aclrtMemcpyAsync(void *to, size_t room, const void *from, size_t bytes, aclrtMemcpyKind, aclrtStream) {
  return copy(to, room, from, bytes);
}
aclError aclrtMemset(void *to, size_t, int32_t value, size_t bytes) {
  memset(to, value, bytes);
  return 0;
}

aclError aclrtCreateStream(aclrtStream *to) { return make(to, 0); }
aclError aclrtCreateStreamWithConfig(aclrtStream *to, uint32_t, uint32_t) { return make(to, 0); }
aclError aclrtDestroyStream(aclrtStream) { return 0; }
aclError aclrtDestroyStreamForce(aclrtStream) { return 0; }
aclError aclrtStreamGetId(aclrtStream stream, int32_t *id) {
  *id = stream ? static_cast<int32_t>(static_cast<Handle *>(stream)->id) : 0;
  return 0;
}
aclError aclrtStreamQuery(aclrtStream, aclrtStreamStatus *status) {
  *status = ACL_STREAM_STATUS_COMPLETE;
  return 0;
}
aclError aclrtSynchronizeStream(aclrtStream) { return 0; }
aclError aclrtSynchronizeStreamWithTimeout(aclrtStream, int32_t) { return 0; }
aclError aclrtSetStreamFailureMode(aclrtStream, uint64_t) { return 0; }
aclError aclrtSetStreamOverflowSwitch(aclrtStream, uint32_t) { return 0; }
aclError aclrtGetStreamOverflowSwitch(aclrtStream, uint32_t *on) {
  *on = 0;
  return 0;
}
aclError aclrtSetOpExecuteTimeOut(uint32_t) { return 0; }
aclError aclrtSetOpExecuteTimeOutV2(uint64_t wanted, uint64_t *real) {
  if (real) *real = wanted;
  return 0;
}
aclError aclrtSetOpWaitTimeout(uint32_t) { return 0; }

aclError aclrtCreateEventWithFlag(aclrtEvent *to, uint32_t) { return make(to, now()); }
aclError aclrtCreateEventExWithFlag(aclrtEvent *to, uint32_t) { return make(to, now()); }
aclError aclrtDestroyEvent(aclrtEvent event) {
  delete static_cast<Handle *>(event);
  return 0;
}
aclError aclrtRecordEvent(aclrtEvent event, aclrtStream) {
  static_cast<Handle *>(event)->milliseconds = now();
  return 0;
}
aclError aclrtResetEvent(aclrtEvent, aclrtStream) { return 0; }
aclError aclrtStreamWaitEvent(aclrtStream, aclrtEvent) { return 0; }
aclError aclrtSynchronizeEvent(aclrtEvent) { return 0; }
aclError aclrtQueryEventStatus(aclrtEvent, aclrtEventRecordedStatus *status) {
  *status = ACL_EVENT_RECORDED_STATUS_COMPLETE;
  return 0;
}
aclError aclrtQueryEventWaitStatus(aclrtEvent, aclrtEventWaitStatus *status) {
  *status = ACL_EVENT_WAIT_STATUS_COMPLETE;
  return 0;
}
aclError aclrtEventElapsedTime(float *milliseconds, aclrtEvent from, aclrtEvent to) {
  *milliseconds = static_cast<float>(static_cast<Handle *>(to)->milliseconds - static_cast<Handle *>(from)->milliseconds);
  return 0;
}

aclError aclrtPeekAtLastError(aclrtLastErrLevel) { return 0; }
aclError aclrtGetLastError(aclrtLastErrLevel) { return 0; }
aclError aclsysGetCANNVersion(aclCANNPackageName, aclCANNPackageVersion *version) {
  memset(version, 0, sizeof *version);
  snprintf(version->version, sizeof version->version, "%s", setting("LOOKALIKE_CANN", "9.1.0"));
  return 0;
}
aclError aclsysGetVersionStr(char *, char *to) {
  strcpy(to, setting("LOOKALIKE_CANN", "9.1.0"));
  return 0;
}

// An operator without an aclnn function comes here. Success would leave its
// result uninitialised without a word.
aclError aclopCompileAndExecute(const char *name, int, const aclTensorDesc *const *, const aclDataBuffer *const *, int,
                                const aclTensorDesc *const *, aclDataBuffer *const *, const aclopAttr *, aclopEngineType,
                                aclopCompileType, const char *, aclrtStream) {
  fprintf(stderr, "look-alike CANN: %s is not simulated\n", name);
  return kNotSupported;
}

void aclAppLog(aclLogLevel level, const char *, const char *, uint32_t, const char *format, ...) {
  if (!getenv("LOOKALIKE_LOG")) return;
  fprintf(stderr, "[acl log %d] ", static_cast<int>(level));
  va_list arguments;
  va_start(arguments, format);
  vfprintf(stderr, format, arguments);
  va_end(arguments);
  fputc('\n', stderr);
}
}
