package link

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"syscall"
	"unsafe"

	"bakeoff.invalid/xk6-loadgen/internal/linux"
	"golang.org/x/sys/unix"
)

const (
	device = "link"
	// deviceQueue: packets that the link has not read yet. What is beyond them the device drops, and 500, its default, is soon full.
	deviceQueue = 100_000
)

// network is the net that both addresses are in, which RFC 2544 gives to benchmarks: so each side has a route to the other.
var network = netip.MustParsePrefix("198.18.0.0/15")

var addresses = map[Side]netip.Addr{Client: netip.MustParseAddr("198.18.0.1"), Server: netip.MustParseAddr("198.19.0.1")}

// namespace is a network namespace without a name, which is there as long as this process holds it, or another one runs inside.
type namespace struct {
	side Side
	// file is the namespace itself, tun the link's end of the device in it.
	file, tun int
	kernel    kernelCounters
}

// newNamespace makes a side's namespace, with loopback and a device that leads to the link, and writes its own of the settings
// there, in order.
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
	socket, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("no socket can be made in the %s's namespace: %w", side, err)
	}
	defer unix.Close(socket)
	if err := bringUp(socket, "lo"); err != nil {
		return nil, err
	}
	if n.tun, err = openTun(); err != nil {
		return nil, err
	}
	if err := configure(socket, side); err != nil {
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
	_, err = onDevice(fd, device, unix.TUNSETIFF, func(r *unix.Ifreq) error { r.SetUint16(unix.IFF_TUN | unix.IFF_NO_PI); return nil })
	if err != nil {
		return -1, fmt.Errorf("%s gives no device: %w", path, err)
	}
	return fd, nil
}

// configure gives the device its queue, its address and so the route to the other side, and lets packets through.
func configure(socket int, side Side) error {
	request, err := onDevice(socket, device, unix.SIOCGIFINDEX, nil)
	if err == nil {
		err = changeDevice(int32(request.Uint32()))
	}
	if err == nil {
		address := addresses[side].As4()
		_, err = onDevice(socket, device, unix.SIOCSIFADDR, func(r *unix.Ifreq) error { return r.SetInet4Addr(address[:]) })
	}
	if err == nil {
		mask := net.CIDRMask(network.Bits(), 32)
		_, err = onDevice(socket, device, unix.SIOCSIFNETMASK, func(r *unix.Ifreq) error { return r.SetInet4Addr(mask) })
	}
	if err != nil {
		return fmt.Errorf("the %s's device cannot be configured: %w", side, err)
	}
	return bringUp(socket, device)
}

// changeDevice gives a device of the calling thread's namespace its queue and its MTU (RTM_NEWLINK). Unlike the older ioctls that asks
// for no right outside of the user namespace.
func changeDevice(index int32) error {
	header := unix.IfInfomsg{Family: unix.AF_UNSPEC, Index: index}
	message := make([]byte, unix.SizeofNlMsghdr, 256)
	message = append(message, unsafe.Slice((*byte)(unsafe.Pointer(&header)), unix.SizeofIfInfomsg)...)
	for _, attribute := range [][2]uint32{{unix.IFLA_TXQLEN, deviceQueue}, {unix.IFLA_MTU, mtu}} {
		message = binary.NativeEndian.AppendUint16(message, unix.SizeofRtAttr+4)
		message = binary.NativeEndian.AppendUint16(message, uint16(attribute[0]))
		message = binary.NativeEndian.AppendUint32(message, attribute[1])
	}
	*(*unix.NlMsghdr)(unsafe.Pointer(unsafe.SliceData(message))) = unix.NlMsghdr{
		Len: uint32(len(message)), Type: unix.RTM_NEWLINK, Flags: unix.NLM_F_REQUEST | unix.NLM_F_ACK,
	}
	socket, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_ROUTE)
	if err != nil {
		return err
	}
	defer unix.Close(socket)
	if err := unix.Sendto(socket, message, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return err
	}
	answer := make([]byte, 4096)
	n, _, err := unix.Recvfrom(socket, answer, 0)
	if err != nil {
		return err
	}
	// The answer is the errno, negative, after its header; 0 is success.
	if n < unix.SizeofNlMsghdr+4 {
		return unix.EBADMSG
	}
	if code := int32(binary.NativeEndian.Uint32(answer[unix.SizeofNlMsghdr:])); code != 0 {
		return syscall.Errno(-code)
	}
	return nil
}

func bringUp(socket int, name string) error {
	flags, err := onDevice(socket, name, unix.SIOCGIFFLAGS, nil)
	if err == nil {
		_, err = onDevice(socket, name, unix.SIOCSIFFLAGS, func(r *unix.Ifreq) error { r.SetUint16(flags.Uint16() | unix.IFF_UP); return nil })
	}
	if err != nil {
		return fmt.Errorf("the device %s cannot be brought up: %w", name, err)
	}
	return nil
}

// onDevice asks the kernel for something about a device, or to change it, as fill says.
func onDevice(fd int, name string, what uint, fill func(*unix.Ifreq) error) (*unix.Ifreq, error) {
	request, err := unix.NewIfreq(name)
	if err == nil && fill != nil {
		err = fill(request)
	}
	if err == nil {
		err = unix.IoctlIfreq(fd, what, request)
	}
	return request, err
}

// ready says where the namespace is. The path is for any process that may look at this one's descriptors.
func (n *namespace) ready() SideReady {
	return SideReady{Netns: fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), n.file), Address: addresses[n.side].String()}
}
