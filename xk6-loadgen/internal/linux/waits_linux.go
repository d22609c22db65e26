//gosec:disable G304 -- paths in /proc
package linux

import (
	"maps"
	"os"
)

// mostWaiting is how many threads of a tree are read: a file stays open for each, and a read takes about a microsecond.
const mostWaiting = 256

// ThreadWait reads how long a thread waits for a core.
type ThreadWait struct {
	schedstat *os.File // nil where there is none; the runtime closes one that is no longer used
	last      int64
}

// NewThreadWait begins to read the thread of a folder in /proc, such as /proc/thread-self.
func NewThreadWait(thread string) *ThreadWait {
	w := &ThreadWait{}
	if file, err := os.Open(thread + "/schedstat"); err == nil {
		w.schedstat = file
		w.Read()
	}
	return w
}

// Read is how long the thread has waited since the last call, in nanoseconds, of waits that are over; see RunDelay. A thread that has ended
// has waited for nothing.
func (w *ThreadWait) Read() (nanoseconds int64, known bool) {
	var text [64]byte
	n, _ := w.schedstat.ReadAt(text[:], 0) // Nothing without a file, and of a thread that has ended
	if n == 0 {
		return 0, w.schedstat != nil
	}
	waited, known := RunDelay(text[:n])
	nanoseconds, w.last = waited-w.last, waited
	return nanoseconds, known
}

// Waited is how long the tree's threads have waited for a core, in nanoseconds, each since the first call that knew it. It is not known
// of nil, of more than mostWaiting threads, and where the kernel does not count it.
func (t *ProcessTree) Waited() (nanoseconds int64, known bool) {
	if t == nil || t.threads() > mostWaiting {
		return 0, false
	}
	for _, p := range t.processes {
		for _, task := range p.tasks {
			if t.waits[task] == nil {
				t.waits[task] = NewThreadWait(task)
			}
			waited, isKnown := t.waits[task].Read()
			t.waited += waited
			known = known || isKnown
		}
	}
	return t.waited, known
}

// threads is how many threads of the tree are known.
func (t *ProcessTree) threads() (count int) {
	for _, p := range t.processes {
		count += len(p.tasks)
	}
	return count
}

// forgetWaits forgets the threads that the last scan did not find.
func (t *ProcessTree) forgetWaits() {
	found := map[string]bool{}
	for _, p := range t.processes {
		for _, task := range p.tasks {
			found[task] = true
		}
	}
	maps.DeleteFunc(t.waits, func(task string, _ *ThreadWait) bool { return !found[task] })
}
