package link

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"bakeoff.invalid/xk6-loadgen/internal/linux"
)

const (
	device = "link"
	// deviceQueue is the most packets that wait for the link to read them. The default, 500, is soon full.
	deviceQueue = 100_000
)

// addresses are both in the net that RFC 2544 gives to benchmarks: so each side has a route to the other.
var addresses = map[Side]net.IPNet{
	Client: {IP: net.IPv4(198, 18, 0, 1), Mask: net.CIDRMask(15, 32)},
	Server: {IP: net.IPv4(198, 19, 0, 1), Mask: net.CIDRMask(15, 32)},
}

// namespace is a network namespace without a name: it is there as long as this process holds it, or another one runs inside.
type namespace struct {
	side Side
	// file is the namespace, tun the link's end of the device in it.
	file, tun int
	kernel    kernelCounters
}

// newNamespace makes a side's namespace, with loopback and a device that leads to the link, and writes its settings in order.
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

// enterNamespace makes a namespace and puts the calling thread into it.
func enterNamespace(side Side) (*namespace, error) {
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		return nil, fmt.Errorf("no network namespace can be made: %w; run it as root, or in a user namespace (unshare --user --map-root-user)", err)
	}
	n := &namespace{side: side}
	var err error
	if n.file, err = unix.Open("/proc/thread-self/ns/net", unix.O_RDONLY|unix.O_CLOEXEC, 0); err != nil {
		return nil, fmt.Errorf("/proc/thread-self/ns/net cannot be opened: %w", err)
	}
	if err := switchOffIPv6(); err != nil {
		return nil, err
	}
	if err := side.setUp("lo"); err != nil {
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

// switchOffIPv6 keeps the kernel's own packets, such as router solicitations, off the link.
func switchOffIPv6() error {
	for _, devices := range []string{"all", "default"} {
		name := "/proc/sys/net/ipv6/conf/" + devices + "/disable_ipv6"
		if err := os.WriteFile(name, []byte("1"), 0); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("IPv6 cannot be switched off in a namespace: %w; /proc/sys has to be writable", err)
		}
	}
	return nil
}

// openTun makes the device in the calling thread's namespace. It can be read and written from any thread.
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

// setUp makes these changes to a device in the calling thread's namespace, in order, and brings it up.
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

// ready says where the namespace is. The path is for any process that may look at this one's descriptors.
func (n *namespace) ready() SideReady {
	return SideReady{Netns: fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), n.file), Address: addresses[n.side].IP.String()}
}
