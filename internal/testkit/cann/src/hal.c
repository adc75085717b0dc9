// libascend_hal of the look-alike: the driver's library. The one in devlib has
// no device, as on a machine that only builds; the driver's own counts them.
#include <stdlib.h>

int drvGetDevNum(unsigned *count) {
#ifdef DEVLIB
  *count = 0;
#else
  const char *devices = getenv("LOOKALIKE_DEVICES");
  *count = devices ? (unsigned)atoi(devices) : 1;
#endif
  return 0;
}
