package linux

import (
	"os"
	"os/exec"
	"runtime"
	"testing"
	"time"
)

func startBusy(t *testing.T, core int) int {
	t.Helper()
	c := exec.Command("sh", "-c", "while :; do :; done")
	onOneCore := make(chan error)
	go OnOwnThread(func() {
		if err := UseCores([]int{core}); err != nil {
			onOneCore <- err
			return
		}
		onOneCore <- c.Start()
	})
	must(t, <-onOneCore)
	t.Cleanup(func() {
		c.Process.Kill() //nolint:errcheck // it runs until then
		c.Wait()         //nolint:errcheck // it was killed
	})
	return c.Process.Pid
}

func TestTheWaitOfATreeIsWhatItsThreadsAreDenied(t *testing.T) {
	core := Cores()[0]
	tree := NewProcessTree([]int{startBusy(t, core)})
	if _, known := tree.Waited(); !known {
		t.Skip("SKIPPED: the kernel does not count waits")
	}
	startBusy(t, core)
	var used, waited int64
	for began := time.Now(); used < 2e8 && time.Since(began) < time.Minute; {
		Sleep(int64(10 * time.Millisecond))
		waited, _ = tree.Waited()
		used = tree.CPU()
	}
	// Two that never sleep have the core half of the time each, or less beside others.
	if waited < used*8/10 {
		t.Errorf("waited %d ns while it used %d ns", waited, used)
	}
}

func TestTheWaitOfNothingIsNotKnown(t *testing.T) {
	var none *ProcessTree
	if _, known := none.Waited(); known {
		t.Error("that of no tree is known")
	}
	if _, known := NewThreadWait(t.TempDir()).Read(); known {
		t.Error("that of a thread without a file is known")
	}
}

func TestAThreadThatHasEndedIsForgotten(t *testing.T) {
	begun, end := make(chan struct{}), make(chan struct{})
	go OnOwnThread(func() { close(begun); <-end })
	<-begun
	tree := NewProcessTree([]int{os.Getpid()})
	tree.Waited()
	before := len(tree.waits)
	close(end)
	for began := time.Now(); len(tree.waits) >= before && time.Since(began) < 10*time.Second; runtime.Gosched() {
		Sleep(int64(time.Millisecond))
		tree.scan()
	}
	if len(tree.waits) >= before {
		t.Errorf("%d threads are read, and %d before one ended", len(tree.waits), before)
	}
}
