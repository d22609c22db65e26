//gosec:disable G115 G304 -- the numbers are small, paths in /proc and /run
package link

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"bakeoff.invalid/OWNER/bakeoff/xk6-loadgen/internal/linux"
)

const (
	device      = "link"
	deviceQueue = 100_000 // packets that may wait for the link; the default, 500, is soon full
)

// addresses are in the network that RFC 2544 reserves for benchmarks, so each side has a route to the other.
var addresses = map[Side]net.IPNet{
	Client: {IP: net.IPv4(198, 18, 0, 1), Mask: net.CIDRMask(15, 32)},
	Server: {IP: net.IPv4(198, 19, 0, 1), Mask: net.CIDRMask(15, 32)},
}

// namespace is a network namespace without a name: it ends when no process holds it or runs inside.
type namespace struct {
	side      Side
	file, tun int // file is the namespace, tun the link's end of its device
	kernel    kernelCounters
}

// newNamespace makes a side's namespace and applies its settings. The thread that does so ends; the descriptors keep the namespace.
func newNamespace(side Side, settings []SettingOutcome) (n *namespace, err error) {
	linux.OnOwnThread(func() {
		if n, err = enterNamespace(side); err != nil {
			return
		}
		for i := range settings {
			if s := &settings[i]; s.Side == side {
				s.Problem = applySetting(s.Name, s.Value)
			}
		}
	})
	return n, err
}

// enterNamespace moves the calling thread into a new namespace, and sets up its devices and counters.
func enterNamespace(side Side) (*namespace, error) {
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		return nil, fmt.Errorf("no network namespace can be made: %w; run it as root, or in a user namespace (unshare --user --map-root-user)", err)
	}
	n := &namespace{side: side}
	var err error
	if n.file, err = unix.Open("/proc/thread-self/ns/net", unix.O_RDONLY|unix.O_CLOEXEC, 0); err != nil {
		return nil, fmt.Errorf("/proc/thread-self/ns/net cannot be opened: %w", err)
	}
	if err := cmp.Or(switchOffIPv6(), side.setUp("lo")); err != nil {
		return nil, err
	}
	if n.tun, err = openTun(); err != nil {
		return nil, err
	}
	address := addresses[side]
	if err := side.setUp(device,
		func(d netlink.Link) error { return netlink.LinkSetTxQLen(d, deviceQueue) },
		func(d netlink.Link) error { return netlink.LinkSetMTU(d, mtu) },
		func(d netlink.Link) error { return netlink.AddrAdd(d, &netlink.Addr{IPNet: &address}) },
	); err != nil {
		return nil, err
	}
	if n.kernel, err = openKernelCounters(); err != nil {
		return nil, err
	}
	return n, nil
}

// switchOffIPv6 keeps the kernel's own packets off the link.
func switchOffIPv6() error {
	for _, devices := range []string{"all", "default"} {
		name := "/proc/sys/net/ipv6/conf/" + devices + "/disable_ipv6"
		if err := os.WriteFile(name, []byte("1"), 0); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("IPv6 cannot be switched off in a namespace: %w; /proc/sys has to be writable", err)
		}
	}
	return nil
}

// openTun makes the device, and returns the end that the link reads and writes. Packets have no header before them (IFF_NO_PI).
func openTun() (int, error) {
	const path = "/dev/net/tun"
	fd, err := unix.Open(path, unix.O_RDWR|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		remedy := "run it as root, or let this user read and write it"
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENODEV) {
			remedy = "the kernel's module tun is needed (modprobe tun), in a container the device too (--device /dev/net/tun)"
		}
		return -1, fmt.Errorf("%s cannot be opened: %w; %s", path, err, remedy)
	}
	request, err := unix.NewIfreq(device)
	if err == nil {
		request.SetUint16(unix.IFF_TUN | unix.IFF_NO_PI)
		err = unix.IoctlIfreq(fd, unix.TUNSETIFF, request)
	}
	if err != nil {
		return -1, fmt.Errorf("%s gives no device: %w", path, err)
	}
	return fd, nil
}

