package link

import (
	"os"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// KeepPrecedence lets the nice value that the process was started with count against all others. Where each session shares the
// cores with the others as a group (sched_autogroup), it counts only within its own, and the session as a whole has one too.
// What fails leaves the link later than it could be, which its figures show.
func KeepPrecedence() {
	raw, err := syscall.Getpriority(syscall.PRIO_PROCESS, 0)
	// The kernel gives 20 less the nice value.
	nice := 20 - raw
	if err != nil || nice == 0 {
		return
	}
	// A session of its own, unless it leads one already: the others in it are not to be changed.
	if session, _ := unix.Getsid(0); session != os.Getpid() {
		if _, err := syscall.Setsid(); err != nil {
			return
		}
	}
	if file, err := os.OpenFile("/proc/self/autogroup", os.O_WRONLY, 0); err == nil {
		file.WriteString(strconv.Itoa(nice)) //nolint:errcheck // see above
		file.Close()                         //nolint:errcheck // see above
	}
}
