package engine

import (
	"errors"
	"fmt"
	"syscall"

	"bakeoff.invalid/xk6-loadgen/internal/linux"
	"golang.org/x/sys/unix"
)

// namespace is the network that sockets are made in. A socket stays in the namespace of the thread that made it, wherever it
// is used afterwards; so what makes one has to be on a thread inside.
type namespace struct {
	path string
	fd   int
}

// openNamespace opens a network namespace by its path, as in /run/netns/NAME or /proc/PID/ns/net, and enters it once, so that
// a run which could not is not begun. It returns nil, the process's own network, for an empty path. Its errors name the
// option.
func openNamespace(path string) (*namespace, error) {
	if path == "" {
		return nil, nil
	}
	// O_NONBLOCK: a path to a pipe is a mistake too, and must not wait for its writer.
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("netns: %s cannot be opened: %w", path, err)
	}
	n := &namespace{path: path, fd: fd}
	if kind, err := unix.IoctlRetInt(fd, unix.NS_GET_NSTYPE); err != nil || kind != unix.CLONE_NEWNET {
		n.close()
		return nil, fmt.Errorf("netns: %s is no network namespace; give a path such as /run/netns/NAME or /proc/PID/ns/net", path)
	}
	if err := n.run(func() error { return nil }); err != nil {
		n.close()
		return nil, err
	}
	return n, nil
}

// enter moves the calling thread into the namespace; the goroutine has to be locked to it, and must not unlock it again.
func (n *namespace) enter() error {
	if n == nil {
		return nil
	}
	err := unix.Setns(n.fd, unix.CLONE_NEWNET)
	if errors.Is(err, syscall.EPERM) {
		return fmt.Errorf("netns: %s may not be entered: run as root, or in the user namespace that it belongs to", n.path)
	} else if err != nil {
		return fmt.Errorf("netns: %s cannot be entered: %w", n.path, err)
	}
	return nil
}

// run calls f on a thread inside, and returns its error, or that of entering.
func (n *namespace) run(f func() error) (err error) {
	if n == nil {
		return f()
	}
	linux.OnOwnThread(func() {
		if err = n.enter(); err == nil {
			err = f()
		}
	})
	return err
}

// close lets the namespace go; threads and sockets inside keep it.
func (n *namespace) close() {
	if n != nil {
		unix.Close(n.fd)
	}
}
