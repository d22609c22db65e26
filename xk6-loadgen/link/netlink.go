package link

import (
	"encoding/binary"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// attribute is one of a netlink message.
type attribute struct {
	kind  uint16
	value []byte
}

func uint32Attribute(kind uint16, value uint32) attribute {
	return attribute{kind, binary.NativeEndian.AppendUint32(nil, value)}
}

// changeDevice has the kernel change a device of the calling thread's namespace (RTM_NEWLINK). Unlike the older ioctls it asks
// for no right outside of the user namespace.
func changeDevice(index int32, attributes ...attribute) error {
	header := unix.IfInfomsg{Family: unix.AF_UNSPEC, Index: index}
	message := make([]byte, unix.SizeofNlMsghdr, 256)
	message = append(message, unsafe.Slice((*byte)(unsafe.Pointer(&header)), unix.SizeofIfInfomsg)...)
	for _, a := range attributes {
		message = binary.NativeEndian.AppendUint16(message, uint16(unix.SizeofRtAttr+len(a.value)))
		message = binary.NativeEndian.AppendUint16(message, a.kind)
		message = append(message, a.value...)
		// Attributes begin at multiples of 4.
		for len(message)%4 != 0 {
			message = append(message, 0)
		}
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