// setUp applies changes to a device, and brings it up.
func (s Side) setUp(name string, changes ...func(netlink.Link) error) error {
	link, err := netlink.LinkByName(name)
	for _, change := range append(changes, netlink.LinkSetUp) {
		if err == nil {
			err = change(link)
		}
	}
	if err != nil {
		return fmt.Errorf("the %s's device %s cannot be set up: %w", s, name, err)
	}
	return nil
}

// ready has a path for processes that may see this one's descriptors.
func (n *namespace) ready() SideReady {
	return SideReady{Netns: fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), n.file), Address: addresses[n.side].IP.String()}
}

const (
	problemUnknown  = "this kernel does not have it"
	problemGlobal   = "of the whole machine, not of a namespace"
	problemReadOnly = "cannot be changed in a namespace"
)

// applySetting returns why a setting does not hold. Only those below net. belong to a network namespace.
func applySetting(name, value string) string {
	file := settingFile(name)
	if !strings.HasPrefix(name, "net.") || !isFile(file) {
		return problemUnknown
	}
	switch err := os.WriteFile(file, []byte(value), 0); {
	case errors.Is(err, fs.ErrPermission):
		return problemReadOnly
	case err != nil:
		return "refused: " + reason(err).Error()
	}
	// Some can be written but not read, such as keys.
	if held, err := os.ReadFile(file); err == nil && !sameValue(value, string(held)) {
		return "the kernel made it " + strings.Join(strings.Fields(string(held)), " ")
	}
	return ""
}

// nameGlobals finds unknown settings that the machine has, but no namespace.
func nameGlobals(outcomes []SettingOutcome) {
	for i := range outcomes {
		if o := &outcomes[i]; o.Problem == problemUnknown && isFile(settingFile(o.Name)) {
			o.Problem = problemGlobal
		}
	}
}

// settingFile is a setting's file: dots are slashes, and slashes dots, as in the names of some devices (sysctl(8)).
func settingFile(name string) string {
	return "/proc/sys/" + strings.NewReplacer(".", "/", "/", ".").Replace(name)
}

func isFile(name string) bool {
	info, err := os.Stat(name)
	return err == nil && info.Mode().IsRegular()
}

// sameValue compares fields by their text or as numbers: the kernel prints a value in its own form.
func sameValue(asked, held string) bool {
	return slices.EqualFunc(strings.Fields(asked), strings.Fields(held), func(a, h string) bool {
		n, err := strconv.ParseInt(a, 0, 64)
		return a == h || err == nil && strconv.FormatInt(n, 10) == h
	})
}

// reason is an error's errno, without the path that the caller names already.
func reason(err error) error {
	if errno := syscall.Errno(0); errors.As(err, &errno) {
		return errno
	}
	return err
}

// kernelCounters can be read from outside the namespace in which they were opened.
type kernelCounters struct {
	snmp, netstat *os.File
	devices       *netlink.Handle
}

// kernelCounts are the counts of a side's TCP since its namespace began.
type kernelCounts struct{ retransmits, listenOverflows int64 }

// openKernelCounters opens the counters of the calling thread's namespace.
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

// drops takes the lock under which namespaces begin and end, so it is for when nothing is under way.
func (k kernelCounters) drops() (int64, error) {
	link, err := k.devices.LinkByName(device)
	if err != nil {
		return 0, fmt.Errorf("the device %s is gone: %w", device, err)
	}
	return int64(link.Attrs().Statistics.RxDropped + link.Attrs().Statistics.TxDropped), nil
}

// field reads a file in which each group has a line of names and then one of values.
func field(file *os.File, group, name string) (int64, error) {
	text, err := io.ReadAll(io.NewSectionReader(file, 0, math.MaxInt64))
	if err != nil {
		return 0, err
	}
	var names []string
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		if len(fields) == 0 || fields[0] != group {
			continue
		}
		if i := slices.Index(names, name); i >= 0 && i < len(fields) {
			return strconv.ParseInt(fields[i], 10, 64)
		}
		names = fields
	}
	return 0, fmt.Errorf("the kernel does not tell %s %s", group, name)
}
