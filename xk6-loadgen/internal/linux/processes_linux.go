//gosec:disable G103 G104 G115 G304 -- the kernel takes addresses, an error changes nothing there, the numbers are small, paths in /proc
package linux

import (
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// RunDelay is how long a thread has waited for a core, in nanoseconds, from its schedstat (sched-stats.rst of the kernel). Some kernels have no such file, or only zeros in it.
func RunDelay(schedstat []byte) (nanoseconds int64, known bool) {
	var figures [3]int64
	field := 0
	for _, c := range schedstat {
		if c == ' ' {
			field++
		} else if field < len(figures) && '0' <= c && c <= '9' {
			figures[field] = figures[field]*10 + int64(c-'0')
		}
	}
	return figures[1], figures[2] > 0
}

// CoreTime is what some cores have done since the machine started, in nanoseconds that are counted in ticks of 10 ms. Steal is the
// host's for others; time of interrupts may also be in Processes (proc(5), /proc/stat).
type CoreTime struct{ Processes, Interrupts, Steal int64 }

// CoreTimes reads /proc/stat once, for several sets of cores.
func CoreTimes(sets ...[]int) []CoreTime {
	times := make([]CoreTime, len(sets))
	text, _ := os.ReadFile("/proc/stat")
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		if len(fields) < 9 || !strings.HasPrefix(fields[0], "cpu") {
			break // The lines after those of the cores may be long
		}
		core, err := strconv.Atoi(fields[0][3:])
		if err != nil {
			continue
		}
		// user, nice, system, idle, iowait, irq, softirq, steal
		var ticks [8]int64
		for i := range ticks {
			ticks[i], _ = strconv.ParseInt(fields[1+i], 10, 64)
		}
		for i, cores := range sets {
			if slices.Contains(cores, core) {
				times[i].Processes += (ticks[0] + ticks[1] + ticks[2]) * 1e7
				times[i].Interrupts += (ticks[5] + ticks[6]) * 1e7
				times[i].Steal += ticks[7] * 1e7
			}
		}
	}
	return times
}

// OnOwnThread runs f on a thread that ends with it, so that f may change the thread.
func OnOwnThread(f func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread()
		if syscall.Gettid() == syscall.Getpid() {
			// The main thread cannot end, and its namespaces are the process's. While this goroutine keeps it, f gets another thread.
			OnOwnThread(f)
			runtime.UnlockOSThread()
			return
		}
		f()
	}()
	<-done
}

// Cores are the numbers of the cores that the calling thread may run on; nil if not known.
func Cores() []int { return CoresOf(0) }

// CoresOf are the cores that a process's main thread may run on, for 0 the calling thread; nil if not known.
func CoresOf(pid int) (allowed []int) {
	var set unix.CPUSet
	unix.SchedGetaffinity(pid, &set) //nolint:errcheck // the set is empty then
	for core, left := 0, set.Count(); left > 0; core++ {
		if set.IsSet(core) {
			allowed = append(allowed, core)
			left--
		}
	}
	return allowed
}

// UseCores binds the calling thread to these cores. None leaves it as it is.
func UseCores(cores []int) error {
	if len(cores) == 0 {
		return nil
	}
	set := unix.NewCPUSet(slices.Max(cores) + 1)
	for _, core := range cores {
		set.Set(core)
	}
	return unix.SchedSetaffinityDynamic(0, set)
}

// SetPolicy: with SCHED_BATCH a server on the same core is not interrupted at each response, which saves a third of a request's CPU.
func SetPolicy(thread int, policy uintptr) {
	priority := int32(0)
	syscall.RawSyscall(syscall.SYS_SCHED_SETSCHEDULER, uintptr(thread), policy, uintptr(unsafe.Pointer(&priority)))
}

// SetPolicies sets the policy of all threads, which those that they make inherit.
func SetPolicies(policy uintptr) {
	threads, _ := os.ReadDir("/proc/self/task")
	for _, entry := range threads {
		thread, _ := strconv.Atoi(entry.Name())
		SetPolicy(thread, policy)
	}
}

// SetTimerSlack lets the calling thread's waits end on time: by default the kernel may add 50 µs.
func SetTimerSlack() {
	unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0) //nolint:errcheck // without it requests leave a little later, which figures show
}

// Sleep blocks the thread unseen by the Go scheduler: more exact than time.Sleep, but no other goroutine gets the processor.
func Sleep(nanoseconds int64) {
	time := syscall.NsecToTimespec(nanoseconds)
	syscall.RawSyscall(syscall.SYS_NANOSLEEP, uintptr(unsafe.Pointer(&time)), 0, 0)
}

// Monotonic is CLOCK_MONOTONIC in nanoseconds, the same for all processes of a machine.
func Monotonic() int64 { return clock(unix.CLOCK_MONOTONIC) }

// ProcessCPU is the CPU time of all threads of this process, in nanoseconds.
func ProcessCPU() int64 { return clock(unix.CLOCK_PROCESS_CPUTIME_ID) }

// ThreadCPU is the CPU time of a thread of this process, in nanoseconds.
func ThreadCPU(thread int) int64 {
	// As in pthread_getcpuclockid: the complement of the thread, a bit for one thread alone (4), and the clock (2).
	return clock(int32(^thread<<3 | 4 | 2))
}

// clock reads a clock of clock_gettime(2), in nanoseconds; 0 if it is gone, as those of processes that have ended.
func clock(id int32) int64 {
	var time unix.Timespec
	unix.ClockGettime(id, &time) //nolint:errcheck // it stays 0 then
	return time.Nano()
}

// SetShortSlice asks for time slices of 100 µs (Linux 6.12), so that a thread that sleeps often gets its core back sooner.
func SetShortSlice() {
	const slice = uint64(100 * time.Microsecond)
	attributes, err := unix.SchedGetAttr(0, 0)
	if err != nil {
		return
	}
	attributes.Runtime = slice
	unix.SchedSetAttr(0, attributes, 0) //nolint:errcheck // without it the thread only runs later
}
