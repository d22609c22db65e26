package engine

import (
	"encoding/binary"
	"fmt"
	"os"
	"syscall"
	"unsafe"

	"bakeoff.invalid/xk6-loadgen/internal/linux"
)

// sources are the addresses that connections come from, 127.0.0.1 and those after it; 0 of them: the kernel chooses.
//
// A connection is known by its two addresses and two ports. To one server one address has no more connections than the kernel
// has ports to choose from (net.ipv4.ip_local_port_range): 28,232 by default.
type sources int

const portRangeFile = "/proc/sys/net/ipv4/ip_local_port_range"

// portsPerSource is the share of its ports that a source of several uses, as one of so many: near the last free one the kernel
// searches long for it.
const portsPerSource = 2

// sourcesFor are those that so many connections to the target need. Its error names the option: only 127.0.0.0/8 has
// addresses to spare.
func sourcesFor(connections int, target *sockaddr, within *namespace) (sources, error) {
	var first, last int
	err := within.run(func() error {
		// A thread sees the settings of the network that it is in.
		content, err := os.ReadFile(portRangeFile)
		if err == nil {
			_, err = fmt.Sscan(string(content), &first, &last)
		}
		return err
	})
	ports := last - first + 1
	switch {
	case err != nil || ports < 1 || connections <= ports:
		// Where the kernel does not say how many there are, its refusals do: they are counted.
		return 0, nil
	case !target.isLoopback4():
		return 0, fmt.Errorf("connections: %d are more than the %d ports that one address has to connect from "+
			"(net.ipv4.ip_local_port_range); ask for %d or load a server in 127.0.0.0/8, where there are several addresses",
			connections, ports, ports)
	}
	perSource := max(1, ports/portsPerSource)
	return sources((connections + perSource - 1) / perSource), nil
}

// bind gives a socket the address of a connection by its number; its port is chosen when it connects, so that each address
// has all of them.
func (s sources) bind(fd, connection int) syscall.Errno {
	if s == 0 {
		return 0
	}
	if errno := linux.BindWithoutPort(fd); errno != 0 {
		return errno
	}
	from := s.address(connection)
	return linux.Bind(fd, unsafe.Pointer(&from.raw), from.size)
}

func (s sources) address(connection int) sockaddr {
	from := sockaddr{family: syscall.AF_INET, size: syscall.SizeofSockaddrInet4}
	binary.NativeEndian.PutUint16(from.raw[0:], syscall.AF_INET)
	binary.BigEndian.PutUint32(from.raw[4:], 127<<24+1+uint32(connection%int(s)))
	return from
}
