package linux

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

const workerVariable = "BAKEOFF_TEST_WORKER"

type worker struct {
	t      *testing.T
	pid    int
	stdin  io.Writer
	stdout *bufio.Scanner
}

func asItself(order string) *exec.Cmd {
	c := exec.Command(os.Args[0], "-test.run=^TestAsWorker$")
	// Under the race detector a program sleeps for a second before it ends.
	c.Env = append(os.Environ(), workerVariable+"="+order, "GORACE=atexit_sleep_ms=0")
	return c
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// startWorker starts one; it waits for a line before it does anything, so that it can be put into a control group.
func startWorker(t *testing.T, group string) *worker {
	t.Helper()
	c := asItself("1")
	stdin, err := c.StdinPipe()
	must(t, err)
	stdout, err := c.StdoutPipe()
	must(t, err)
	must(t, c.Start())
	t.Cleanup(func() {
		stdin.Close()
		c.Wait() //nolint:errcheck // it ends with its input
	})
	w := &worker{t: t, pid: c.Process.Pid, stdin: stdin, stdout: bufio.NewScanner(stdout)}
	if group != "" {
		must(t, os.WriteFile(filepath.Join(group, "cgroup.procs"), []byte(strconv.Itoa(w.pid)), 0))
	}
	w.does("burn 1 100000") // Before the tree is made: not counted
	return w
}

// does returns the CPU time so far of the worker and all children that it has waited for, as the kernel counts it for the worker.
func (w *worker) does(order string) (used int64) {
	w.t.Helper()
	fmt.Fprintln(w.stdin, order)
	for w.stdout.Scan() {
		if figure, found := strings.CutPrefix(w.stdout.Text(), "used "); found {
			used, err := strconv.ParseInt(figure, 10, 64)
			if err != nil {
				w.t.Fatal(err)
			}
			return used
		}
	}
	w.t.Fatal("the worker has ended")
	return 0
}

// TestAsWorker is no test: it is the worker's program. Its orders, with times in microseconds:
//   - burn COUNT TIME: children that work that long, one after the other
//   - nest TIME: a child that works and has a child that works as long
//   - hold TIME: the same; the child stays until "let go", and works as long again
//   - thread: a thread that works until the worker ends
//   - leave TIME: a child that ends, and is waited for at "reap"
func TestAsWorker(t *testing.T) {
	switch os.Getenv(workerVariable) {
	case "":
		t.Skip("no worker")
	case "1":
	default:
		asChild(t, os.Getenv(workerVariable))
		return
	}
	run := func(c *exec.Cmd) {
		must(t, c.Run())
	}
	var kept *exec.Cmd
	var hold io.WriteCloser
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		words := strings.Fields(lines.Text())
		last := words[len(words)-1]
		switch words[0] {
		case "burn":
			count, _ := strconv.Atoi(words[1])
			for range count {
				run(asItself("burn " + last))
			}
		case "nest":
			run(asItself("nest " + last))
		case "hold":
			kept = asItself("hold " + last)
			hold, _ = kept.StdinPipe()
			out, _ := kept.StdoutPipe()
			kept.Start() //nolint:errcheck // the next line fails then
			bufio.NewReader(out).ReadString('\n')
		case "let":
			hold.Close()
			kept.Wait() //nolint:errcheck // its time shows that it ran
		case "thread":
			const more = 50 // than the runtime has: the last one is new
			for n := range more {
				started := make(chan bool)
				go func() {
					runtime.LockOSThread()
					close(started)
					for n == more-1 {
						ProcessCPU()
					}
					select {}
				}()
				<-started
			}
		case "leave":
			kept = asItself("burn " + last)
			kept.Start() //nolint:errcheck // the next line fails then
			unix.Waitid(unix.P_PID, kept.Process.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		case "reap":
			kept.Wait() //nolint:errcheck // its time shows that it ran
		}
		var self, children syscall.Rusage
		syscall.Getrusage(syscall.RUSAGE_SELF, &self)
		syscall.Getrusage(syscall.RUSAGE_CHILDREN, &children)
		fmt.Println("used", self.Utime.Nano()+self.Stime.Nano()+children.Utime.Nano()+children.Stime.Nano())
	}
}

func asChild(t *testing.T, order string) {
	kind, figure, _ := strings.Cut(order, " ")
	micros, err := strconv.Atoi(figure)
	must(t, err)
	burn := func() {
		for end := ProcessCPU() + int64(micros)*1000; ProcessCPU() < end; {
		}
	}
	burn()
	if kind == "nest" || kind == "hold" {
		must(t, asItself("burn "+figure).Run())
	}
	if kind == "hold" {
		fmt.Println()
		io.Copy(io.Discard, os.Stdin) //nolint:errcheck // it ends when it is let go
		burn()
	}
}

// groupsFor are folders of control groups for a worker: "" is the test's own, which has the test in it as well.
func groupsFor(t *testing.T) map[string]string {
	groups := map[string]string{"beside others": ""}
	for _, h := range hierarchies() {
		folder := filepath.Join(h.folder(os.Getpid()), fmt.Sprintf("bakeoff-test-%d", os.Getpid()))
		if err := os.Mkdir(folder, 0o755); err != nil {
			t.Logf("no group of its own: %v", err)
			continue
		}
		t.Cleanup(func() {
			for until := time.Now().Add(time.Second); os.Remove(folder) != nil && time.Now().Before(until); {
				time.Sleep(time.Millisecond)
			}
		})
		groups["in a group of its own: "+h.file] = folder
	}
	return groups
}

// The truth is what the kernel tells the worker of itself and of all that it has waited for.
func TestMemoryIsTheProportionalSetSize(t *testing.T) {
	folder := t.TempDir()
	write := func(text string) {
		t.Helper()
		must(t, os.WriteFile(filepath.Join(folder, "smaps_rollup"), []byte(text), 0o600))
	}
	write("0-1 ---p 00 00:00 0 [rollup]\nRss:  900 kB\nPss:  100 kB\nPss_Anon:  90 kB\nSwap:  70 kB\nSwapPss:  20 kB\nPrivate_Hugetlb:  2048 kB\n")
	gone := filepath.Join(folder, "gone")
	for _, tasks := range [][]string{{folder}, {gone, folder}} {
		if bytes, err := memoryOf(tasks); bytes != 1024*(120+2048) || err != nil {
			t.Errorf("%v: %d bytes, %v", tasks, bytes, err)
		}
	}
	if bytes, err := memoryOf([]string{gone}); bytes != 0 || err != nil {
		t.Errorf("a process that has ended: %d bytes, %v", bytes, err)
	}
	if _, err := memoryOf([]string{t.TempDir()}); err == nil {
		t.Error("a process that may not be read has a figure")
	}
	if bytes := (*ProcessTree)(nil).Memory(); bytes != 0 {
		t.Errorf("no process has %d bytes", bytes)
	}
}

func TestTheCPUTimeOfChildrenCountsOnce(t *testing.T) {
	for name, group := range groupsFor(t) {
		t.Run(name, func(t *testing.T) {
			w := startWorker(t, group)
			from := w.does("nothing")
			tree := NewProcessTree([]int{w.pid, w.pid})
			if hasGroup := tree.group != nil; hasGroup != (group != "") {
				t.Fatalf("a group of its own: %v", hasGroup)
			}
			counted := func(while string, truth int64) {
				t.Helper()
				got := tree.CPU()
				// Ticks of 10 ms, of user and of system time.
				if allowed := 0.03*float64(truth) + 20e6; math.Abs(float64(got-truth)) > allowed {
					t.Errorf("%s: %.1f ms of %.1f", while, float64(got)/1e6, float64(truth)/1e6)
				}
			}
			truth := w.does("burn 200 1500") - from
			if truth < 300e6 {
				t.Fatalf("200 children of 1.5 ms used %d ns", truth)
			}
			counted("short-lived children", truth)
			counted("short-lived children", w.does("nest 50000")-from)

			before := w.does("hold 100000") - from
			tree.scan()
			counted("a child that runs", before+200e6)
			counted("a child that ran", w.does("let go")-from)

			before = w.does("leave 100000") - from
			tree.scan()
			counted("a child that nobody has waited for yet", before+100e6)
			counted("a child that was waited for", w.does("reap")-from)
			tree.scan()
			counted("after all", w.does("burn 20 1500")-from)
		})
	}
}

func TestAProcessOfTheTreesUserCountsWithoutItsParents(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root to start another user's processes")
	}
	// The subshell ends at once, so that its child belongs to init.
	child := exec.Command("sh", "-c", "ulimit -t 10; read go; (while :; do :; done & echo $!); read end")
	child.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 54321, Gid: 54321}}
	input, _ := child.StdinPipe()
	output, _ := child.StdoutPipe()
	must(t, child.Start())
	defer child.Wait() //nolint:errcheck // its input ends
	defer input.Close()
	tree := NewProcessTree([]int{child.Process.Pid})
	fmt.Fprintln(input, "go")
	orphan := 0
	if _, err := fmt.Fscan(output, &orphan); err != nil {
		t.Fatal(err)
	}
	defer syscall.Kill(orphan, syscall.SIGKILL) //nolint:errcheck // it may have ended
	for processCPU(orphan) < 50e6 {
		time.Sleep(time.Millisecond)
	}
	tree.scan()
	if got := tree.CPU(); got < 50e6 {
		t.Errorf("%d ns of at least 50 ms", got)
	}
}

func TestAThreadThatBeganAfterTheScanRuns(t *testing.T) {
	w := startWorker(t, "")
	tree := NewProcessTree([]int{w.pid})
	p := tree.processes[w.pid]
	before := p.tasks
	w.does("thread")
	tree.FindThreads()
	// Go's own threads run now and then, so those of before are left out.
	p.tasks = slices.DeleteFunc(p.tasks, func(task string) bool { return slices.Contains(before, task) })
	waitUntil(t, tree.IsRunning)
}

func waitUntil(t *testing.T, condition func() bool) {
	t.Helper()
	for end := time.Now().Add(scanEvery / 2); !condition(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("it did not come to that")
		}
	}
}
