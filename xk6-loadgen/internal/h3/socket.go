package h3

import (
	"net"
	"sync"
	"syscall"

	"bakeoff.invalid/OWNER/bakeoff/xk6-loadgen/internal/linux"
)

// connectedSocket sends to one peer, so that the kernel reports a closed port. Each has a port, by which servers divide connections.
type connectedSocket struct{ *net.UDPConn }

// WriteMsgUDP leaves the address out, which Go refuses on a connected socket.
func (s connectedSocket) WriteMsgUDP(p, oob []byte, _ *net.UDPAddr) (n, oobn int, err error) {
	return s.UDPConn.WriteMsgUDP(p, oob, nil)
}

// bareSocket is a connectedSocket without control messages: no ECN, no segmentation by the kernel, and one buffer of a packet instead of
// eight. Go's scheduler does not see its calls, which saves it handing on their processor each time.
type bareSocket struct {
	packetSocket
	peer    net.Addr
	in, out *direction
}

// packetSocket is what quic-go asks of a socket. It would use more of a *net.UDPConn, such as ECN.
type packetSocket interface {
	net.PacketConn
	syscall.Conn
	SetReadBuffer(bytes int) error
	SetWriteBuffer(bytes int) error
}

// direction is one way through a socket, for a datagram at a time.
type direction struct {
	sync.Mutex
	wait  func(try func(fd uintptr) bool) error // until try returns true
	try   func(fd uintptr) bool
	bytes []byte
	n     int
	errno syscall.Errno
}

// newBareSocket makes both directions once, with their closures, so that a datagram allocates nothing here.
func newBareSocket(socket *net.UDPConn, peer net.Addr) *bareSocket {
	raw, _ := socket.SyscallConn() //nolint:errcheck // a socket has one
	transfer := func(wait func(func(uintptr) bool) error, call func(int, []byte) (int, syscall.Errno)) *direction {
		d := &direction{wait: wait}
		d.try = func(fd uintptr) bool {
			d.n, d.errno = call(int(fd), d.bytes)
			return d.errno != syscall.EAGAIN
		}
		return d
	}
	return &bareSocket{socket, peer, transfer(raw.Read, linux.Recv), transfer(raw.Write, linux.Send)}
}

// transfer moves one datagram without a copy or an allocation. It takes one system call. After EAGAIN the goroutine waits in Go's poller until
// the socket is ready, and makes another one.
func (d *direction) transfer(p []byte) (int, error) {
	d.Lock()
	defer d.Unlock()
	d.bytes = p
	if err := d.wait(d.try); err != nil {
		return 0, err
	}
	if d.errno != 0 {
		return 0, d.errno
	}
	return d.n, nil
}

// ReadFrom reads a datagram for quic-go. The socket is connected, so it came from the peer.
func (s *bareSocket) ReadFrom(p []byte) (int, net.Addr, error) {
	n, err := s.in.transfer(p)
	return n, s.peer, err
}

func (s *bareSocket) WriteTo(p []byte, _ net.Addr) (int, error) { return s.out.transfer(p) }
