//gosec:disable G115 G304 -- the numbers are small, paths in /proc and /run
package linux

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// ProcessTree reads the CPU time of processes and their descendants.
type ProcessTree struct {
	roots    []int
	used     map[int]int64 // each process's CPU time at the last reading
	tasks    []string      // tasks are their threads' folders in /proc
	total    int64
	lookedAt time.Time
}

// lookEvery: a descendant that begins and ends in between is missed.
const lookEvery = time.Second

func NewProcessTree(roots []int) *ProcessTree {
	if len(roots) == 0 {
		return nil
	}
	t := &ProcessTree{roots: roots, used: map[int]int64{}}
	t.look()
	for pid := range t.used {
		t.used[pid], _ = processCPU(pid)
	}
	return t
}

// CPU is the CPU time since the tree was made, in nanoseconds; 0 of nil. A running thread's may be a kernel tick (1 to 10 ms) behind.
func (t *ProcessTree) CPU() int64 {
	if t == nil {
		return 0
	}
	if time.Since(t.lookedAt) > lookEvery {
		t.look()
	}
	for pid, before := range t.used {
		now, there := processCPU(pid)
		if !there {
			delete(t.used, pid)
			continue
		}
		t.used[pid] = now
		t.total += max(0, now-before)
	}
	return t.total
}

// RunDelay is the longest wait of one of their threads for a core, in nanoseconds.
func (t *ProcessTree) RunDelay() (nanoseconds int64) {
	for _, task := range t.tasks {
		nanoseconds = max(nanoseconds, TaskRunDelay(task))
	}
	return nanoseconds
}

func (t *ProcessTree) IsRunning() bool {
	return slices.ContainsFunc(t.tasks, func(task string) bool {
		stat, _ := os.ReadFile(task + "/stat")
		_, state, _ := strings.Cut(string(stat), ") ")
		return strings.HasPrefix(state, "R")
	})
}

// TaskRunDelay is how long a thread, by its folder in /proc, has waited for a core, in nanoseconds (sched-stats.rst of the kernel).
func TaskRunDelay(task string) int64 {
	text, _ := os.ReadFile(task + "/schedstat")
	fields := append(strings.Fields(string(text)), "", "")
	n, _ := strconv.ParseInt(fields[1], 10, 64)
	return n
}

// Steal is the time in nanoseconds that the host took of these cores, in ticks of 10 ms (proc(5), /proc/stat).
func Steal(cores []int) (nanoseconds int64) {
	text, _ := os.ReadFile("/proc/stat")
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		if len(fields) < 9 || !strings.HasPrefix(fields[0], "cpu") {
			continue
		}
		core, err := strconv.Atoi(fields[0][3:])
		if err == nil && slices.Contains(cores, core) {
			ticks, _ := strconv.ParseInt(fields[8], 10, 64)
			nanoseconds += ticks * 1e7
		}
	}
	return nanoseconds
}

func (t *ProcessTree) look() {
	t.lookedAt, t.tasks = time.Now(), nil
	seen := map[int]bool{}
	var add func(pid int)
	add = func(pid int) {
		if seen[pid] {
			return
		}
		seen[pid] = true
		if _, known := t.used[pid]; !known {
			t.used[pid] = 0
		}
		tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*", pid))
		t.tasks = append(t.tasks, tasks...)
		for _, task := range tasks {
			children, _ := os.ReadFile(task + "/children")
			for _, child := range strings.Fields(string(children)) {
				if n, err := strconv.Atoi(child); err == nil {
					add(n)
				}
			}
		}
	}
	for _, root := range t.roots {
		add(root)
	}
}

// processCPU is the CPU time of all threads of a process, ended ones too (clock_getcpuclockid(3)).
func processCPU(pid int) (nanoseconds int64, there bool) {
	var time unix.Timespec
	if unix.ClockGettime(int32(^pid<<3|2), &time) != nil {
		return 0, false
	}
	return time.Nano(), true
}
