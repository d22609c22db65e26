// Package responder is the least work that a web server can do: every request gets the same response, made before the
// first one came. Loaded with it, a load generator shows its own ceiling.
//
// Flow: a transport (loop: epoll, without TLS; secure: crypto/tls) reads, gives what it has read to the connection's
// speaker (http1, h2), sends what that has pending, and reads again.
package responder

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"

	"bakeoff.invalid/xk6-loadgen/internal/linux"
)

// Protocol names what is spoken.
type Protocol string

// The protocols: HTTP11 answers HTTP/1.0 too, over TCP or TLS; H2 is HTTP/2 over TLS, H2C without (with prior knowledge).
const (
	HTTP11 Protocol = "http/1.1"
	H2     Protocol = "h2"
	H2C    Protocol = "h2c"
)

// Options say what is answered.
type Options struct {
	Protocol Protocol
	// BodyBytes is the length of every response's body.
	BodyBytes int64
	// Certificate is a PEM file with a key and its chain; with it TLS is spoken.
	Certificate string
	// Threads are event loops, or with TLS as many threads as Go uses at a time.
	Threads int
}

const (
	maxThreads   = 256
	maxBodyBytes = 1 << 40
	// maxFiles bounds the table of connections where the file limit is very high.
	maxFiles = 1 << 20
	// spareFiles are left to everything that is no connection.
	spareFiles = 64
	backlog    = 1 << 16
)

// Responder listens on a free port of 127.0.0.1.
type Responder struct {
	protocol   Protocol
	newSpeaker func() speaker
	address    net.Addr
	// maxConnections are open at a time; more wait to be accepted.
	maxConnections int

	// Without TLS: conns are the connections that loops have, by descriptor; stop is readable when all is to end.
	listener, stop, stopper int
	loops                   []*loop
	conns                   []atomic.Pointer[conn]
	open                    atomic.Int64
	running                 sync.WaitGroup
	closed                  sync.Once

	secure *secure
}

// Start listens and answers until Close. Its errors say which option is wrong, or what the system refuses.
func Start(o Options) (*Responder, error) {
	switch {
	case o.Protocol != HTTP11 && o.Protocol != H2 && o.Protocol != H2C:
		return nil, fmt.Errorf("--protocol %q is not known; use http/1.1, h2 or h2c", o.Protocol)
	case o.BodyBytes < 0 || o.BodyBytes > maxBodyBytes:
		return nil, fmt.Errorf("--body-bytes must be 0 to %d, got %d", int64(maxBodyBytes), o.BodyBytes)
	case o.Threads < 1 || o.Threads > maxThreads:
		return nil, fmt.Errorf("--threads must be 1 to %d, got %d", maxThreads, o.Threads)
	case o.Protocol == H2 && o.Certificate == "":
		return nil, errors.New("--protocol h2 is HTTP/2 over TLS: name a file with --certificate, or use h2c")
	case o.Protocol == H2C && o.Certificate != "":
		return nil, errors.New("--protocol h2c is HTTP/2 without TLS: leave --certificate out, or use h2")
	}
	r := &Responder{protocol: o.Protocol, maxConnections: max(1, fileLimit()-spareFiles)}
	if o.Protocol == HTTP11 {
		all := newHTTP1Answers(o.BodyBytes)
		r.newSpeaker = func() speaker { return &http1{all: all} }
	} else {
		answer := newH2Answer(o.BodyBytes)
		r.newSpeaker = func() speaker {
			s := &h2{answer: answer}
			s.reset()
			return s
		}
	}
	start := r.startLoops
	if o.Certificate != "" {
		start = r.startSecure
	}
	if err := start(o); err != nil {
		return nil, err
	}
	return r, nil
}

// Address is host and port.
func (r *Responder) Address() string { return r.address.String() }

// Close ends all connections and returns when nothing is left running.
func (r *Responder) Close() { r.closed.Do(r.close) }

func (r *Responder) close() {
	if r.secure != nil {
		r.secure.close()
	} else {
		syscall.Close(r.stopper) //nolint:errcheck // it is a pipe's end
	}
	r.running.Wait()
	if r.secure == nil {
		for i := range r.conns {
			if c := r.conns[i].Load(); c != nil {
				syscall.Close(c.fd) //nolint:errcheck // a socket
			}
		}
		syscall.Close(r.stop)     //nolint:errcheck // as above
		syscall.Close(r.listener) //nolint:errcheck // as above
	}
}

func (r *Responder) startSecure(o Options) error {
	pem, err := os.ReadFile(o.Certificate)
	if err != nil {
		return fmt.Errorf("--certificate cannot be read: %w", err)
	}
	certificate, err := tls.X509KeyPair(pem, pem)
	if err != nil {
		return fmt.Errorf("--certificate %s has no key with its chain in it: %w", o.Certificate, err)
	}
	// Without probes, which would cost each connection some calls.
	listener, err := (&net.ListenConfig{KeepAlive: -1}).Listen(context.Background(), "tcp4", "127.0.0.1:0")
	if err != nil {
		return err
	}
	runtime.GOMAXPROCS(o.Threads)
	r.address = listener.Addr()
	r.secure = newSecure(r, listener, certificate)
	r.running.Go(r.secure.run)
	return nil
}

func (r *Responder) startLoops(o Options) error {
	var err error
	if r.listener, r.address, err = listen(); err != nil {
		return fmt.Errorf("cannot listen on 127.0.0.1: %w", err)
	}
	var pipe [2]int
	if err := syscall.Pipe2(pipe[:], syscall.O_CLOEXEC); err != nil {
		return err
	}
	r.stop, r.stopper = pipe[0], pipe[1]
	r.conns = make([]atomic.Pointer[conn], fileLimit())
	for range o.Threads {
		l, err := newLoop(r)
		if err != nil {
			return err
		}
		r.loops = append(r.loops, l)
	}
	if runtime.GOMAXPROCS(0) < o.Threads+1 {
		runtime.GOMAXPROCS(o.Threads + 1)
	}
	for _, l := range r.loops {
		r.running.Go(l.run)
	}
	return nil
}

// listen makes the socket of all loops. Accepted sockets inherit TCP_NODELAY: answers never wait for an acknowledgement.
func listen() (int, net.Addr, error) {
	fd, errno := linux.Socket(syscall.AF_INET)
	if errno != 0 {
		return -1, nil, errno
	}
	at := &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}
	name, err := syscall.Sockaddr(nil), error(nil)
	for _, step := range []func() error{
		func() error { return syscall.SetsockoptInt(fd, syscall.IPPROTO_TCP, syscall.TCP_NODELAY, 1) },
		func() error { return syscall.Bind(fd, at) },
		func() error { return syscall.Listen(fd, backlog) },
		func() error { name, err = syscall.Getsockname(fd); return err },
	} {
		if err := step(); err != nil {
			linux.Close(fd)
			return -1, nil, err
		}
	}
	return fd, &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: name.(*syscall.SockaddrInet4).Port}, nil
}

// fileLimit is how many descriptors this process may have, as far as that matters here.
func fileLimit() int {
	var limit syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit) != nil {
		return 1024
	}
	return int(min(limit.Cur, maxFiles))
}
