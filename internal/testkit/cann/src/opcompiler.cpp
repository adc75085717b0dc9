// libacl_op_compiler of the look-alike: options that are kept and never used.
#include <cstdlib>

#define ACL_FUNC_VISIBILITY __attribute__((visibility("default")))
#include "acl/acl.h"
#include "acl/acl_op_compiler.h"

namespace {
int64_t options[16];
int64_t &option(aclSysParamOpt name) { return options[static_cast<int>(name) & 15]; }
}  // namespace

extern "C" {
aclError aclSetCompileopt(aclCompileOpt, const char *) { return 0; }
size_t aclGetCompileoptSize(aclCompileOpt) { return 8; }
aclError aclGetCompileopt(aclCompileOpt, char *value, size_t room) {
  if (room) value[0] = 0;
  return 0;
}
aclError aclrtSetSysParamOpt(aclSysParamOpt name, int64_t value) {
  option(name) = value;
  return 0;
}
aclError aclrtCtxSetSysParamOpt(aclSysParamOpt name, int64_t value) { return aclrtSetSysParamOpt(name, value); }
aclError aclrtGetSysParamOpt(aclSysParamOpt name, int64_t *value) {
  *value = option(name);
  return 0;
}
aclError aclrtCtxGetSysParamOpt(aclSysParamOpt name, int64_t *value) { return aclrtGetSysParamOpt(name, value); }
}
