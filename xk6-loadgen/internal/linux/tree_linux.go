//gosec:disable G115 G304 -- the numbers are small, paths in /proc and of control groups
package linux

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// ProcessTree reads the CPU time of processes and of all their descendants, even if these begin and end between two readings. If the processes
// have a control group to themselves, its counter has that. Otherwise the kernel adds a child's time to the parent that waits for it, and
// if they have a user to themselves, all of its processes count.
type ProcessTree struct {
	roots     []int
	user      int // user is that of the processes if they have it to themselves, so that all of its processes count; 0: they do not
	processes map[int]*process
	scannedAt time.Time
	group     *controlGroup // nil if others are in it
	waits     map[string]*ThreadWait
	waited    int64 // waited is the threads' wait for a core, see Waited
	total     int64 // total is the CPU time of the processes since the tree was made; 0 with a group
}

// process is a process of a tree; its times are in nanoseconds.
type process struct {
	parent  int
	tasks   []string // tasks are its known threads' folders in /proc; threads is how many it has.
	threads int
	used    int64 // used is its CPU time at the last reading, without its children's
	// reaped is the CPU time of its descendants that were waited for, rounded down to two ticks of 10 ms at most.
	reaped int64
	// counted is the part of reaped that is in the total, as the time of a process of the tree or as growth of reaped, or was before it.
	counted int64
	waits   bool // it has waited for a child, so that reaped is read
	gone    bool
}

// scanEvery is how often the tree is scanned for new processes and threads.
const scanEvery = time.Second

// NewProcessTree begins to count the CPU time of these processes and their descendants; nil without any.
func NewProcessTree(roots []int) *ProcessTree {
	if len(roots) == 0 {
		return nil
	}
	t := &ProcessTree{
		roots: roots, user: ownUser(roots),
		processes: map[int]*process{}, waits: map[string]*ThreadWait{},
	}
	t.scan()
	for pid, p := range t.processes {
		p.used, p.counted = processCPU(pid), p.reaped
	}
	t.group = ownGroup(t.processes)
	return t
}

// CPU is the CPU time since the tree was made, in nanoseconds; 0 of nil. A running thread's may be a kernel tick (1 to 10 ms) behind.
// Without a control group, the time of descendants that lived between two scans may be two more ticks of 10 ms behind. It is missing if no
// process of the tree has waited for them.
func (t *ProcessTree) CPU() int64 {
	if t == nil {
		return 0
	}
	if time.Since(t.scannedAt) > scanEvery {
		t.scan()
	}
	if t.group != nil {
		return t.group.read() - t.group.from
	}
	t.read()
	return t.total
}

// LivingCPU is the CPU time of the tree's processes that are alive, in nanoseconds, exact also while they run; 0 of nil.
func (t *ProcessTree) LivingCPU() (ns int64) {
	if t == nil {
		return 0
	}
	for pid := range t.processes {
		ns += processCPU(pid)
	}
	return ns
}

// read adds what the processes have used since the last reading.
func (t *ProcessTree) read() {
	// First: a child that ends between the two readings is missing in this one, and does not count twice.
	for pid, p := range t.processes {
		if p.waits {
			p.readStat(pid)
		}
	}
	ended := false
	for pid, p := range t.processes {
		now := processCPU(pid)
		if now == 0 {
			p.gone, ended = true, true
			continue
		}
		t.total += max(0, now-p.used)
		p.used = now
	}
	if ended {
		t.forget()
	}
	for _, p := range t.processes {
		if p.reaped > p.counted {
			t.total += p.reaped - p.counted
			p.counted = p.reaped
		}
	}
}

// forget removes the processes that have ended. Whoever waited for one has its time in reaped, and it is counted already.
func (t *ProcessTree) forget() {
	for _, p := range t.processes {
		if !p.gone {
			continue
		}
		waiter := t.processes[p.parent]
		for waiter != nil && waiter.gone {
			waiter = t.processes[waiter.parent]
		}
		if waiter != nil {
			waiter.counted += p.used + p.counted
		}
	}
	for pid, p := range t.processes {
		if p.gone {
			delete(t.processes, pid)
		}
	}
}

// readStat reads what /proc/PID/stat has of a process. One that has ended keeps its values.
func (p *process) readStat(pid int) {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:])) // Its name may have spaces and brackets
	if len(fields) < 18 {
		return
	}
	number := func(field int) int64 { // As proc(5) numbers them, of which the first two are cut off
		n, _ := strconv.ParseInt(fields[field-3], 10, 64)
		return n
	}
	p.parent, p.threads = int(number(4)), int(number(20))
	p.waits = number(11) > 0                   // cminflt: no child runs without page faults
	p.reaped = (number(16) + number(17)) * 1e7 // cutime and cstime, in ticks of 10 ms
}

