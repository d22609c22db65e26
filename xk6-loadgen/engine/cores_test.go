package engine

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"bakeoff.invalid/OWNER/bakeoff/xk6-loadgen/internal/linux"
)

func TestNoLoopSharesACoreWithAnother(t *testing.T) {
	for _, test := range []struct {
		allowed []int
		loops   int
		want    [][]int
	}{
		{[]int{0}, 1, [][]int{nil}},
		{[]int{0, 1, 2}, 1, [][]int{nil}},
		{[]int{4, 6}, 2, [][]int{{4}, {6}}},
		{[]int{0, 1, 2, 3}, 2, [][]int{{0, 2}, {1, 3}}},
		{[]int{1, 3, 8}, 2, [][]int{{1, 8}, {3}}},
		// Too few cores, or none that are known.
		{[]int{0, 1}, 3, [][]int{nil, nil, nil}},
		{nil, 2, [][]int{nil, nil}},
	} {
		for number, want := range test.want {
			if got := coresOf(test.allowed, test.loops, number); !slices.Equal(got, want) {
				t.Errorf("loop %d of %d on %v has %v, want %v", number, test.loops, test.allowed, got, want)
			}
		}
	}
}

func threadsByCores(t *testing.T) map[string]int {
	t.Helper()
	files, err := filepath.Glob("/proc/self/task/*/status")
	must(t, err)
	counts := map[string]int{}
	for _, file := range files {
		status, err := os.ReadFile(file)
		if err != nil {
			continue // It has ended.
		}
		_, after, _ := strings.Cut(string(status), "Cpus_allowed_list:")
		cores, _, _ := strings.Cut(after, "\n")
		counts[strings.TrimSpace(cores)]++
	}
	return counts
}

func TestLoopsHaveCoresOfTheirOwnAndNothingElseDoes(t *testing.T) {
	allowed := linux.Cores()
	if len(allowed) < 2 {
		t.Skip("SKIPPED: there is one core")
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	// Those of an earlier test may still be ending.
	waitFor(t, func() bool { return len(threadsByCores(t)) == 1 })
	for range 3 {
		s := serve(t, always(ok))
		o := options(s.url)
		o.Threads, o.Connections, o.Requests = len(allowed), 4*len(allowed), 100_000_000
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan struct{})
		go func() {
			defer close(done)
			loadWithin(t, ctx, o)
		}()
		waitFor(t, func() bool { return s.requests.Load() > 1000 })
		// New threads must not have a loop's cores, whoever asks for them: these goroutines each need one.
		release := make(chan struct{})
		for range 8 {
			go func() { runtime.LockOSThread(); <-release; runtime.UnlockOSThread() }()
		}
		during := threadsByCores(t)
		for _, core := range allowed {
			if n := during[fmt.Sprint(core)]; n != 1 {
				t.Errorf("%d threads have core %d to themselves: %v", n, core, during)
			}
		}
		if len(during) != 1+len(allowed) {
			t.Errorf("threads by cores: %v", during)
		}
		close(release)
		cancel()
		<-done
	}
	waitFor(t, func() bool { return len(threadsByCores(t)) == 1 })
}

func TestTheQuotaSharesNoCacheLineWithWhatEveryTurnReads(t *testing.T) {
	var s shared
	end := unsafe.Offsetof(s.stop) + unsafe.Sizeof(s.stop)
	if from := unsafe.Offsetof(s.quota); from < end+128 {
		t.Errorf("the quota is at %d, what every turn reads ends at %d", from, end)
	}
	if after := unsafe.Offsetof(s.intervals); after < unsafe.Offsetof(s.quota)+128 {
		t.Errorf("what follows the quota is at %d", after)
	}
}
