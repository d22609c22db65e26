package engine

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// newNamespace makes a network namespace in which loopback is up, and returns its path, which is there until the test's end.
// Where the kernel forbids that the test is skipped.
func newNamespace(t *testing.T) string {
	t.Helper()
	path, end := make(chan string), make(chan struct{})
	var err error
	go func() {
		// The thread holds the namespace, and ends with this goroutine.
		runtime.LockOSThread()
		if err = unix.Unshare(unix.CLONE_NEWNET); err == nil {
			err = loopbackUp()
		}
		path <- fmt.Sprintf("/proc/self/task/%d/ns/net", unix.Gettid())
		<-end
	}()
	p := <-path
	t.Cleanup(func() { close(end) })
	if err != nil {
		t.Skipf("SKIPPED: no network namespace can be made here: %v", err)
	}
	return p
}

func loopbackUp() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	request, err := unix.NewIfreq("lo")
	if err == nil {
		request.SetUint16(unix.IFF_UP)
		err = unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, request)
	}
	return err
}

func within(t *testing.T, path string, f func()) {
	t.Helper()
	n, err := openNamespace(path)
	must(t, err)
	defer n.close()
	if err := n.run(func() error { f(); return nil }); err != nil {
		t.Fatal(err)
	}
}

func TestAllSocketsAreMadeInTheNamespace(t *testing.T) {
	path := newNamespace(t)
	for _, x := range transports {
		for _, keepAlive := range []bool{true, false} {
			if !keepAlive && x.streams > 1 {
				continue
			}
			t.Run(fmt.Sprintf("%s, keepAlive %t", x.name, keepAlive), func(t *testing.T) {
				var s *peerServer
				within(t, path, func() { s = x.serve(t, func(asked) answer { return answer{status: 200, body: "inside"} }) })
				o := x.options(s.url)
				o.Requests, o.Connections, o.Threads, o.KeepAlive, o.NetNS = 30, 6, 3, keepAlive, path
				if r := load(t, o); r.Responses[0] != 30 || r.BodyTotal() != 30*6 {
					t.Error(r)
				}
				o.NetNS = ""
				if r := load(t, o); r.Errors[ErrConnect] != 30 {
					t.Error(r)
				}
			})
		}
	}
}

func TestOfSeveralAddressesOneThatAnswersInTheNamespaceIsTaken(t *testing.T) {
	path := newNamespace(t)
	n, err := openNamespace(path)
	must(t, err)
	defer n.close()
	var inside *testServer
	within(t, path, func() { inside = serveAt(t, "127.0.0.2:0", always(ok)) })
	at := inside.listener.Addr().(*net.TCPAddr).AddrPort()
	serveAt(t, netip.AddrPortFrom(netip.MustParseAddr("127.0.0.3"), at.Port()).String(), always(ok))
	var addrs []netip.Addr
	for _, address := range []string{"127.0.0.1", "127.0.0.3", "127.0.0.2", "127.0.0.4"} {
		addrs = append(addrs, netip.MustParseAddr(address))
	}
	want, _ := newSockaddr(at)
	if got, err := choose(context.Background(), addrs, at.Port(), n); err != nil || got != want {
		t.Errorf("%v %v, want %v", got, err, want)
	}
	// None answers: the first one, whose error a person will see.
	inside.stop()
	want, _ = newSockaddr(netip.AddrPortFrom(addrs[0], at.Port()))
	if got, err := choose(context.Background(), addrs, at.Port(), n); err != nil || got != want {
		t.Errorf("%v %v, want %v", got, err, want)
	}
}

func TestPathsThatAreNoNetworkNamespace(t *testing.T) {
	folder := t.TempDir()
	file, pipe := filepath.Join(folder, "file"), filepath.Join(folder, "pipe")
	must(t, os.WriteFile(file, nil, 0o600))
	must(t, unix.Mkfifo(pipe, 0o600))
	for path, want := range map[string]string{
		"/nowhere":               "cannot be opened: no such file or directory",
		folder:                   "is no network namespace; give a path such as",
		file:                     "is no network namespace; give a path such as",
		pipe:                     "is no network namespace; give a path such as",
		"/dev/null":              "is no network namespace; give a path such as",
		"/proc/self/ns/mnt":      "is no network namespace; give a path such as",
		"/proc/self/ns/user":     "is no network namespace; give a path such as",
		"/proc/self/ns/net/file": "cannot be opened: not a directory",
	} {
		o := options(nobody)
		o.Requests, o.NetNS = 1, path
		_, err := Run(context.Background(), o, nil)
		if err == nil || err.Error() != "netns: "+path+" "+want && !strings.HasPrefix(err.Error(), "netns: "+path+" "+want) {
			t.Errorf("%s: %v, want %q", path, err, want)
		}
	}
}

func TestANamespaceThatMayNotBeEntered(t *testing.T) {
	path, err := newNamespace(t), make(chan error)
	n, openErr := openNamespace(path)
	if openErr != nil {
		t.Fatal(openErr)
	}
	defer n.close()
	go func() {
		runtime.LockOSThread()
		var none [2]unix.CapUserData
		header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
		if problem := unix.Capset(&header, &none[0]); problem != nil {
			t.Error(problem)
		}
		err <- n.enter()
	}()
	if got := <-err; got == nil || !strings.Contains(got.Error(), "may not be entered: run as root") {
		t.Errorf("%v", got)
	}
}

func TestALoopThatCannotEnterIsAnErrorAndNoLoad(t *testing.T) {
	path, s := newNamespace(t), serve(t, always(ok))
	o := options(s.url)
	o.Requests, o.Threads, o.NetNS = 8, 4, path
	p, err := newPlan(context.Background(), o)
	must(t, err)
	// As if it could be entered when it was tried only.
	p.network.close()
	_, err = p.run(context.Background(), func(s Second) { t.Errorf("there is a second of %d requests", s.Requests) })
	if err == nil || !strings.HasPrefix(err.Error(), "netns: "+path+" cannot be entered") || strings.Contains(err.Error(), "\n") {
		t.Errorf("%v", err)
	}
	if n := s.connections.Load(); n != 0 {
		t.Errorf("%d connections came in outside", n)
	}
}

func TestThreadsInTheNamespaceEndWithTheRun(t *testing.T) {
	path := newNamespace(t)
	inside, err := os.Readlink(path)
	must(t, err)
	var s *testServer
	within(t, path, func() { s = serve(t, always(ok)) })
	o := options(s.url)
	o.Requests, o.Threads, o.NetNS = 8, 4, path
	load(t, o)
	waitFor(t, func() bool {
		tasks, _ := filepath.Glob("/proc/self/task/*/ns/net")
		in := 0
		for _, task := range tasks {
			// The main thread cannot end: where a loop ran on it, it sleeps until the process's end.
			if where, _ := os.Readlink(task); where == inside && task != fmt.Sprintf("/proc/self/task/%d/ns/net", os.Getpid()) {
				in++
			}
		}
		return in <= 1 // The one that holds it.
	})
	if n := descriptorsOf(t, inside); n != 0 {
		t.Errorf("%d descriptors of the namespace are left open", n)
	}
}

func descriptorsOf(t *testing.T, target string) (n int) {
	t.Helper()
	files, err := filepath.Glob("/proc/self/fd/*")
	must(t, err)
	for _, file := range files {
		if to, _ := os.Readlink(file); to == target {
			n++
		}
	}
	return n
}
