package run

import (
	"golang.org/x/sys/unix"
)

// readOnly lets this thread change what lies below the paths only, by a mount
// namespace of its own in which everything else is mounted read-only: for
// kernels without Landlock. It needs the right to mount, as root has it in most
// containers that build; without it nothing is changed and it is false.
func readOnly(conf Confine) bool {
	if unix.Unshare(unix.CLONE_NEWNS) != nil {
		return false
	}
	// From here on this thread has mounts that nobody else sees.
	if unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, "") != nil {
		return false
	}
	writable, fixed := &unix.MountAttr{Attr_clr: unix.MOUNT_ATTR_RDONLY}, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY}
	for _, p := range conf.Write {
		if unix.Mount(p, p, "", unix.MS_BIND|unix.MS_REC, "") != nil {
			return false
		}
		if unix.MountSetattr(-1, p, 0, writable) != nil { // a kernel before 5.12: nothing is read-only yet
			return false
		}
	}
	if unix.MountSetattr(-1, "/", unix.AT_RECURSIVE, fixed) != nil {
		return false
	}
	done := true
	for _, p := range conf.Write {
		done = unix.MountSetattr(-1, p, 0, writable) == nil && done
	}
	// Devices can be written to all the same; what is made in /dev cannot, where
	// this fails.
	_ = unix.MountSetattr(-1, "/dev", 0, writable)
	return done
}
