package link

import (
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// kernelCounters are the kernel's own counters of a namespace. What was opened inside it can be read from outside.
type kernelCounters struct {
	snmp, netstat *os.File
	devices       *netlink.Handle
}

// kernelCounts are what they say, since the namespace was made.
type kernelCounts struct{ retransmits, listenOverflows int64 }

// openKernelCounters opens them for the calling thread's namespace.
func openKernelCounters() (k kernelCounters, err error) {
	for name, file := range map[string]**os.File{"snmp": &k.snmp, "netstat": &k.netstat} {
		path := "/proc/thread-self/net/" + name
		if *file, err = os.Open(path); err != nil {
			return k, fmt.Errorf("%s cannot be opened: %w", path, reason(err))
		}
	}
	if k.devices, err = netlink.NewHandle(unix.NETLINK_ROUTE); err != nil {
		return k, fmt.Errorf("what devices drop cannot be asked for: %w", err)
	}
	return k, nil
}

func (k kernelCounters) read() (c kernelCounts, err error) {
	if c.retransmits, err = field(k.snmp, "Tcp:", "RetransSegs"); err == nil {
		c.listenOverflows, err = field(k.netstat, "TcpExt:", "ListenOverflows")
	}
	return c, err
}

// drops are packets that the device dropped, in and out. The kernel answers under the lock with which namespaces begin and end, so it is
// asked when nothing is under way.
func (k kernelCounters) drops() (int64, error) {
	link, err := k.devices.LinkByName(device)
	if err != nil {
		return 0, fmt.Errorf("the device %s is gone: %w", device, err)
	}
	return int64(link.Attrs().Statistics.RxDropped + link.Attrs().Statistics.TxDropped), nil
}

// field reads a value from a file in which each group has a line of names and then one of values.
func field(file *os.File, group, name string) (int64, error) {
	text, err := io.ReadAll(io.NewSectionReader(file, 0, math.MaxInt64))
	if err != nil {
		return 0, err
	}
	var names []string
	for line := range strings.Lines(string(text)) {
		words := strings.Fields(line)
		if len(words) == 0 || words[0] != group {
			continue
		}
		if i := slices.Index(names, name); i >= 0 && i < len(words) {
			return strconv.ParseInt(words[i], 10, 64)
		}
		names = words
	}
	return 0, fmt.Errorf("the kernel does not tell %s %s", group, name)
}
