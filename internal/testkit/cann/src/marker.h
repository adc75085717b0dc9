// Names this file's library as part of the look-alike. A probe looks for the
// symbol and labels everything that it measures on such a device as simulated.
#pragma once
extern "C" __attribute__((visibility("default"), used)) const char *aclLookAlikeDevice(void) {
  return "simulated device in host memory";
}