// FindThreads finds the threads that the known processes have begun since the last scan, as some servers do for each connection. It reads a
// file for each process, and more only where the number of threads has changed.
func (t *ProcessTree) FindThreads() {
	if t == nil {
		return
	}
	for pid, p := range t.processes {
		if p.readStat(pid); p.threads != len(p.tasks) {
			p.tasks = tasksOf(pid)
		}
	}
}

// IsRunning tells whether a known thread of the tree runs, or waits for a core only (state R of proc(5)).
func (t *ProcessTree) IsRunning() bool {
	for _, p := range t.processes {
		if slices.ContainsFunc(p.tasks, isRunning) {
			return true
		}
	}
	return false
}

// isRunning tells it of a thread, by its folder in /proc.
func isRunning(task string) bool {
	stat, _ := os.ReadFile(task + "/stat")
	_, state, _ := strings.Cut(string(stat), ") ")
	return strings.HasPrefix(state, "R")
}

// tasksOf are the folders in /proc of a process's threads.
func tasksOf(pid int) (tasks []string) {
	tasks, _ = filepath.Glob(fmt.Sprintf("/proc/%d/task/*", pid))
	return tasks
}

func (t *ProcessTree) scan() {
	t.scannedAt = time.Now()
	t.walk(func(pid int, tasks []string) {
		if t.processes[pid] == nil {
			t.processes[pid] = &process{}
		}
		t.processes[pid].readStat(pid)
		t.processes[pid].tasks = tasks
	})
	t.forgetWaits()
}

// walk visits each process that there is now once, with its threads' folders in /proc.
func (t *ProcessTree) walk(visit func(pid int, tasks []string)) {
	seen := map[int]bool{}
	var add func(pid int)
	add = func(pid int) {
		if seen[pid] {
			return
		}
		seen[pid] = true
		tasks := tasksOf(pid)
		visit(pid, tasks)
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
	for _, pid := range processesOf(t.user) {
		add(pid)
	}
}

// ownUser is the user that the processes have to themselves: another than this process and root; 0: there is none.
func ownUser(pids []int) int {
	user := userOf(pids[0])
	others := func(pid int) bool { return userOf(pid) != user }
	if user <= 0 || user == os.Geteuid() || slices.ContainsFunc(pids, others) {
		return 0
	}
	return user
}

// processesOf are the processes of a user, those whose parents have ended among them; none of user 0.
func processesOf(user int) (pids []int) {
	if user == 0 {
		return nil
	}
	folders, _ := os.ReadDir("/proc")
	for _, folder := range folders {
		if pid, err := strconv.Atoi(folder.Name()); err == nil && userOf(pid) == user {
			pids = append(pids, pid)
		}
	}
	return pids
}

// userOf is the user of a process; -1 if it has ended.
func userOf(pid int) int {
	var stat unix.Stat_t
	if unix.Stat(fmt.Sprintf("/proc/%d", pid), &stat) != nil {
		return -1
	}
	return int(stat.Uid)
}

// Memory is the proportional set size (PSS) of the processes in bytes, in which a page that n processes share counts 1/n for each, with
// swapped and huge pages; 0: one may not be read. It may be called while others read the tree.
func (t *ProcessTree) Memory() (bytes int64) {
	if t == nil {
		return 0
	}
	isKnown := true
	t.walk(func(pid int, tasks []string) {
		if len(tasks) == 0 {
			return // It has ended
		}
		used, err := memoryOf(tasks)
		isKnown = isKnown && err == nil
		bytes += used
	})
	if !isKnown {
		return 0
	}
	return bytes
}

var memoryLine = regexp.MustCompile(`(?m)^(?:Pss|SwapPss|Private_Hugetlb): +(\d+) kB$`)

// memoryOf reads what a process uses from the folders of its threads in /proc: that of the first one which lives. It is nothing where none does.
func memoryOf(tasks []string) (bytes int64, err error) {
	var text []byte
	for _, task := range tasks {
		text, err = os.ReadFile(task + "/smaps_rollup")
		if _, gone := os.Stat(task); !errors.Is(err, unix.ESRCH) && !errors.Is(gone, os.ErrNotExist) {
			break
		}
		err = nil
	}
	for _, line := range memoryLine.FindAllSubmatch(text, -1) {
		kilobytes, _ := strconv.ParseInt(string(line[1]), 10, 64)
		bytes += kilobytes << 10
	}
	return bytes, err
}

// processCPU is the CPU time of a process, with its ended threads (clock_getcpuclockid(3)); 0 once its parent has waited for its end.
func processCPU(pid int) int64 { return clock(int32(^pid<<3 | 2)) }
