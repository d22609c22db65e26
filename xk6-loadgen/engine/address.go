package engine

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"syscall"
	"time"
)

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

// portOf is the port that is given, or that of the scheme.
func portOf(u *url.URL) (uint64, error) {
	return strconv.ParseUint(cmp.Or(u.Port(), map[string]string{"http": "80", "https": "443"}[u.Scheme]), 10, 16)
}

// withoutZone drops an IPv6 zone, which means something on this machine only (RFC 6874, section 3).
func withoutZone(host string) string {
	if from, to := strings.IndexByte(host, '%'), strings.IndexByte(host, ']'); from >= 0 && to > from {
		return host[:from] + host[to:]
	}
	return host
}

// probeTimeout is for one of several addresses of a host.
const probeTimeout = time.Second

// resolve looks the host up once, in the process's own network: a namespace seldom has a name server.
func resolve(ctx context.Context, u *url.URL, within *namespace) (sockaddr, error) {
	port, _ := portOf(u)
	addrs, err := net.DefaultResolver.LookupNetIP(ctx, "ip", u.Hostname())
	if err != nil {
		return sockaddr{}, fmt.Errorf("url: %w", err)
	}
	return choose(ctx, addrs, uint16(port), within)
}

// choose takes the first of several addresses that accepts a connection from within the namespace (localhost is ::1 as well
// as 127.0.0.1, and a server often listens on one of them), or the first when none does.
func choose(ctx context.Context, addrs []netip.Addr, port uint16, within *namespace) (chosen sockaddr, err error) {
	err = within.run(func() (err error) {
		first := addrs[0]
		if len(addrs) > 1 {
			dialer := net.Dialer{Timeout: probeTimeout}
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

// sockaddr is an address in the kernel's form.
type sockaddr struct {
	family int
	raw    [syscall.SizeofSockaddrInet6]byte
	size   uintptr
}

func newSockaddr(at netip.AddrPort) (sockaddr, error) {
	var s sockaddr
	ip := at.Addr()
	if ip.Is4() {
		s.family, s.size = syscall.AF_INET, syscall.SizeofSockaddrInet4
		four := ip.As4()
		copy(s.raw[4:], four[:])
	} else {
		s.family, s.size = syscall.AF_INET6, syscall.SizeofSockaddrInet6
		sixteen := ip.As16()
		copy(s.raw[8:], sixteen[:])
		if zone := ip.Zone(); zone != "" {
			index, err := zoneIndex(zone)
			if err != nil {
				return s, err
			}
			binary.NativeEndian.PutUint32(s.raw[24:], index)
		}
	}
	binary.NativeEndian.PutUint16(s.raw[0:], uint16(s.family))
	binary.BigEndian.PutUint16(s.raw[2:], at.Port())
	return s, nil
}

// isLoopback4 tells whether the address is in 127.0.0.0/8.
func (s *sockaddr) isLoopback4() bool { return s.family == syscall.AF_INET && s.raw[4] == 127 }

func zoneIndex(zone string) (uint32, error) {
	if device, err := net.InterfaceByName(zone); err == nil {
		return uint32(device.Index), nil
	}
	n, err := strconv.ParseUint(zone, 10, 32)
	if err != nil {
		return 0, fmt.Errorf("url: no network interface %q", zone)
	}
	return uint32(n), nil
}
