package linux

import (
	"runtime"
	"syscall"
)

// OnOwnThread runs f on a thread that ends with it: whatever f does to the thread, nothing else runs there later.
func OnOwnThread(f func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread()
		if syscall.Gettid() == syscall.Getpid() {
			// The main thread cannot end, and what it is in, the process is taken to be in. While this goroutine keeps it,
			// another one gets another thread.
			OnOwnThread(f)
			runtime.UnlockOSThread()
			return
		}
		f()
	}()
	<-done
}
