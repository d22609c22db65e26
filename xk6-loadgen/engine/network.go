//gosec:disable G103 G104 G115 -- the kernel takes addresses, an error changes nothing there, the numbers are small
package engine

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"os"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"bakeoff.invalid/OWNER/bakeoff/xk6-loadgen/internal/linux"
)

// parseURL checks the address of a load. Its errors say what to write instead.
func parseURL(raw string) (*url.URL, error) {
	u, err := url.Parse(raw)
	if err != nil {
		return nil, fmt.Errorf("url: must start with http:// or https:// and a host: %w", err)
	}
	port, err := portOf(u)
	switch {
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, fmt.Errorf("url: %q must start with http:// or https://", raw)
	case u.Hostname() == "":
		return nil, fmt.Errorf("url: %q names no host", raw)
	case strings.ContainsFunc(u.RequestURI(), func(r rune) bool { return r <= ' ' || r == 0x7f }):
		return nil, fmt.Errorf("url: %q has a space or control character in it; write it as %%20 or the like", raw)
	case u.User != nil:
		return nil, fmt.Errorf("url: %q carries a user name; send an Authorization header instead", u.Redacted())
	case err != nil || port == 0:
		return nil, fmt.Errorf("url: %q: a port is 1 to 65535", raw)
	}
	return u, nil
}

func portOf(u *url.URL) (uint64, error) {
	return strconv.ParseUint(cmp.Or(u.Port(), map[string]string{"http": "80", "https": "443"}[u.Scheme]), 10, 16)
}

// withoutZone drops an IPv6 zone, which is for this machine only (RFC 6874, section 3).
func withoutZone(host string) string { return zone.ReplaceAllString(host, "]") }

var zone = regexp.MustCompile("%[^]]*]")

// resolve looks the host up in the process's own network, since few namespaces have a resolver, and chooses an address.
func resolve(ctx context.Context, u *url.URL, within *namespace) (sockaddr, error) {
	port, _ := portOf(u)
	addrs, err := net.DefaultResolver.LookupNetIP(ctx, "ip", u.Hostname())
	if err != nil {
		return sockaddr{}, fmt.Errorf("url: %w", err)
	}
	return choose(ctx, addrs, uint16(port), within)
}

// choose returns the first address that accepts a connection within the namespace, or the first: a server often listens on one only.
func choose(ctx context.Context, addrs []netip.Addr, port uint16, within *namespace) (chosen sockaddr, err error) {
	err = within.run(func() (err error) {
		first := addrs[0]
		if len(addrs) > 1 {
			dialer := net.Dialer{Timeout: time.Second} // for each address
			for _, addr := range addrs {
				if c, err := dialer.DialContext(ctx, "tcp", netip.AddrPortFrom(addr, port).String()); err == nil {
					c.Close()
					first = addr
					break
				}
			}
		}
		chosen, err = newSockaddr(netip.AddrPortFrom(first.Unmap(), port))
		return err
	})
	return chosen, err
}

// sockaddr is an address in the form of connect(2), made once so that a connect allocates nothing.
type sockaddr struct {
	at     netip.AddrPort
	family int
	raw    [syscall.SizeofSockaddrInet6]byte
	size   uintptr
}

// newSockaddr encodes an address. An IPv6 zone must be a device in the calling thread's network.
func newSockaddr(at netip.AddrPort) (sockaddr, error) {
	s := sockaddr{at: at, family: syscall.AF_INET, size: syscall.SizeofSockaddrInet4}
	if ip := at.Addr(); ip.Is4() {
		four := ip.As4()
		copy(s.raw[4:], four[:])
	} else {
		s.family, s.size = syscall.AF_INET6, syscall.SizeofSockaddrInet6
		sixteen := ip.As16()
		copy(s.raw[8:], sixteen[:])
		if zone := ip.Zone(); zone != "" {
			device, err := net.InterfaceByName(zone)
			if err != nil {
				return s, fmt.Errorf("url: no network interface %q", zone)
			}
			binary.NativeEndian.PutUint32(s.raw[24:], uint32(device.Index))
			// A number, since Go caches device names for all networks of a process.
			s.at = netip.AddrPortFrom(ip.WithZone(strconv.Itoa(device.Index)), at.Port())
		}
	}
	binary.NativeEndian.PutUint16(s.raw[0:], uint16(s.family))
	binary.BigEndian.PutUint16(s.raw[2:], at.Port())
	return s, nil
}

// sources is the number of local addresses, 127.0.0.1 and up; 0: the kernel chooses. From one there are only as many as ports.
type sources int

const portRangeFile = "/proc/sys/net/ipv4/ip_local_port_range"

// portsPerSource: a source uses half of its ports, since the kernel searches long for the last free ones.
const portsPerSource = 2

// sourcesFor returns how many local addresses so many connections need. It refuses more than one for a server outside of 127.0.0.0/8.
func sourcesFor(connections int, target *sockaddr, within *namespace) (sources, error) {
	var first, last int
	err := within.run(func() error {
		content, err := os.ReadFile(portRangeFile) // The file shows the settings of the thread's network
		if err == nil {
			_, err = fmt.Sscan(string(content), &first, &last)
		}
		return err
	})
	ports := last - first + 1
	switch {
	case err != nil || ports < 1 || connections <= ports:
		return 0, nil // If the range is not known, the kernel's refusals count as errors
	case target.family != syscall.AF_INET || !target.at.Addr().IsLoopback():
		return 0, fmt.Errorf("connections: %d are more than the %d ports that one address has to connect from "+
			"(net.ipv4.ip_local_port_range); ask for %d or load a server in 127.0.0.0/8, where there are several addresses",
			connections, ports, ports)
	}
	perSource := max(1, ports/portsPerSource)
	return sources((connections + perSource - 1) / perSource), nil
}

// bind gives a socket a connection's address; the kernel chooses the port when it connects.
func (s sources) bind(fd, connection int) syscall.Errno {
	if s == 0 {
		return 0
	}
	from, _ := newSockaddr(s.address(connection))
	return linux.Bind(fd, unsafe.Pointer(&from.raw), from.size)
}

// address is a connection's local address, by its number among those of all loops, without a port.
func (s sources) address(connection int) netip.AddrPort {
	var ip [4]byte
	binary.BigEndian.PutUint32(ip[:], 127<<24+1+uint32(connection%int(s)))
	return netip.AddrPortFrom(netip.AddrFrom4(ip), 0)
}

// namespace is a network; a socket belongs to that of the thread that made it.
type namespace struct {
	path string
	fd   int
}

// openNamespace opens a namespace by its path and enters it once to see whether that works. An empty path is nil, the process's network.
func openNamespace(path string) (*namespace, error) {
	if path == "" {
		return nil, nil
	}
	// O_NONBLOCK: a path to a pipe must not wait for its writer.
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

// enter moves the calling thread into the namespace; its goroutine must stay locked to it.
func (n *namespace) enter() error {
	if n == nil {
		return nil
	}
	switch err := unix.Setns(n.fd, unix.CLONE_NEWNET); {
	case errors.Is(err, syscall.EPERM):
		return fmt.Errorf("netns: %s may not be entered: run as root, or in the user namespace that it belongs to", n.path)
	case err != nil:
		return fmt.Errorf("netns: %s cannot be entered: %w", n.path, err)
	}
	return nil
}

// run calls f on a thread of its own inside the namespace, or for nil on the calling thread.
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

func (n *namespace) close() {
	if n != nil {
		unix.Close(n.fd)
	}
}
