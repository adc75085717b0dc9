package run

import (
	"os"
	"os/exec"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Confine bounds what a process and its children can do to this machine. What
// the kernel does not offer is left out, and Confined says so: the caller
// looks at what was written all the same.
type Confine struct {
	Write   []string // the only files and folders that they can change
	Network bool     // other machines may be reached
}

// Confined says what the kernel enforced.
type Confined struct {
	Files   bool `json:"files"`   // writes elsewhere were refused
	Network bool `json:"network"` // no other machine could be reached
}

// startConfined starts c from a thread of its own that gave up rights for
// good; a child has those of the thread that made it. The thread ends with
// this function, since it is never unlocked.
func startConfined(c *exec.Cmd, conf Confine) (Confined, error) {
	type result struct {
		conf Confined
		err  error
	}
	done := make(chan result)
	go func() {
		runtime.LockOSThread()
		var r result
		// A new network namespace has no way out, not even to loopback.
		r.conf.Network = !conf.Network && unix.Unshare(unix.CLONE_NEWNET) == nil
		var tcp bool
		if r.conf.Files, tcp = landlock(conf); !r.conf.Files {
			r.conf.Files = readOnly(conf)
		}
		r.conf.Network = r.conf.Network || tcp
		r.err = c.Start()
		done <- r
	}()
	r := <-done
	return r.conf, r.err
}

// changes are the rights over files that change something, as of version 1 of
// the interface; later versions know more.
const changes = unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_REMOVE_DIR | unix.LANDLOCK_ACCESS_FS_REMOVE_FILE |
	unix.LANDLOCK_ACCESS_FS_MAKE_CHAR | unix.LANDLOCK_ACCESS_FS_MAKE_DIR | unix.LANDLOCK_ACCESS_FS_MAKE_REG |
	unix.LANDLOCK_ACCESS_FS_MAKE_SOCK | unix.LANDLOCK_ACCESS_FS_MAKE_FIFO | unix.LANDLOCK_ACCESS_FS_MAKE_BLOCK |
	unix.LANDLOCK_ACCESS_FS_MAKE_SYM

// ofFiles are those of changes that a rule about a file, not a folder, can have.
const ofFiles = unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_TRUNCATE

// landlock lets this thread change what lies below the paths only and, unless
// the network is allowed, connect nowhere where the kernel knows how.
func landlock(conf Confine) (files, tcp bool) {
	v, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if errno != 0 || v < 1 {
		return false, false
	}
	attr := unix.LandlockRulesetAttr{Handled_access_fs: changes}
	size := unsafe.Offsetof(attr.Handled_access_net)
	if v >= 2 {
		attr.Handled_access_fs |= unix.LANDLOCK_ACCESS_FS_REFER
	}
	if v >= 3 {
		attr.Handled_access_fs |= unix.LANDLOCK_ACCESS_FS_TRUNCATE
	}
	if v >= 4 && !conf.Network {
		attr.Handled_access_net, tcp = unix.LANDLOCK_ACCESS_NET_BIND_TCP|unix.LANDLOCK_ACCESS_NET_CONNECT_TCP, true
		size = unsafe.Offsetof(attr.Scoped)
	}
	fd, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&attr)), size, 0)
	if errno != 0 {
		return false, false
	}
	defer unix.Close(int(fd))
	// /dev/null and its neighbours are written to, never made.
	for _, p := range append([]string{"/dev"}, conf.Write...) {
		rights := attr.Handled_access_fs
		if st, err := os.Stat(p); err != nil || !st.IsDir() || p == "/dev" {
			rights &= ofFiles
		}
		if !allow(int(fd), p, rights) {
			return false, false
		}
	}
	if unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != nil {
		return false, false
	}
	_, _, errno = unix.Syscall(unix.SYS_LANDLOCK_RESTRICT_SELF, fd, 0, 0)
	return errno == 0, errno == 0 && tcp
}

func allow(ruleset int, path string, rights uint64) bool {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	rule := unix.LandlockPathBeneathAttr{Allowed_access: rights, Parent_fd: int32(fd)}
	_, _, errno := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, uintptr(ruleset), unix.LANDLOCK_RULE_PATH_BENEATH, uintptr(unsafe.Pointer(&rule)), 0, 0, 0)
	return errno == 0
}
