"""Names this generation's operators to CANN's loader whenever Python starts.

torch_npu reads ASCEND_CUSTOM_OPP_PATH when its library is loaded, so it has to
be set before any import. LD_LIBRARY_PATH is not touched: the loader of the
system read it when the process began, and a worker would differ from its
parent. What needs it is started by invar exec, or after eval "$(invar env)".
"""

import os
import sys

VENDOR = "@VENDOR@"


def name_operators() -> None:
    """Puts this generation first, in the place of any other of this Python."""
    generation = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
    others = os.path.dirname(generation) + os.sep
    entries = os.environ.get("ASCEND_CUSTOM_OPP_PATH", "").split(":")
    kept = [e for e in entries if e and not e.startswith(others)]
    os.environ["ASCEND_CUSTOM_OPP_PATH"] = ":".join([os.path.join(generation, VENDOR), *kept])


class NoCANN:
    """Fails the import with the way out, where CANN's environment is missing."""

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        """Fails for one name; finds nothing for any other."""
        if name == "batch_invariant_ops" and "ASCEND_HOME_PATH" not in os.environ:
            raise ImportError(
                "batch_invariant_ops needs CANN's environment: start Python with"
                ' invar exec -- python ..., or run eval "$(invar env)" before it',
                name=name,
            )


name_operators()
if "ASCEND_HOME_PATH" not in os.environ:
    sys.meta_path.insert(0, NoCANN())
