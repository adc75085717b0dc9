// libhccl of the look-alike: nothing is distributed.
int HcclSetConfig(int config, long value) {
  (void)config, (void)value;
  return 0;
}
